//! Parses event streams.

use std::time::Duration;

/// Parses events from chunks of bytes.
///
/// It buffers at most one event, up to the limit. Comments are not buffered.
#[derive(Debug)]
pub(crate) struct EventParser {
    /// The maximum size of an event in bytes.
    limit: usize,
    line: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// The id of the event that is being read, which takes effect when the event is complete.
    id: Option<String>,
    pub(crate) last_id: Option<String>,
    pub(crate) retry: Option<Duration>,
    /// Whether the first line is being read, which may begin with a byte order mark.
    is_first_line: bool,
    /// Whether the last line ended with CR, so that a following LF belongs to it.
    after_cr: bool,
}

/// One event with data.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// The `event` field. Defaults to `message`.
    pub(crate) name: Vec<u8>,
    pub(crate) data: Vec<u8>,
}

impl Event {
    /// Whether it contains a JSON-RPC message.
    pub(crate) fn is_message(&self) -> bool {
        self.name == b"message"
    }
}

/// The error of an event that exceeds the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event exceeds {limit} bytes; the limit is `HttpTransport::event_limit`")]
pub(crate) struct EventTooLong {
    limit: usize,
}

/// The byte order mark that a stream may begin with.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

impl EventParser {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            name: Vec::new(),
            data: Vec::new(),
            has_data: false,
            id: None,
            last_id: None,
            retry: None,
            is_first_line: true,
            after_cr: false,
        }
    }

    /// Parses up to the end of the next event, and removes what was parsed from `input`. Returns `None` if the event is
    /// incomplete.
    pub(crate) fn read(&mut self, input: &mut &[u8]) -> Result<Option<Event>, EventTooLong> {
        loop {
            if self.after_cr && !input.is_empty() {
                self.after_cr = false;
                *input = input.strip_prefix(b"\n").unwrap_or(input);
            }
            let end = input.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
            let (part, rest) = input.split_at(end.unwrap_or(input.len()));
            let is_comment = self.line.first().or_else(|| part.first()) == Some(&b':');
            if !is_comment {
                if self.line.len() + self.data.len() + part.len() > self.limit {
                    return Err(EventTooLong { limit: self.limit });
                }
                self.line.extend_from_slice(part);
            } else if self.line.is_empty() {
                self.line.push(b':');
            }
            *input = rest;
            let Some((ending, rest)) = input.split_first() else { return Ok(None) };
            (self.after_cr, *input) = (*ending == b'\r', rest);
            if let Some(event) = self.end_line() {
                return Ok(Some(event));
            }
        }
    }

    fn end_line(&mut self) -> Option<Event> {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_first_line) && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        let event = if line.is_empty() {
            self.end_event()
        } else {
            self.field(&line);
            None
        };
        // Reuses the buffer, unless it is large.
        if line.capacity() <= MAX_REUSED_CAPACITY {
            line.clear();
            self.line = line;
        }
        event
    }

    fn field(&mut self, line: &[u8]) {
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => self.name = value.to_vec(),
            b"id" if !value.contains(&0) => self.id = Some(String::from_utf8_lossy(value).into_owned()),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                // A number that is too large saturates.
                let millis = std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok());
                self.retry = Some(Duration::from_millis(millis.unwrap_or(u64::MAX)));
            }
            // Comments and unknown fields.
            _ => {}
        }
    }

    /// Completes an event. One without data only sets the last event id.
    fn end_event(&mut self) -> Option<Event> {
        if let Some(id) = self.id.take() {
            self.last_id = (!id.is_empty()).then_some(id);
        }
        let (mut name, data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
        self.has_data = false;
        if data.is_empty() {
            return None;
        }
        if name.is_empty() {
            name.extend_from_slice(b"message");
        }
        Some(Event { name, data })
    }
}

/// The maximum capacity of the line buffer that is reused.
const MAX_REUSED_CAPACITY: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    type Seen = (Vec<(String, String)>, Option<String>, Option<Duration>);

    /// Parses chunks, and returns their events, last id and retry value.
    fn read(pieces: &[&[u8]], limit: usize) -> Result<Seen, EventTooLong> {
        let mut parser = EventParser::new(limit);
        let mut events = Vec::new();
        for piece in pieces {
            let mut rest = *piece;
            while let Some(event) = parser.read(&mut rest)? {
                let text = |bytes| String::from_utf8(bytes).unwrap();
                events.push((text(event.name), text(event.data)));
            }
            assert!(rest.is_empty(), "everything is taken");
        }
        Ok((events, parser.last_id, parser.retry))
    }

    fn messages(input: &str) -> Vec<String> {
        let (events, ..) = read(&[input.as_bytes()], 1 << 10).unwrap();
        events.into_iter().map(|(_, data)| data).collect()
    }

    /// Lines end in three ways, fields may have one space, comments and unknown fields mean nothing.
    // covers: B-101, H-22
    #[test]
    fn events_are_found() {
        for (input, expected) in [
            ("data: a\n\n", &["a"][..]),
            ("data: a\r\n\r\n", &["a"]),
            ("data: a\r\r", &["a"]),
            ("data:a\n\ndata:  b\n\n", &["a", " b"]),
            ("data: a\ndata: b\n\n", &["a\nb"]),
            ("data: a\ndata\n\n", &["a\n"]),
            ("\u{feff}data: a\n\n", &["a"]),
            ("data: \u{feff}\n\n", &["\u{feff}"]),
            (": hello\n\n:\n\ndata: a\n:x\n\n", &["a"]),
            ("\u{feff}: hello\ndata: a\n\n", &["a"]),
            ("other: x\ndata: a\nnothing\n\n", &["a"]),
            ("data\n\n", &[]),
            ("data:\n\n", &[]),
            ("\n\n\n", &[]),
            ("data: not complete\n", &[]),
            ("data: not complete", &[]),
            (" data: a\n\n", &[]),
        ] {
            assert_eq!(messages(input), expected, "{input:?}");
        }
        let (events, ..) = read(&[b"event: endpoint\ndata: /m\n\ndata: x\n\n"], 100).unwrap();
        assert_eq!(events[0], ("endpoint".to_owned(), "/m".to_owned()));
        assert_eq!(events[1].0, "message", "a name holds for one event");
    }

    /// Ids and times to wait are remembered, also of events without data; what is malformed is not.
    // covers: B-103
    #[test]
    fn places_are_remembered() {
        let (_, id, retry) = read(&[b"id: 7\nretry: 500\ndata:\n\n"], 100).unwrap();
        assert_eq!((id.as_deref(), retry), (Some("7"), Some(Duration::from_millis(500))));
        for (input, id) in [
            ("id: 1\ndata: a\n\nid: 2\ndata: b", Some("1")),
            ("id: 1\n\ndata: b\n\n", Some("1")),
            ("id: 1\n\nid: 2\0\n\n", Some("1")),
            ("id: 1\n\nid\n\n", None),
            ("id: 1\n\nid: 2\n\n", Some("2")),
        ] {
            assert_eq!(read(&[input.as_bytes()], 100).unwrap().1.as_deref(), id, "{input:?}");
        }
        for (input, retry) in
            [("retry: 5x\n", None), ("retry: -5\n", None), ("retry:\n", None), ("retry: 05\n", Some(5))]
        {
            let expected = retry.map(Duration::from_millis);
            assert_eq!(read(&[input.as_bytes()], 100).unwrap().2, expected, "{input:?}");
        }
        assert!(read(&[b"retry: 99999999999999999999999\n"], 100).unwrap().2.is_some());
    }

    /// The chunks of a stream do not matter.
    #[test]
    fn cuts_do_not_matter() {
        let input =
            "\u{feff}: c\r\nid: 1\r\ndata: grüß\r\ndata: b\r\r\n\nevent: e\rretry: 10\rdata: x\r\rid: 2\ndata:\n\n";
        let input = input.as_bytes();
        let whole = read(&[input], 1 << 10).unwrap();
        assert_eq!(whole.0.len(), 2);
        for cut in 0..=input.len() {
            let (first, second) = input.split_at(cut);
            assert_eq!(read(&[first, second], 1 << 10).unwrap(), whole, "cut at {cut}");
            for other in cut..=input.len() {
                assert_eq!(read(&[first, &input[cut..other], &input[other..]], 1 << 10).unwrap(), whole);
            }
        }
        let bytes: Vec<&[u8]> = input.chunks(1).collect();
        assert_eq!(read(&bytes, 1 << 10).unwrap(), whole);
    }

    /// An event has a limit, in one line or in many. Comments have none, because they are not buffered.
    #[test]
    fn events_are_bounded() {
        let long = format!("data: {}\n\n", "x".repeat(94));
        assert!(read(&[long.as_bytes()], 100).is_ok());
        assert_eq!(read(&[long.as_bytes()], 99), Err(EventTooLong { limit: 99 }));
        let endless = b"data: 0123456789\n".repeat(20);
        assert_eq!(read(&[&endless], 100), Err(EventTooLong { limit: 100 }));
        assert_eq!(read(&[b"event: ", &[b'x'; 200]], 100), Err(EventTooLong { limit: 100 }));
        let comment = [b": ".as_slice(), &[b'x'; 1000], b"\ndata: a\n\n"].concat();
        assert_eq!(read(&[&comment], 100).unwrap().0.len(), 1);
        let bytes: Vec<&[u8]> = comment.chunks(7).collect();
        assert_eq!(read(&bytes, 100).unwrap().0.len(), 1);
    }
}
