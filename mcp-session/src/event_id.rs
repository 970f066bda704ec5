//! The names of events, which are good for one session only.

use std::fmt;

use crate::hmac::{Hmac, is_same};
use crate::{NoRandomness, SessionId};

/// Writes and reads the ids of events, so that nobody but the session that they were sent to can ask for what came
/// after them.
///
/// An id is 43 characters of base64url: the stream, the number of the event in it, and half of an HMAC-SHA-256 of both
/// and of the session. One that is made up, changed, or of another session is none.
///
/// ```
/// use mcp_session::{EventKey, SessionId};
///
/// # fn main() -> Result<(), mcp_session::NoRandomness> {
/// let (key, session) = (EventKey::random()?, SessionId::random()?);
/// let id = key.write(&session, 3, 14);
/// assert_eq!(key.read(&session, &id), Some((3, 14)));
/// assert_eq!(key.read(&SessionId::random()?, &id), None);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct EventKey(Hmac);

impl EventKey {
    /// Takes a key that other processes have as well, so that clients can go on with any of them.
    ///
    /// It has to be as random as [`random`](Self::random) makes it, and has to be kept secret.
    #[must_use]
    pub fn new(key: [u8; 32]) -> Self {
        Self(Hmac::new(&key))
    }

    /// Makes a key that only this process has.
    ///
    /// # Errors
    ///
    /// Fails if the system has no randomness to give.
    pub fn random() -> Result<Self, NoRandomness> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|_| NoRandomness)?;
        Ok(Self::new(key))
    }

    /// Names an event.
    #[must_use]
    pub fn write(&self, session: &SessionId, stream: u64, number: u64) -> String {
        let (place, code) = (place(stream, number), self.code(session, stream, number));
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&place);
        bytes[16..].copy_from_slice(&code);
        encode(&bytes)
    }

    /// Finds the stream of an event and its number there, if this is the id of an event of this session.
    #[must_use]
    pub fn read(&self, session: &SessionId, id: &str) -> Option<(u64, u64)> {
        let bytes = decode(id)?;
        let (stream, rest) = bytes.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (stream, number) = (u64::from_be_bytes(*stream), u64::from_be_bytes(*number));
        let code = rest.first_chunk()?;
        is_same(code, &self.code(session, stream, number)).then_some((stream, number))
    }

    fn code(&self, session: &SessionId, stream: u64, number: u64) -> [u8; 16] {
        let code = self.0.code(&[USE, session.as_bytes(), &place(stream, number)]);
        let mut half = [0; 16];
        half.copy_from_slice(&code[..16]);
        half
    }
}

impl fmt::Debug for EventKey {
    /// Nothing of the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventKey(..)")
    }
}

fn place(stream: u64, number: u64) -> [u8; 16] {
    (u128::from(stream) << 64 | u128::from(number)).to_be_bytes()
}

fn encode(bytes: &[u8; 32]) -> String {
    let mut text = String::with_capacity(LENGTH);
    for group in bytes.chunks(3) {
        let bits = group.iter().zip([16, 8, 0]).fold(0, |bits, (byte, shift)| bits | u32::from(*byte) << shift);
        for shift in [18, 12, 6, 0].into_iter().take(group.len() + 1) {
            text.push(char::from(DIGITS[(bits >> shift & 63) as usize]));
        }
    }
    text
}

/// Takes only what [`encode`] writes: one text for each id.
fn decode(text: &str) -> Option<[u8; 32]> {
    if text.len() != LENGTH {
        return None;
    }
    let mut bytes = [0; 32];
    for (group, bytes) in text.as_bytes().chunks(4).zip(bytes.chunks_mut(3)) {
        let mut bits = 0;
        for (digit, shift) in group.iter().zip([18, 12, 6, 0]) {
            bits |= value(*digit)? << shift;
        }
        for (byte, shift) in bytes.iter_mut().zip([16, 8, 0]) {
            *byte = (bits >> shift & 255) as u8;
            bits &= !(255 << shift);
        }
        if bits != 0 {
            return None;
        }
    }
    Some(bytes)
}

fn value(digit: u8) -> Option<u32> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'-' => 62,
        b'_' => 63,
        _ => return None,
    };
    Some(value.into())
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// 32 bytes with 6 bits in each character.
const LENGTH: usize = 43;
/// Keeps codes apart from those that the same key may make for something else.
const USE: &[u8] = b"mcp event id 1";

#[cfg(test)]
mod tests {
    use super::*;

    /// An id is good for the session that it was sent to, and nothing else is.
    // covers: S4.117, RB-31, RB-55
    #[test]
    fn foreign_ids_are_none() {
        let key = EventKey::random().unwrap();
        let (mine, yours) = (SessionId::random().unwrap(), SessionId::random().unwrap());
        for place in [(0, 0), (1, 2), (u64::MAX, 0), (0, u64::MAX), (1 << 40 | 5, 77), (u64::MAX, u64::MAX)] {
            let id = key.write(&mine, place.0, place.1);
            assert!(id.len() == 43 && id.bytes().all(|byte| byte.is_ascii_graphic()), "{id}");
            assert_eq!(key.read(&mine, &id), Some(place));
            assert_eq!(key.read(&yours, &id), None, "another session");
            assert_eq!(EventKey::random().unwrap().read(&mine, &id), None, "another process");
            for at in 0..id.len() {
                for digit in DIGITS {
                    let mut other = id.clone().into_bytes();
                    if std::mem::replace(&mut other[at], *digit) != *digit {
                        let other = String::from_utf8(other).unwrap();
                        assert_eq!(key.read(&mine, &other), None, "{other} for {id}");
                    }
                }
            }
        }
        assert_ne!(key.write(&mine, 1, 2), key.write(&mine, 2, 1));
    }

    /// The same key makes the same ids in another process; what is no id harms nobody.
    // covers: RB-55
    #[test]
    fn keys_can_be_shared() {
        let session = SessionId::parse(&"5a".repeat(32)).unwrap();
        let (one, other) = (EventKey::new([7; 32]), EventKey::new([7; 32]));
        let id = one.write(&session, 1, 1);
        assert_eq!(other.read(&session, &id), Some((1, 1)));
        assert!(id.starts_with("AAAAAAAAAAEAAAAAAAAAA"), "{id}");
        for wrong in ["", "1", &id[1..], &format!("{id}="), &format!("{id}A"), &"ü".repeat(21), &"\0".repeat(43)] {
            assert_eq!(one.read(&session, wrong), None, "{wrong:?}");
        }
        assert_eq!(format!("{one:?}"), "EventKey(..)");
    }

    /// Bytes of any kind survive.
    // covers: RB-55
    #[test]
    fn bytes_survive() {
        for byte in 0..=255 {
            let mut bytes = [byte; 32];
            bytes[31] = !byte;
            assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
    }
}
