//! Lines out of a stream of bytes.

#[cfg(test)]
mod tests;

use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::pin::Pin;

use mcp_types::jsonrpc::{EnvelopeScan, EnvelopeSummary};
use memchr::memchr;
use tokio::io::{AsyncRead, ReadBuf};

/// One line, without its end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must know what to do with each")]
pub enum Line<'a> {
    /// A line that is not blank.
    Message(&'a [u8]),
    /// A line that is longer than the limit, and is skipped.
    ///
    /// It is reported once, as soon as the limit is passed and it is known which message it is. Often that is at once, and
    /// at its end if nothing in it says so.
    TooLong(EnvelopeSummary),
}

/// Cuts a stream of bytes into lines.
///
/// A line ends with `\n` or `\r\n`, and the last one also with the stream. Blank lines are skipped, and so is a UTF-8 byte
/// order mark at the start of the stream. What comes out does not depend on how the bytes were cut up on their way.
///
/// The buffer grows with the line that is being read, up to the limit, and is given back before the reader waits for
/// more. So a connection that once saw a large message does not cost more than others for the rest of its life.
pub struct LineReader<R> {
    source: R,
    limit: usize,
    /// Whether lines that are too long are cut off instead of reported.
    cuts_off: bool,
    /// The size of the buffer when no large line is being read.
    initial: usize,
    /// All of it is initialised; what was read and not taken yet is `start..end`.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// No line ends before here, so that a line which arrives byte by byte is not searched again each time.
    searched: usize,
    skipping: Skipping,
    /// A line that is too long, and still to be reported.
    skipped: Option<EnvelopeSummary>,
    /// Whether it is known if the stream begins with a byte order mark.
    has_begun: bool,
    /// Whether the source has ended.
    ended: bool,
}

/// What becomes of the bytes that come next.
enum Skipping {
    /// They are kept.
    No,
    /// They belong to a line that is too long, of which it is not known yet which message it is.
    Unknown(Box<EnvelopeScan>),
    /// They belong to a line that is too long, of which all is known.
    Known,
}

/// What the bytes that are there amount to.
enum Found {
    /// A line; the next one begins at `next`.
    Message { line: Range<usize>, next: usize },
    /// Too long a line; the next one begins at `next`, if its end is there.
    TooLong { line: Range<usize>, next: Option<usize> },
    /// What begins at `start` has not ended yet; before it are blank lines.
    Incomplete { start: usize },
}

impl<R> LineReader<R> {
    /// Reads lines of at most `limit` bytes, their ends not counted; [`DEFAULT_LINE_LIMIT`] suits most.
    pub fn new(source: R, limit: usize) -> Self {
        Self::with_capacity(source, limit, DEFAULT_CAPACITY)
    }

    /// The same with a buffer of `capacity` bytes to begin with, and to come back to.
    ///
    /// Larger means fewer reads when many messages arrive at once; it is paid for by each connection, idle or not.
    pub fn with_capacity(source: R, limit: usize, capacity: usize) -> Self {
        let initial = capacity.max(1);
        let buffer = vec![0; initial];
        Self {
            source,
            limit,
            cuts_off: false,
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

    /// Cuts off lines that are too long instead of reporting them, for text that is not made of messages.
    #[cfg(feature = "client")]
    pub(crate) fn cut_off(mut self) -> Self {
        self.cuts_off = true;
        self
    }

    /// Whether [`next`](Self::next) has a line to give without reading.
    ///
    /// A driver that answers many messages at once writes while there is one, and flushes when there is none. Blank
    /// lines do not count: whoever relied on them would wait with answers in hand.
    #[must_use]
    pub fn has_buffered_line(&self) -> bool {
        match self.find() {
            Found::Message { .. } | Found::TooLong { next: Some(_), .. } => true,
            Found::TooLong { line, next: None } => self.cuts_off || self.scan(line).is_decided(),
            Found::Incomplete { .. } => self.skipped.is_some(),
        }
    }

    /// The line that has not ended yet, as far as it is there.
    #[cfg(feature = "server")]
    pub(crate) fn partial(&self) -> &[u8] {
        if self.has_begun { &self.buffer[self.start..self.end] } else { &[] }
    }

    /// Looks for the first line that is not blank.
    fn find(&self) -> Found {
        if !self.has_begun {
            return Found::Incomplete { start: self.start };
        }
        let (mut start, mut from) = (self.start, self.searched.max(self.start));
        loop {
            let newline = memchr(b'\n', &self.buffer[from..self.end]).map(|at| from + at);
            let next = newline.map(|newline| newline + 1);
            // As long as a line has no end, a `\r` may yet turn out to belong to it, and does not count.
            let line = without_return(&self.buffer[start..newline.unwrap_or(self.end)]);
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

    /// Begins to find out which message a line is that is too long.
    fn scan(&self, line: Range<usize>) -> Box<EnvelopeScan> {
        let mut scan = Box::<EnvelopeScan>::default();
        scan.feed(&self.buffer[line]);
        scan
    }

    /// Skips a line that is too long, and reports it once it is known which message it is.
    fn skip(&mut self, scan: Box<EnvelopeScan>, is_over: bool) {
        self.skipping = if is_over {
            self.skipped = Some(scan.finish());
            Skipping::No
        } else if scan.is_decided() {
            self.skipped = Some(scan.finish());
            Skipping::Known
        } else {
            Skipping::Unknown(scan)
        };
    }

    /// Makes room behind what is kept, with as much memory as that needs.
    fn make_room(&mut self) {
        // No line is moved twice: from then on it begins at the front.
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
            // A line at the limit and its `\r\n` fit; with as much as that in hand, `find` has decided.
            let most = self.limit.saturating_add(2).max(self.initial);
            let size = self.buffer.len().saturating_mul(2).min(most);
            self.buffer.reserve_exact(size - self.buffer.len());
            self.buffer.resize(size, 0);
        }
    }
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Waits for the next line; `None` at the end of the stream.
    ///
    /// Dropping the future loses nothing: the next call goes on where it stopped.
    ///
    /// # Errors
    ///
    /// Those of the source. What was read before is kept, and one may ask again.
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
                Found::TooLong { line, next } if self.cuts_off => {
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

    /// What is left when no more will come: a line, although nothing ends it.
    fn take_rest(&mut self) -> Option<Range<usize>> {
        let line = without_return(&self.buffer[self.start..self.end]);
        let range = (!is_blank(line)).then(|| self.start..self.start + line.len());
        self.start = self.end;
        range
    }

    /// Reads once. Between the calls of the source all is in order, so the future may be dropped there.
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

    /// Some programs on Windows write a byte order mark before the first message.
    fn skip_byte_order_mark(&mut self) {
        let begin = &self.buffer[self.start..self.end];
        self.has_begun = self.ended || begin.len() >= BYTE_ORDER_MARK.len() || !BYTE_ORDER_MARK.starts_with(begin);
        if begin.starts_with(BYTE_ORDER_MARK) {
            self.start += BYTE_ORDER_MARK.len();
        }
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How long a line may be unless said otherwise: 16 MiB.
pub const DEFAULT_LINE_LIMIT: usize = 16 * 1024 * 1024;

/// Some 64 messages of the usual size.
const DEFAULT_CAPACITY: usize = 16 * 1024;
