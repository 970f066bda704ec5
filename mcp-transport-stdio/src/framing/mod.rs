//! Splits byte streams into lines.

#[cfg(test)]
mod tests;

use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::pin::Pin;
#[cfg(feature = "server")]
use std::pin::pin;
#[cfg(feature = "server")]
use std::task::{Context, Poll, ready};

use mcp_types::jsonrpc::{EnvelopeScan, EnvelopeSummary};
use memchr::memchr;
use tokio::io::{AsyncRead, ReadBuf};

/// A line, without its line ending.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must know what to do with each")]
pub enum Line<'a> {
    /// A line that is not blank.
    Message(&'a [u8]),
    /// A line that is longer than the limit, and is skipped.
    ///
    /// It is reported once, as soon as its kind and id are known, at the latest at the end of the line.
    TooLong(EnvelopeSummary),
}

/// Splits a byte stream into lines.
///
/// A line ends with `\n` or `\r\n`, or at the end of the stream. Blank lines are skipped, and so is a UTF-8 byte order mark
/// at the start of the stream.
///
/// The buffer grows with the line that is being read, up to the limit, and shrinks again before the reader waits for more.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// use mcp_transport_stdio::{Line, LineReader};
///
/// let mut lines = LineReader::new(&b"{}\n\n[]\n"[..], 1024);
/// assert_eq!(lines.next().await?, Some(Line::Message(b"{}")));
/// assert_eq!(lines.next().await?, Some(Line::Message(b"[]")));
/// assert_eq!(lines.next().await?, None);
/// # Ok(())
/// # }
/// ```
pub struct LineReader<R> {
    source: R,
    limit: usize,
    /// Whether lines that are too long are truncated instead of reported.
    truncates: bool,
    /// The size of the buffer, except while a large line is read.
    initial: usize,
    /// Fully initialized; unread bytes are in `start..end`.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// No line ends before here, so that a line which arrives in many parts is searched once.
    searched: usize,
    skipping: Skipping,
    /// A line that is too long and was not reported yet.
    skipped: Option<EnvelopeSummary>,
    /// Whether it is known if the stream begins with a byte order mark.
    has_begun: bool,
    /// Whether the source has ended.
    ended: bool,
}

/// How the next bytes are treated.
enum Skipping {
    /// They are buffered.
    No,
    /// They belong to a line that is too long, whose kind or id is not known yet.
    Unknown(Box<EnvelopeScan>),
    /// They belong to a line that is too long and was reported.
    Known,
}

/// The first line in the buffer.
enum Found {
    /// A line; the next one starts at `next`.
    Message { line: Range<usize>, next: usize },
    /// A line that is too long; the next one starts at `next`, if its end was read.
    TooLong { line: Range<usize>, next: Option<usize> },
    /// The line at `start` has not ended yet.
    Incomplete { start: usize },
}

impl<R> LineReader<R> {
    /// Creates a reader of lines with at most `limit` bytes, not counting the line ending.
    pub fn new(source: R, limit: usize) -> Self {
        Self::with_capacity(source, limit, DEFAULT_CAPACITY)
    }

    /// Creates a reader with a buffer of `capacity` bytes, which grows for larger lines only.
    ///
    /// A larger buffer means fewer reads when many messages arrive at once, and more memory for each idle connection.
    pub(crate) fn with_capacity(source: R, limit: usize, capacity: usize) -> Self {
        let initial = capacity.max(1);
        let buffer = vec![0; initial];
        Self {
            source,
            limit,
            truncates: false,
            initial,
            buffer,
            start: 0,
            end: 0,
            searched: 0,
            skipping: Skipping::No,
            skipped: None,
            has_begun: false,
            ended: false,
        }
    }

    /// Truncates lines that are too long instead of reporting them, for text other than messages.
    #[cfg(feature = "client")]
    pub(crate) fn truncate_long_lines(mut self) -> Self {
        self.truncates = true;
        self
    }

    /// Returns whether [`next`](Self::next) would return a line without reading from the source. Blank lines do not count.
    ///
    /// Use it to flush responses only when no more requests are buffered.
    #[cfg(any(test, feature = "server"))]
    pub(crate) fn has_buffered_line(&self) -> bool {
        match self.find() {
            Found::Message { .. } | Found::TooLong { next: Some(_), .. } => true,
            Found::TooLong { line, next: None } => self.truncates || self.scan(line).is_complete(),
            Found::Incomplete { .. } => self.skipped.is_some(),
        }
    }

    /// Returns the start of the line that has not ended yet.
    #[cfg(feature = "server")]
    pub(crate) fn partial(&self) -> &[u8] {
        if self.has_begun { &self.buffer[self.start..self.end] } else { &[] }
    }

    /// Finds the first line that is not blank.
    fn find(&self) -> Found {
        if !self.has_begun {
            return Found::Incomplete { start: self.start };
        }
        let (mut start, mut from) = (self.start, self.searched.max(self.start));
        loop {
            let newline = memchr(b'\n', &self.buffer[from..self.end]).map(|at| from + at);
            let next = newline.map(|newline| newline + 1);
            // A final `\r` may belong to the line ending, and does not count.
            let line = without_carriage_return(&self.buffer[start..newline.unwrap_or(self.end)]);
            if line.len() > self.limit {
                return Found::TooLong { line: start..newline.unwrap_or(self.end), next };
            }
            let Some(next) = next else { return Found::Incomplete { start } };
            if !is_blank(line) {
                return Found::Message { line: start..start + line.len(), next };
            }
            (start, from) = (next, next);
        }
    }

    /// Starts to scan a line that is too long for its kind and id.
    fn scan(&self, line: Range<usize>) -> Box<EnvelopeScan> {
        let mut scan = Box::<EnvelopeScan>::default();
        scan.feed(&self.buffer[line]);
        scan
    }

    /// Skips a line that is too long, and reports it once its kind and id are known.
    fn skip(&mut self, scan: Box<EnvelopeScan>, is_over: bool) {
        self.skipping = if is_over {
            self.skipped = Some(scan.finish());
            Skipping::No
        } else if scan.is_complete() {
            self.skipped = Some(scan.finish());
            Skipping::Known
        } else {
            Skipping::Unknown(scan)
        };
    }

    /// The maximum size of the buffer. A line at the limit with its `\r\n` fits, which is enough for `find` to decide.
    fn most(&self) -> usize {
        self.limit.saturating_add(2).max(self.initial)
    }

    /// Makes room in the buffer, and grows or shrinks it.
    fn make_room(&mut self) {
        // No line is moved twice, because it starts at the front from then on.
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.searched -= self.start;
            self.start = 0;
        }
        if self.end < self.initial {
            self.buffer.truncate(self.initial);
            self.buffer.shrink_to(self.initial);
        } else if self.end == self.buffer.len() {
            let size = self.buffer.len().saturating_mul(2).min(self.most());
            self.buffer.reserve_exact(size - self.buffer.len());
            self.buffer.resize(size, 0);
        }
    }
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Returns the next line; `None` at the end of the stream. This method is cancel safe.
    ///
    /// # Errors
    ///
    /// Returns the errors of the source. Buffered data is kept, so that the method can be called again.
    pub async fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            if let Some(skipped) = self.skipped.take() {
                return Ok(Some(Line::TooLong(skipped)));
            }
            match self.find() {
                Found::Message { line, next } => {
                    self.start = next;
                    return Ok(Some(Line::Message(&self.buffer[line])));
                }
                Found::TooLong { line, next } if self.truncates => {
                    self.start = next.unwrap_or(self.end);
                    self.skipping = if next.is_none() { Skipping::Known } else { Skipping::No };
                    return Ok(Some(Line::Message(&self.buffer[line.start..line.start + self.limit])));
                }
                Found::TooLong { line, next } => {
                    self.start = next.unwrap_or(self.end);
                    self.skip(self.scan(line), next.is_some());
                    continue;
                }
                Found::Incomplete { start } => {
                    self.start = start;
                    self.searched = self.end;
                }
            }
            if self.ended {
                if let Skipping::Unknown(scan) = std::mem::replace(&mut self.skipping, Skipping::Known) {
                    return Ok(Some(Line::TooLong(scan.finish())));
                }
                return Ok(self.take_rest().map(|line| Line::Message(&self.buffer[line])));
            }
            self.fill().await?;
        }
    }

    /// Reads ahead until the source has ended, for a driver that may not use lines yet. Pending while the source has not
    /// ended, also if there is no more room: as much is buffered as the longest line needs.
    #[cfg(feature = "server")]
    pub(crate) fn poll_read_ahead(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.ended {
            // Blank lines and lines that were taken do not count, as the next line starts behind them.
            self.searched = self.searched.max(self.start);
            if self.end - self.start >= self.most() {
                return Poll::Pending;
            }
            ready!(pin!(self.fill()).poll(cx))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Returns the last line, which has no line ending.
    fn take_rest(&mut self) -> Option<Range<usize>> {
        let line = without_carriage_return(&self.buffer[self.start..self.end]);
        let range = (!is_blank(line)).then(|| self.start..self.start + line.len());
        self.start = self.end;
        range
    }

    /// Reads once. Cancel safe.
    async fn fill(&mut self) -> io::Result<()> {
        self.make_room();
        let mut free = ReadBuf::new(&mut self.buffer[self.end..]);
        poll_fn(|context| Pin::new(&mut self.source).poll_read(context, &mut free)).await?;
        let read = free.filled().len();
        self.ended = read == 0;
        let from = self.end;
        match std::mem::replace(&mut self.skipping, Skipping::No) {
            Skipping::No => self.end += read,
            skipping @ (Skipping::Unknown(_) | Skipping::Known) => {
                let piece = &self.buffer[from..from + read];
                let newline = memchr(b'\n', piece);
                match skipping {
                    Skipping::Unknown(mut scan) => {
                        scan.feed(newline.map_or(piece, |newline| &piece[..newline]));
                        self.skip(scan, newline.is_some());
                    }
                    skipping @ (Skipping::Known | Skipping::No) if newline.is_none() => self.skipping = skipping,
                    Skipping::Known | Skipping::No => {}
                }
                if let Some(newline) = newline {
                    self.start = from + newline + 1;
                    self.end += read;
                }
            }
        }
        if !self.has_begun {
            self.skip_byte_order_mark();
        }
        Ok(())
    }

    /// Skips a byte order mark, which some programs on Windows write before the first message.
    fn skip_byte_order_mark(&mut self) {
        let begin = &self.buffer[self.start..self.end];
        self.has_begun = self.ended || begin.len() >= BYTE_ORDER_MARK.len() || !BYTE_ORDER_MARK.starts_with(begin);
        if begin.starts_with(BYTE_ORDER_MARK) {
            self.start += BYTE_ORDER_MARK.len();
        }
    }
}

fn without_carriage_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The default maximum length of a line: 16 MiB.
#[cfg(any(feature = "client", feature = "server"))]
pub(crate) const DEFAULT_LINE_LIMIT: usize = 16 * 1024 * 1024;

/// The default capacity: about 64 typical messages.
const DEFAULT_CAPACITY: usize = 16 * 1024;
