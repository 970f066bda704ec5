//! Responses, cut out of what was read: just enough of HTTP for what the servers send.

/// The start of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    /// Where the body begins.
    pub(crate) length: usize,
    pub(crate) framing: Framing,
}

/// How the end of a body is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(usize),
    Chunked,
}

impl Head {
    /// Reads the head, unless not all of it is there.
    pub(crate) fn read(bytes: &[u8]) -> Result<Option<Self>, String> {
        let Some(length) = bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|end| end + 4) else {
            return Ok(None);
        };
        let head = &bytes[..length];
        let shown = || String::from_utf8_lossy(&bytes[..bytes.len().min(600)]).into_owned();
        if !head.starts_with(b"HTTP/1.1 200 ") && !head.starts_with(b"HTTP/1.1 202 ") {
            return Err(format!("answered\n{}", shown()));
        }
        for line in head.split(|byte| *byte == b'\n').skip(1) {
            let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            if name.eq_ignore_ascii_case(b"content-length") {
                let length_of_body = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok());
                let framing = Framing::Length(length_of_body.ok_or_else(shown)?);
                return Ok(Some(Self { length, framing }));
            } else if name.eq_ignore_ascii_case(b"transfer-encoding") && value.eq_ignore_ascii_case(b"chunked") {
                return Ok(Some(Self { length, framing: Framing::Chunked }));
            }
        }
        Err(format!("answered without a length\n{}", shown()))
    }
}

/// Finds the name of a session in the head of a response.
pub(crate) fn session(head: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(head).ok()?;
    let mut headers = text.lines().filter_map(|line| line.split_once(':'));
    headers.find(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id")).map(|(_, value)| value.trim().to_owned())
}

/// What is next in a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chunk<'a> {
    /// Some of the body, and how long it was with its frame.
    Data(&'a [u8], usize),
    /// The end, and how long it was.
    End(usize),
    /// Not all of it is there.
    Incomplete,
}

impl<'a> Chunk<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, String> {
        let Some(line) = bytes.windows(2).position(|window| window == b"\r\n") else { return Ok(Self::Incomplete) };
        let size = std::str::from_utf8(&bytes[..line]).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
        let size = size.ok_or_else(|| format!("no chunk: {}", String::from_utf8_lossy(bytes)))?;
        let length = line + 2 + size + 2;
        match bytes.get(..length) {
            None => Ok(Self::Incomplete),
            Some(_) if size == 0 => Ok(Self::End(length)),
            Some(chunk) => Ok(Self::Data(&chunk[line + 2..length - 2], length)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_say_how_long_the_body_is() {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n";
        assert_eq!(Head::read(head), Ok(Some(Head { length: head.len(), framing: Framing::Length(12) })));
        assert_eq!(Head::read(&head[..head.len() - 1]), Ok(None));
        let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ndate: x\r\n\r\n";
        assert_eq!(Head::read(head), Ok(Some(Head { length: head.len(), framing: Framing::Chunked })));
        let head = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(Head::read(head), Ok(Some(Head { length: head.len(), framing: Framing::Length(0) })));
        assert!(Head::read(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").is_err());
    }

    #[test]
    fn sessions_have_names() {
        let head = b"HTTP/1.1 200 OK\r\nMcp-Session-Id: abc\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(session(head), Some("abc".to_owned()));
        assert_eq!(session(b"HTTP/1.1 200 OK\r\n\r\n"), None);
    }

    #[test]
    fn chunks_are_taken_one_by_one() {
        assert_eq!(Chunk::read(b"3\r\nabc\r\n0\r\n\r\n"), Ok(Chunk::Data(b"abc", 8)));
        assert_eq!(Chunk::read(b"0\r\n\r\n"), Ok(Chunk::End(5)));
        assert_eq!(Chunk::read(b"a\r\nabc"), Ok(Chunk::Incomplete));
        assert!(Chunk::read(b"xyz\r\n").is_err());
    }
}
