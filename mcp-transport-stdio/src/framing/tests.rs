//! Every source here is made up, so that each test says where the bytes are cut and when they come.

use std::collections::VecDeque;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;

/// What a source does when it is read from.
enum Step {
    Give(Vec<u8>),
    Wait,
    Fail,
}

/// Does one step after the other, and then ends.
struct Script {
    steps: VecDeque<Step>,
    reads: usize,
}

impl Script {
    fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self { steps: steps.into_iter().collect(), reads: 0 }
    }

    fn chunks<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Self::new(chunks.into_iter().filter(|chunk| !chunk.is_empty()).map(|chunk| Step::Give(chunk.to_vec())))
    }
}

impl AsyncRead for Script {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        assert!(into.remaining() > 0, "a read without room looks like the end");
        self.reads += 1;
        match self.steps.pop_front() {
            Some(Step::Give(mut bytes)) => {
                let rest = bytes.split_off(bytes.len().min(into.remaining()));
                into.put_slice(&bytes);
                if !rest.is_empty() {
                    self.steps.push_front(Step::Give(rest));
                }
                Poll::Ready(Ok(()))
            }
            Some(Step::Wait) => Poll::Pending,
            Some(Step::Fail) => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            None => Poll::Ready(Ok(())),
        }
    }
}

/// A [`Line`] to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kept {
    Message(Vec<u8>),
    TooLong(EnvelopeSummary),
}

impl From<Line<'_>> for Kept {
    fn from(line: Line<'_>) -> Self {
        match line {
            Line::Message(bytes) => Self::Message(bytes.to_vec()),
            Line::TooLong(summary) => Self::TooLong(summary),
        }
    }
}

fn message(text: &str) -> Kept {
    Kept::Message(text.into())
}

fn too_long(line: &[u8]) -> Kept {
    let mut scan = EnvelopeScan::default();
    scan.feed(line);
    Kept::TooLong(scan.finish())
}

/// Polls a fresh future of `next` once, and drops it.
fn poll<R: AsyncRead + Unpin>(reader: &mut LineReader<R>) -> Poll<io::Result<Option<Kept>>> {
    let next = pin!(reader.next());
    next.poll(&mut Context::from_waker(Waker::noop())).map_ok(|line| line.map(Kept::from))
}

fn next<R: AsyncRead + Unpin>(reader: &mut LineReader<R>) -> Option<Kept> {
    loop {
        if let Poll::Ready(line) = poll(reader) {
            return line.unwrap();
        }
    }
}

fn all<R: AsyncRead + Unpin>(mut reader: LineReader<R>) -> Vec<Kept> {
    let lines = std::iter::from_fn(|| next(&mut reader)).collect();
    assert_eq!(next(&mut reader), None, "the end is the end");
    lines
}

/// What is to come out, from the whole text at once.
fn expected(text: &[u8], limit: usize) -> Vec<Kept> {
    let lines = text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let kept = lines.filter_map(|line| {
        if line.len() > limit {
            return Some(too_long(line));
        }
        (!line.trim_ascii().is_empty()).then(|| Kept::Message(line.to_vec()))
    });
    kept.collect()
}

/// Numbers that follow from their seed (xorshift64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }
}

// covers: B-36
#[test]
fn lines_end_in_either_way_and_blank_ones_are_skipped() {
    let text = b"one\ntwo\r\n\n\r\n \t\n\n three \nfo\rur\r\r\nlast";
    let lines = all(LineReader::new(Script::chunks([&text[..]]), 100));
    assert_eq!(lines, ["one", "two", " three ", "fo\rur\r", "last"].map(message));
}

#[test]
fn nothing_comes_of_nothing() {
    for text in ["", "\n", "\r\n", "  ", "\r", "\n \r\n\t"] {
        assert_eq!(all(LineReader::new(Script::chunks([text.as_bytes()]), 100)), []);
    }
}

#[test]
fn it_does_not_matter_where_the_bytes_are_cut() {
    let text = b"{\"a\":1}\r\n\r\n  \n123456789\n1234567890\n1234567890\r\n12345678901\r\n1234567890123\n\nend\r";
    let lines = expected(text, 10);
    assert_eq!(lines.len(), 7);
    for capacity in [1, 2, 7, 10, 11, 12, 13, 64, 1000] {
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let chunks = [&text[..first], &text[first..second], &text[second..]];
                let reader = LineReader::with_capacity(Script::chunks(chunks), 10, capacity);
                assert_eq!(all(reader), lines, "{capacity} {first} {second}");
            }
        }
        let reader = LineReader::with_capacity(Script::chunks(text.chunks(1)), 10, capacity);
        assert_eq!(all(reader), lines, "{capacity}");
    }
}

/// The mark is no part of the first line, and is one only at the start.
// covers: INT-8
#[test]
fn int_8_a_byte_order_mark_is_skipped_once() {
    const MARK: &str = "\u{feff}";
    for (text, lines) in [
        (format!("{MARK}12345\nnext\n"), vec![message("12345"), message("next")]),
        (format!("{MARK}\r\n{MARK}x\n"), vec![message("\u{feff}x")]),
        (format!("{MARK}{MARK}x"), vec![message("\u{feff}x")]),
        (MARK.to_owned(), vec![]),
        (format!("{MARK}123456\nx"), vec![too_long(b"123456"), message("x")]),
    ] {
        for capacity in [1, 2, 3, 4, 100] {
            for chunk in 1..8 {
                let reader = LineReader::with_capacity(Script::chunks(text.as_bytes().chunks(chunk)), 5, capacity);
                assert_eq!(all(reader), lines, "{text:?} {capacity} {chunk}");
            }
        }
    }
    // What only looks like one at first is kept.
    for text in [&b"\xef"[..], b"\xef\xbb", b"\xef\xbbx", b"\xefx\xbb\xbf"] {
        for chunk in 1..4 {
            let reader = LineReader::with_capacity(Script::chunks(text.chunks(chunk)), 5, 1);
            assert_eq!(all(reader), [Kept::Message(text.to_vec())], "{chunk}");
        }
    }
}

#[test]
fn a_line_at_the_limit_passes_whatever_ends_it() {
    for end in ["\n", "\r\n", "\r", ""] {
        for capacity in [1, 5, 6, 7, 100] {
            for chunk in 1..8 {
                let at = format!("12345{end}");
                let reader = LineReader::with_capacity(Script::chunks(at.as_bytes().chunks(chunk)), 5, capacity);
                assert_eq!(all(reader), [message("12345")], "{end:?} {capacity}");
                let over = format!("123456{end}");
                let reader = LineReader::with_capacity(Script::chunks(over.as_bytes().chunks(chunk)), 5, capacity);
                assert_eq!(all(reader), [too_long(b"123456")], "{end:?} {capacity}");
            }
        }
    }
}

#[test]
fn too_long_a_line_is_reported_at_once_and_only_once() {
    let more = || [Step::Give(b"xxx".to_vec()), Step::Wait];
    let mut steps: Vec<Step> = (0..4).flat_map(|_| more()).collect();
    steps.push(Step::Give(b"\nnext\n".to_vec()));
    let mut reader = LineReader::new(Script::new(steps), 4);
    assert!(poll(&mut reader).is_pending());
    // Its end is far, but the limit is passed.
    assert_eq!(next(&mut reader), Some(too_long(b"xxxxx")));
    assert!(!reader.has_buffered_line());
    assert_eq!(all(reader), [message("next")]);
}

/// Which message it is shows as soon as its id and its kind do: in what was kept, in what is skipped, or at its end.
// covers: INT-3
#[test]
fn int_3_too_long_a_line_is_identified() {
    let filler = "x".repeat(100);
    for (line, id, early) in [
        (format!(r#"{{"id":7,"result":{{"a":"{filler}"}}}}"#), Some(7_u32), 21_usize),
        (format!(r#"{{"result":{{"a":"{filler}"}},"id":7}}"#), Some(7), 126),
        (format!(r#"{{"result":{{"a":"{filler}","id":7}}}}"#), None, 126),
        (format!(r#"{{"a":"{filler}","id":7,"method":"m"}}"#), Some(7), 123),
    ] {
        let steps = line.bytes().flat_map(|byte| [Step::Give(vec![byte]), Step::Wait]);
        let steps = steps.chain([Step::Give(b"\nnext\n".to_vec())]);
        let mut reader = LineReader::with_capacity(Script::new(steps), 20, 16);
        let (mut polls, mut most) = (0_usize, 0);
        let skipped = loop {
            polls += 1;
            most = most.max(reader.buffer.capacity());
            if let Poll::Ready(line) = poll(&mut reader) {
                break line.unwrap();
            }
        };
        let Some(Kept::TooLong(summary)) = skipped else { panic!("{skipped:?}") };
        assert_eq!(summary.id, id.map(Into::into), "{line}");
        assert!(polls.abs_diff(early) <= 2, "{polls} {early} {line}");
        assert!(most <= 22, "{most}");
        assert_eq!(all(reader), [message("next")]);
    }
}

#[test]
fn a_stream_may_end_within_too_long_a_line() {
    let mut reader = LineReader::new(Script::chunks([&b"ok\nxxxxx"[..], b"xxx"]), 4);
    assert_eq!(next(&mut reader), Some(message("ok")));
    assert!(reader.has_buffered_line(), "that it is too long is known without its end");
    assert_eq!(all(reader), [too_long(b"xxxxx")]);
}

#[test]
fn the_buffer_grows_with_the_line_and_no_further() {
    const LIMIT: usize = 1000;
    let line = vec![b'x'; LIMIT];
    // The buffer can be looked at while the source waits.
    let steps = line.chunks(10).flat_map(|chunk| [Step::Give(chunk.to_vec()), Step::Wait]);
    let mut reader = LineReader::with_capacity(Script::new(steps), LIMIT, 16);
    let mut sizes = vec![];
    let text = loop {
        sizes.push(reader.buffer.capacity());
        if let Poll::Ready(line) = poll(&mut reader) {
            break line.unwrap();
        }
    };
    assert_eq!(text, Some(Kept::Message(line)));
    sizes.dedup();
    assert_eq!(sizes, [16, 32, 64, 128, 256, 512, LIMIT + 2]);
}

#[test]
fn the_buffer_is_given_back_after_a_large_line() {
    for size in [1000, 5000] {
        let large = vec![b'x'; size];
        let script =
            [Step::Give(large), Step::Give(b"\nsmall\npart".to_vec()), Step::Wait, Step::Give(b"s\n".to_vec())];
        let mut reader = LineReader::with_capacity(Script::new(script), 2000, 16);
        let first = next(&mut reader);
        assert_eq!(matches!(first, Some(Kept::Message(_))), size == 1000);
        assert!(reader.buffer.capacity() > 1000);
        assert_eq!(next(&mut reader), Some(message("small")));
        assert!(poll(&mut reader).is_pending());
        assert_eq!((reader.buffer.len(), reader.buffer.capacity()), (16, 16));
        assert_eq!(next(&mut reader), Some(message("parts")));
    }
}

#[test]
fn a_dropped_future_loses_nothing() {
    let text = b"first\nsecond\r\n123456789012\nlast";
    // A wait after each byte; each poll is of a future of its own.
    let steps = text.iter().flat_map(|byte| [Step::Wait, Step::Give(vec![*byte]), Step::Wait]);
    assert_eq!(all(LineReader::with_capacity(Script::new(steps), 10, 4)), expected(text, 10));
}

#[test]
fn an_error_loses_nothing_either() {
    let steps = [Step::Give(b"be".to_vec()), Step::Fail, Step::Give(b"gun\n".to_vec())];
    let mut reader = LineReader::new(Script::new(steps), 10);
    assert!(matches!(poll(&mut reader), Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::ConnectionReset));
    assert_eq!(all(reader), [message("begun")]);
}

#[test]
fn blank_lines_are_nothing_to_wait_for() {
    let mut reader = LineReader::new(Script::chunks([&b"one\ntwo\n\n \r\n"[..], b"\n"]), 10);
    assert!(!reader.has_buffered_line());
    assert_eq!(next(&mut reader), Some(message("one")));
    assert!(reader.has_buffered_line());
    assert_eq!(next(&mut reader), Some(message("two")));
    assert!(!reader.has_buffered_line());
    assert_eq!(next(&mut reader), None);
    assert!(!reader.has_buffered_line());
}

/// A line that fills whatever it is read into.
struct Flood {
    left: usize,
}

impl AsyncRead for Flood {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let size = self.left.min(into.remaining());
        into.initialize_unfilled_to(size).fill(b'x');
        into.advance(size);
        self.left -= size;
        Poll::Ready(Ok(()))
    }
}

#[test]
fn a_flood_without_an_end_costs_no_memory() {
    const LIMIT: usize = 1024 * 1024;
    let size = if cfg!(debug_assertions) { 64 << 20 } else { 1 << 30 };
    let source = tokio::io::AsyncReadExt::chain(Flood { left: size }, &b"\nstill here\n"[..]);
    let mut reader = LineReader::new(source, LIMIT);
    assert_eq!(next(&mut reader), Some(too_long(b"x")));
    assert_eq!(next(&mut reader), Some(message("still here")));
    assert_eq!(reader.buffer.capacity(), DEFAULT_CAPACITY);
    assert_eq!(next(&mut reader), None);
}

#[test]
fn a_line_in_many_pieces_is_searched_once() {
    // Were each piece to cost a look at all before it, this would take hours instead of a moment.
    let size = if cfg!(debug_assertions) { 1 << 20 } else { 16 << 20 };
    let source = tokio::io::AsyncReadExt::chain(Drip { left: size }, &b"\n"[..]);
    let mut reader = LineReader::new(source, size);
    assert!(matches!(next(&mut reader), Some(Kept::Message(line)) if line.len() == size));
}

/// A line that comes byte by byte.
struct Drip {
    left: usize,
}

impl AsyncRead for Drip {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.left > 0 {
            into.put_slice(b"x");
            self.left -= 1;
        }
        Poll::Ready(Ok(()))
    }
}

#[test]
fn random_text_in_random_pieces() {
    const LIMIT: usize = 20;
    let runs = if cfg!(debug_assertions) { 3_000 } else { 100_000 };
    for seed in 1..=runs {
        let mut random = Random(seed);
        let mut text = vec![];
        for _ in 0..random.below(12) {
            let letter = b"x \t\r"[random.below(6).saturating_sub(2)];
            text.resize(text.len() + random.below(LIMIT + 6), letter);
            text.extend_from_slice([&b"\n"[..], b"\r\n", b"\r", b"\n\n", b" \n"][random.below(5)]);
        }
        let (mut rest, mut steps) = (&text[..], vec![]);
        while !rest.is_empty() {
            let (chunk, more) = rest.split_at(1 + random.below(rest.len().min(40)));
            steps.push(Step::Give(chunk.to_vec()));
            if random.below(3) == 0 {
                steps.push(Step::Wait);
            }
            rest = more;
        }
        let mut reader = LineReader::with_capacity(Script::new(steps), LIMIT, 1 + random.below(50));
        let mut lines = vec![];
        loop {
            let (promised, reads) = (reader.has_buffered_line(), reader.source.reads);
            let outcome = poll(&mut reader);
            let ready = matches!(outcome, Poll::Ready(Ok(Some(_)))) && reader.source.reads == reads;
            assert_eq!(promised, ready, "a line without a read, seed {seed}");
            match outcome {
                Poll::Ready(Ok(Some(line))) => lines.push(line),
                Poll::Ready(Ok(None)) => break,
                Poll::Ready(Err(error)) => panic!("{error}, seed {seed}"),
                Poll::Pending => {}
            }
            assert!(reader.buffer.len() <= (LIMIT + 2).max(reader.initial), "seed {seed}");
        }
        assert_eq!(lines, expected(&text, LIMIT), "seed {seed}");
    }
}
