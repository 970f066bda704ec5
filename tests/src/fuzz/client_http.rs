//! Any responses of a server into a client, over HTTP.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body::{Body, Frame};
use mcp_transport_http::internals::{Script as Network, Sent};
use mcp_transport_http::{AuthorizationError, Authorizer, Challenge, Credential, HttpTransport, async_trait};

use super::client::{DELETE, Heard, NO_REQUEST, Script, response_to, use_everything, with_id};

/// Whatever a server answers over HTTP, a client speaks the protocol, sends nothing elsewhere, ends each of its calls,
/// and leaves nothing behind.
///
/// The first line may begin with `@`, followed by letters: `l` or `m` for a client of the legacy or the modern era alone,
/// `n` for one that cannot be asked anything, `k` for one that takes small answers only, `a` for one with credentials.
///
/// Each other line is a response. One that begins with the letter of a method (see `METHODS`) is for the next request of
/// it, and goes on behind the id of the request; all others are for requests for a stream. Before the first space may
/// stand `#` with what else there is to a response:
///
/// | sign | what it is |
/// |---|---|
/// | three digits | the status |
/// | `e` | the message is the only event of a stream |
/// | `E` | the line is the stream, with `\|` for the ends of lines |
/// | `s` | there is a session |
/// | `b`, `h` | the body breaks off, or never ends |
/// | `c` | the body comes byte by byte |
/// | `x`, `y`, `z` | the content is of another type, of none, or encoded |
/// | `r`, `w` | there is another place to go to, or a challenge |
/// | `!` | there is no response at all |
///
/// # Panics
///
/// Panics if one of these promises does not hold.
pub fn client_http(data: &[u8]) {
    let mut lines = data.split(|byte| *byte == b'\n').peekable();
    let start = lines.next_if(|line| line.first() == Some(&b'@')).unwrap_or_default();
    let has_credentials = start.contains(&b'a');
    let mut heard = Heard::default();
    heard.may_repeat = has_credentials;
    let server = Mutex::new(Server { script: Script::new(lines), heard, has_credentials });
    use_everything(start, || {
        let network = Network::new(move |sent| {
            let response = server.lock().unwrap_or_else(PoisonError::into_inner).respond(&sent);
            Box::pin(std::future::ready(response))
        });
        let mut transport = HttpTransport::new(ADDRESS).expect("an address").http_client(client()).script(network);
        if start.contains(&b'k') {
            transport = transport.body_limit(200).event_limit(200);
        }
        if has_credentials { transport.authorizer(Tokens) } else { transport }
    });
}

const ADDRESS: &str = "http://server.example/mcp";

/// A client that is never used, since the script answers; it is expensive to make.
fn client() -> reqwest::Client {
    static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();
    CLIENT.get_or_init(reqwest::Client::new).clone()
}

/// Has one credential, and another one for those who refuse it.
struct Tokens;

#[async_trait]
impl Authorizer for Tokens {
    async fn credential(&self) -> Result<Option<Credential>, AuthorizationError> {
        Ok(Some(Credential::bearer("one")?))
    }

    async fn challenged(&self, challenge: &Challenge) -> Result<Option<Credential>, AuthorizationError> {
        let is_first = challenge.refused == Credential::bearer("one").ok();
        Ok(Credential::bearer("two").ok().filter(|_| is_first))
    }
}

/// Plays the server.
struct Server {
    script: Script,
    heard: Heard,
    has_credentials: bool,
}

impl Server {
    fn respond(&mut self, sent: &Sent) -> Option<Response<reqwest::Body>> {
        let origin = sent.url.origin().ascii_serialization();
        assert_eq!(origin, "http://server.example", "nothing is sent elsewhere");
        assert_eq!(
            sent.headers.contains_key(AUTHORIZATION),
            self.has_credentials,
            "credentials are sent if there are any"
        );
        for (name, value) in &sent.headers {
            let is_plain = value.to_str().is_ok_and(|value| value.trim_ascii() == value);
            // Where a stream is to go on is in the words of the server.
            assert!(is_plain || name == "last-event-id", "{value:?} is not visible ASCII");
        }
        match sent.verb.as_str() {
            "POST" => {
                let requests = self.heard.hear(sent.url.as_str(), &sent.body);
                assert!(requests.len() <= 1, "a POST has one message");
                let Some((id, method)) = requests.into_iter().next() else {
                    return respond(self.script.answer(NO_REQUEST), StatusCode::ACCEPTED, |text| text.to_vec());
                };
                let answer = self.script.answer(&method);
                respond(answer, StatusCode::BAD_REQUEST, |text| match text.strip_prefix(b"\"") {
                    Some(_) => response_to(&id, text),
                    None => with_id(text, Some(&id)),
                })
            }
            "GET" => {
                let line = self.script.line(self.heard.newest.as_ref());
                respond(line, StatusCode::METHOD_NOT_ALLOWED, <[u8]>::to_vec)
            }
            "DELETE" => respond(self.script.answer(DELETE), StatusCode::OK, <[u8]>::to_vec),
            verb => panic!("a client has no use for {verb}"),
        }
    }
}

/// Makes a response of a line, or one with a status where there is no line.
fn respond(
    line: Option<Vec<u8>>,
    otherwise: StatusCode,
    body: impl FnOnce(&[u8]) -> Vec<u8>,
) -> Option<Response<reqwest::Body>> {
    let Some(line) = line else {
        return Some(with_status(Response::new(reqwest::Body::from("")), otherwise));
    };
    let (signs, text) = match line.strip_prefix(b"#") {
        Some(line) => line.split_at(line.iter().position(|byte| *byte == b' ').unwrap_or(line.len())),
        None => (&[][..], &line[..]),
    };
    let has = |sign| signs.contains(&sign);
    if has(b'!') {
        return None;
    }
    let body = body(text.strip_prefix(b" ").unwrap_or(text));
    let body = match () {
        () if has(b'E') => body.iter().map(|byte| if *byte == b'|' { b'\n' } else { *byte }).collect(),
        () if has(b'e') => [b"data: ", &body[..], b"\n\n"].concat(),
        () => body,
    };
    let kind = match () {
        () if has(b'x') => "text/html",
        () if has(b'e') || has(b'E') => "text/event-stream; charset=utf-8",
        () => "application/json",
    };
    let end = if has(b'b') {
        End::Breaks
    } else if has(b'h') {
        End::Hangs
    } else {
        End::Whole
    };
    let pieces = body.chunks(if has(b'c') { 1 } else { usize::MAX }).map(Bytes::copy_from_slice).collect();
    let mut response = Response::new(reqwest::Body::wrap(Pieces { pieces, end }));
    let headers = response.headers_mut();
    if !has(b'y') {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    for (sign, name, value) in [
        (b's', HeaderName::from_static("mcp-session-id"), "the-session"),
        (b'z', CONTENT_ENCODING, "gzip"),
        (b'r', LOCATION, "http://elsewhere.example/"),
        (b'w', WWW_AUTHENTICATE, "Bearer error=\"invalid_token\""),
    ] {
        if has(sign) {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
    let digits: Vec<u8> = signs.iter().copied().filter(u8::is_ascii_digit).take(3).collect();
    Some(with_status(response, StatusCode::from_bytes(&digits).unwrap_or(StatusCode::OK)))
}

fn with_status<B>(mut response: Response<B>, status: StatusCode) -> Response<B> {
    *response.status_mut() = status;
    response
}

/// A body in pieces.
struct Pieces {
    pieces: VecDeque<Bytes>,
    end: End,
}

#[derive(Clone, Copy)]
enum End {
    Whole,
    Breaks,
    Hangs,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match (self.pieces.pop_front(), self.end) {
            (Some(piece), _) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            (None, End::Whole) => Poll::Ready(None),
            (None, End::Breaks) => Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into()))),
            (None, End::Hangs) => Poll::Pending,
        }
    }
}
