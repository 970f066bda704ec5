//! A connection that is kept, on which there is one request at a time.
//!
//! It is far cheaper than any server: a request is ready to be sent but for its id, and of HTTP only that is read which
//! tells where a response ends.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::ops::Range;

use mio::net::TcpStream;
use mio::{Interest, Poll, Token};

use super::response::{self, Chunk, Framing, Head};

/// A connection to a server, which a poll tells of.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    buffer: Box<[u8]>,
    /// What of the buffer was read and not yet taken.
    unread: Range<usize>,
    /// How the end of the response is found, once its head was read.
    framing: Option<Framing>,
    /// What was read of a body that comes in chunks.
    body: Vec<u8>,
    /// The name of the session that began last, as long as there is a handshake.
    handshake: Option<Option<String>>,
}

/// Whether what is sent may have to wait until what was sent before has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delay {
    /// `TCP_NODELAY`.
    Never,
    /// As it is unless one says otherwise.
    Default,
}

impl Connection {
    /// Connects, and has the poll tell of the connection under this number.
    ///
    /// # Errors
    ///
    /// Returns why that is not possible.
    pub fn open(address: SocketAddr, poll: &Poll, number: usize) -> Result<Self, String> {
        Self::open_with(address, poll, number, Delay::Never)
    }

    /// The same, with small segments sent at once or not.
    ///
    /// # Errors
    ///
    /// Returns why that is not possible.
    pub fn open_with(address: SocketAddr, poll: &Poll, number: usize, delay: Delay) -> Result<Self, String> {
        // Waiting for the connection is simpler than being told of it.
        let stream = std::net::TcpStream::connect(address).map_err(|error| format!("cannot connect: {error}"))?;
        let prepare = |stream: std::net::TcpStream| {
            stream.set_nodelay(delay == Delay::Never)?;
            stream.set_nonblocking(true)?;
            let mut stream = TcpStream::from_std(stream);
            poll.registry().register(&mut stream, Token(number), Interest::READABLE)?;
            Ok(stream)
        };
        let stream = prepare(stream).map_err(|error: std::io::Error| format!("cannot use a connection: {error}"))?;
        let buffer = vec![0; BUFFER].into_boxed_slice();
        Ok(Self { stream, buffer, unread: 0..0, framing: None, body: Vec::new(), handshake: None })
    }

    /// Has the names of sessions read that begin from now on, or not any more.
    pub fn set_handshake(&mut self, is_handshake: bool) {
        self.handshake = is_handshake.then_some(None);
    }

    /// Takes the name of the session that began last.
    pub fn take_session(&mut self) -> Option<String> {
        self.handshake.as_mut()?.take()
    }

    /// Whether the head of a response has come whose body goes on.
    #[must_use]
    pub fn is_streaming(&self) -> bool {
        self.framing == Some(Framing::Chunked)
    }

    /// Sends a request. It is short, and nothing else is under way, so there is room for it.
    ///
    /// # Errors
    ///
    /// Returns why that is not possible.
    pub fn send(&mut self, request: &[u8]) -> Result<(), String> {
        self.stream.write_all(request).map_err(|error| format!("cannot send: {error}"))
    }

    /// Reads what is there; returns the body once the response is complete.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the response: its status, too, unless it is 200 or 202.
    pub fn receive(&mut self) -> Result<Option<&[u8]>, String> {
        self.fill()?;
        if self.framing.is_none() {
            let Some(Head { length, framing }) = Head::read(&self.buffer[self.unread.clone()])? else {
                return Ok(None);
            };
            if let Some(session) = &mut self.handshake {
                *session = response::session(&self.buffer[self.unread.start..][..length]);
            }
            self.unread.start += length;
            self.framing = Some(framing);
            self.body.clear();
        }
        match self.framing {
            Some(Framing::Length(length)) if length <= self.unread.len() => {
                let body = self.unread.start..self.unread.start + length;
                self.unread.start = body.end;
                self.framing = None;
                Ok(Some(&self.buffer[body]))
            }
            Some(Framing::Chunked) => loop {
                match Chunk::read(&self.buffer[self.unread.clone()])? {
                    Chunk::Data(data, length) => {
                        self.body.extend_from_slice(data);
                        self.unread.start += length;
                    }
                    Chunk::End(length) => {
                        self.unread.start += length;
                        self.framing = None;
                        return Ok(Some(&self.body));
                    }
                    Chunk::Incomplete => return Ok(None),
                }
            },
            Some(Framing::Length(_)) | None => Ok(None),
        }
    }

    /// Returns what came of a stream since the last time, if it ends with an event.
    #[must_use]
    pub fn events(&self) -> Option<&[u8]> {
        self.body.ends_with(b"\n\n").then_some(&self.body)
    }

    /// Forgets what came of a stream.
    pub fn clear_events(&mut self) {
        self.body.clear();
    }

    /// Reads all that is there. One is told again only of what comes later.
    fn fill(&mut self) -> Result<(), String> {
        if self.unread.is_empty() {
            self.unread = 0..0;
        }
        loop {
            if self.unread.end == self.buffer.len() {
                self.buffer.copy_within(self.unread.clone(), 0);
                self.unread = 0..self.unread.len();
            }
            let room = &mut self.buffer[self.unread.end..];
            let size = room.len();
            match self.stream.read(room) {
                Ok(0) if size == 0 => return Err("a response does not end".to_owned()),
                Ok(0) => return Err("the server hung up".to_owned()),
                Ok(length) => {
                    self.unread.end += length;
                    // What fills less than the room was all of it.
                    if length < size {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(format!("cannot read: {error}")),
            }
        }
    }
}

/// Room for the longest response.
const BUFFER: usize = 8 * 1024;
