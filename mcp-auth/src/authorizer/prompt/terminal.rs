//! Users at a terminal.

use std::fmt;
use std::io::{self, BufRead as _};
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::{Mutex, mpsc};

use super::{DevicePrompt, LoginPrompt, PendingLogin, PromptError, RedirectCheck};
use crate::client::{DeviceCode, OpenBrowser};

/// The address that browsers are sent to, where they show an error, and the address to be copied.
const REDIRECT_URI: &str = "http://127.0.0.1:33418/callback";
/// The longest line that is taken.
const MAX_LINE_BYTES: u64 = 16 * 1024;

/// Shows the address on a terminal, and takes the redirect that the user pastes, for programs on another machine than the browser.
///
/// It writes to standard error and reads from standard input, unless it is created with others.
#[derive(Clone)]
pub struct TerminalPrompt {
    redirect_uri: Arc<str>,
    terminal: Terminal,
}

impl TerminalPrompt {
    /// Creates a prompt on standard error and standard input.
    #[must_use]
    pub fn new() -> Self {
        Self::with_io(io::BufReader::new(io::stdin()), io::stderr())
    }

    /// Creates a prompt on other streams. The input is read on a thread of its own, with the first login.
    pub fn with_io(input: impl io::BufRead + Send + 'static, output: impl io::Write + Send + 'static) -> Self {
        Self { redirect_uri: REDIRECT_URI.into(), terminal: Terminal::new(input, output) }
    }

    /// Sets the address that the browser is sent back to, for example a page of the application that shows its own address.
    /// Defaults to a loopback port that nothing listens on.
    #[must_use]
    pub fn redirect_uri(mut self, uri: impl Into<Arc<str>>) -> Self {
        self.redirect_uri = uri.into();
        self
    }
}

impl Default for TerminalPrompt {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for TerminalPrompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TerminalPrompt").field("redirect_uri", &self.redirect_uri).finish_non_exhaustive()
    }
}

#[async_trait]
impl LoginPrompt for TerminalPrompt {
    async fn begin(&self, _: Option<&str>) -> Result<Box<dyn PendingLogin>, PromptError> {
        Ok(Box::new(self.clone()))
    }
}

#[async_trait]
impl PendingLogin for TerminalPrompt {
    fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    async fn authorize(&mut self, request: &OpenBrowser, check: RedirectCheck<'_>) -> Result<(), PromptError> {
        let mut lines = self.terminal.lines().await;
        self.terminal.write(format!(
            "To log in at {}, open this address in a browser:\n\n  {}\n\nThe browser is then sent to an address that begins \
             with {} and cannot be shown.\nPaste that address here:\n",
            request.issuer, request.url, self.redirect_uri
        ))?;
        loop {
            let line = lines.recv().await.ok_or(PromptError::Declined)?;
            match check(line.trim()) {
                Ok(()) => return Ok(()),
                Err(_) if line.trim().is_empty() => {}
                Err(error) => {
                    self.terminal.write(format!("This cannot be used: {error}. Paste the address again:\n"))?
                }
            }
        }
    }
}

/// Shows a device code on standard error.
#[derive(Clone)]
pub struct TerminalDevicePrompt {
    terminal: Terminal,
}

impl TerminalDevicePrompt {
    /// Creates a prompt on standard error.
    #[must_use]
    pub fn new() -> Self {
        Self::with_output(io::stderr())
    }

    /// Creates a prompt on another stream.
    pub fn with_output(output: impl io::Write + Send + 'static) -> Self {
        Self { terminal: Terminal::new(io::empty(), output) }
    }
}

impl Default for TerminalDevicePrompt {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for TerminalDevicePrompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TerminalDevicePrompt").finish_non_exhaustive()
    }
}

#[async_trait]
impl DevicePrompt for TerminalDevicePrompt {
    async fn show(&self, code: &DeviceCode) -> Result<(), PromptError> {
        let mut text = format!("To log in, open {} and enter the code {}\n", code.verification_uri, code.user_code);
        if let Some(complete) = &code.verification_uri_complete {
            text.push_str(&format!("or open {complete}\n"));
        }
        self.terminal.write(text)
    }
}

/// The streams of a terminal.
#[derive(Clone)]
struct Terminal {
    output: Arc<std::sync::Mutex<dyn io::Write + Send>>,
    input: Arc<Mutex<Input>>,
}

enum Input {
    Unread(Box<dyn io::BufRead + Send>),
    Read(Arc<Mutex<mpsc::Receiver<String>>>),
}

impl Terminal {
    fn new(input: impl io::BufRead + Send + 'static, output: impl io::Write + Send + 'static) -> Self {
        Self {
            output: Arc::new(std::sync::Mutex::new(output)),
            input: Arc::new(Mutex::new(Input::Unread(Box::new(input)))),
        }
    }

    /// Returns the lines of the input, for one login at a time.
    async fn lines(&self) -> tokio::sync::OwnedMutexGuard<mpsc::Receiver<String>> {
        let receiver = {
            let mut input = self.input.lock().await;
            if let Input::Unread(reader) = &mut *input {
                let reader = std::mem::replace(reader, Box::new(io::empty()));
                *input = Input::Read(Arc::new(Mutex::new(read_lines(reader))));
            }
            match &*input {
                Input::Read(receiver) => Arc::clone(receiver),
                Input::Unread(_) => Arc::new(Mutex::new(mpsc::channel(1).1)),
            }
        };
        receiver.lock_owned().await
    }

    fn write(&self, text: String) -> Result<(), PromptError> {
        let mut output = self.output.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let written = output.write_all(text.as_bytes()).and_then(|()| output.flush());
        written.map_err(|error| PromptError::failed(format!("the terminal cannot be written: {error}")))
    }
}

/// Reads lines on a thread of its own: reading a terminal cannot be cancelled, and a thread of the runtime would keep it from
/// shutting down.
fn read_lines(mut reader: Box<dyn io::BufRead + Send>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(1);
    let read = move || {
        let mut line = Vec::new();
        loop {
            line.clear();
            match io::Read::take(&mut reader, MAX_LINE_BYTES).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if sender.blocking_send(String::from_utf8_lossy(&line).into_owned()).is_err() => return,
                Ok(_) => {}
            }
        }
    };
    #[expect(clippy::disallowed_methods, reason = "a thread that reads a terminal cannot be one of the runtime")]
    drop(std::thread::spawn(read));
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::RedirectError;

    #[derive(Clone, Default)]
    struct Output(Arc<std::sync::Mutex<Vec<u8>>>);

    impl io::Write for Output {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Output {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    fn request() -> OpenBrowser {
        let (url, issuer) = ("https://as/authorize?state=1".to_owned(), "https://as".to_owned());
        OpenBrowser { url, redirect_uri: REDIRECT_URI.to_owned(), issuer }
    }

    #[tokio::test]
    async fn a_pasted_redirect_is_taken_after_a_wrong_one() {
        let output = Output::default();
        let prompt = TerminalPrompt::with_io(&b"\nwrong\n  right  \nrest\n"[..], output.clone());
        let mut pending = prompt.begin(None).await.unwrap();
        assert_eq!(pending.redirect_uri(), REDIRECT_URI);
        let mut check = |line: &str| if line == "right" { Ok(()) } else { Err(RedirectError::OtherState) };
        pending.authorize(&request(), &mut check).await.unwrap();
        let text = output.text();
        assert!(text.contains("https://as/authorize?state=1") && text.contains("again"), "{text}");
        // A second login reads on.
        let mut pending = prompt.begin(None).await.unwrap();
        let mut check = |line: &str| if line == "rest" { Ok(()) } else { Err(RedirectError::OtherState) };
        pending.authorize(&request(), &mut check).await.unwrap();
    }

    #[tokio::test]
    async fn the_end_of_the_input_declines() {
        let prompt = TerminalPrompt::with_io(&b""[..], io::sink());
        let mut pending = prompt.begin(None).await.unwrap();
        let error = pending.authorize(&request(), &mut |_| Ok(())).await.unwrap_err();
        assert!(matches!(error, PromptError::Declined), "{error:?}");
    }
}
