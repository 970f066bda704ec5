//! What all clients let the driver do: make so many calls, so many of them at a time.
//!
//! A client that is connected says `{}`. Then each line of its input is a round, `CALLS DEPTH time` or
//! `CALLS DEPTH count`, and is answered with a line such as `{"nanoseconds":1,"allocations":2,"bytes":3}`.

#[path = "counting.rs"]
mod counting;

use std::error::Error;
use std::io::{self, BufRead as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// What may go wrong.
pub(crate) type Fault = Box<dyn Error + Send + Sync>;

/// A client that is connected.
pub(crate) trait Caller: Clone + Send + 'static {
    /// Calls the tool `echo` with the text that belongs to a number; returns whether that is the answer.
    fn echo(&self, number: u64) -> impl Future<Output = Result<bool, Fault>> + Send;
}

/// The text that belongs to a number.
pub(crate) fn text(number: u64) -> String {
    format!("hello {number:08}")
}

/// Whether a text is the one that belongs to a number: nobody has to keep it to know.
pub(crate) fn is_text(text: Option<&str>, number: u64) -> bool {
    text.and_then(|text| text.strip_prefix("hello ")).and_then(|digits| digits.parse().ok()) == Some(number)
}

/// Connects on a runtime with one thread, and does what the driver wants until there is nothing more.
pub(crate) fn run<C: Caller>(connect: impl Future<Output = Result<C, Fault>>) -> Result<(), Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let caller = connect.await?;
        tell("{}")?;
        let mut line = String::new();
        // Nothing is to happen between rounds, so reading may block.
        while io::stdin().lock().read_line(&mut line)? > 0 {
            let mut words = line.split_whitespace();
            let mut number = || words.next().and_then(|word| word.parse().ok()).ok_or("CALLS DEPTH time|count");
            let (calls, depth) = (number()?, number()?);
            counting::start(words.next() == Some("count"));
            let start = now();
            round(&caller, calls, depth).await?;
            let elapsed = start.elapsed().as_nanos();
            let (allocations, bytes) = counting::stop();
            tell(&format!(r#"{{"nanoseconds":{elapsed},"allocations":{allocations},"bytes":{bytes}}}"#))?;
            line.clear();
        }
        Ok(())
    })
}

/// Makes calls, each when another one has ended.
async fn round<C: Caller>(caller: &C, calls: u64, depth: u64) -> Result<(), Fault> {
    let made = Arc::new(AtomicU64::new(0));
    let one_by_one = |caller: C, made: Arc<AtomicU64>| async move {
        loop {
            let number = made.fetch_add(1, Ordering::Relaxed);
            if number >= calls {
                return Ok::<_, Fault>(());
            }
            if !caller.echo(number).await? {
                return Err("the answer is another one".into());
            }
        }
    };
    if depth == 1 {
        return one_by_one(caller.clone(), made).await;
    }
    let tasks: Vec<_> = (0..depth).map(|_| tokio::spawn(one_by_one(caller.clone(), Arc::clone(&made)))).collect();
    for task in tasks {
        task.await??;
    }
    Ok(())
}

fn tell(line: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{line}")
}

#[expect(clippy::disallowed_methods, reason = "a bench reads the clock")]
fn now() -> Instant {
    Instant::now()
}
