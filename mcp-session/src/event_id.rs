//! Event ids, which are valid for one session only.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use mcp_types::base64::url_safe;
use sha2::Sha256;

use crate::{NoRandomness, SessionId};

/// The key that authenticates event ids, so that a client can only resume streams of its own session.
///
/// An event id has 43 characters of URL-safe Base64: the stream, the number of the event in it, and half of an HMAC-SHA-256
/// of both and of the session id. Ids that are forged, changed, or from another session are refused.
///
/// # Examples
///
/// ```
/// use mcp_session::{EventIdKey, SessionId};
///
/// # fn main() -> Result<(), mcp_session::NoRandomness> {
/// let (key, session) = (EventIdKey::random()?, SessionId::random()?);
/// let id = key.encode(&session, 3, 14);
/// assert_eq!(key.decode(&session, &id), Some((3, 14)));
/// assert_eq!(key.decode(&SessionId::random()?, &id), None);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct EventIdKey(Hmac<Sha256>);

impl EventIdKey {
    /// The number of characters of an event id.
    pub const ID_LENGTH: usize = 43;

    /// Creates a key from bytes that several processes share, so that clients can resume streams at any of them.
    ///
    /// The bytes must be random and secret.
    #[must_use]
    pub fn new(key: [u8; 32]) -> Self {
        // HMAC pads a key that is shorter than a block of its hash with zeros.
        let mut block = [0; 64];
        block[..32].copy_from_slice(&key);
        Self(Hmac::new(&block.into()))
    }

    /// Creates a random key, which only this process has.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system's random source fails.
    pub fn random() -> Result<Self, NoRandomness> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|_| NoRandomness)?;
        Ok(Self::new(key))
    }

    /// Returns the id of an event.
    #[must_use]
    pub fn encode(&self, session: &SessionId, stream: u64, number: u64) -> String {
        let mut id = Vec::with_capacity(Self::ID_LENGTH);
        self.write(session, stream, number, &mut id);
        // Base64 is ASCII.
        String::from_utf8(id).unwrap_or_default()
    }

    /// Appends the id of an event to a buffer.
    pub fn write(&self, session: &SessionId, stream: u64, number: u64, out: &mut Vec<u8>) {
        let place = place(stream, number);
        let tag = self.authenticate(session, &place).finalize().into_bytes();
        let mut bytes = [0; LENGTH];
        bytes[..PLACE].copy_from_slice(&place);
        bytes[PLACE..].copy_from_slice(&tag[..LENGTH - PLACE]);
        url_safe::append(out, &bytes);
    }

    /// Returns the stream and the number of an event, if this is the id of an event of this session.
    #[must_use]
    pub fn decode(&self, session: &SessionId, id: &str) -> Option<(u64, u64)> {
        let bytes: [u8; LENGTH] = url_safe::decode(id).ok()?.try_into().ok()?;
        let (place, tag) = bytes.split_first_chunk::<PLACE>()?;
        // Compares in constant time.
        self.authenticate(session, place).verify_truncated_left(tag).ok()?;
        let (stream, number) = place.split_first_chunk()?;
        Some((u64::from_be_bytes(*stream), u64::from_be_bytes(*number.first_chunk()?)))
    }

    fn authenticate(&self, session: &SessionId, place: &[u8; PLACE]) -> Hmac<Sha256> {
        self.0.clone().chain_update(USE).chain_update(session.as_bytes()).chain_update(place)
    }
}

impl fmt::Debug for EventIdKey {
    /// Shows nothing of the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventIdKey(..)")
    }
}

fn place(stream: u64, number: u64) -> [u8; PLACE] {
    (u128::from(stream) << 64 | u128::from(number)).to_be_bytes()
}

/// The bytes of the stream and the number.
const PLACE: usize = 16;
/// The bytes of an id: the place, and half of an HMAC-SHA-256.
const LENGTH: usize = 32;
/// Separates these codes from other uses of the same key. With the session id and the place it fits into one block of the hash,
/// next to the padding: every event of a session has an id.
const USE: &[u8; 7] = b"event 1";

#[cfg(test)]
mod tests {
    use super::*;

    /// An id is valid only for the session that it was sent to.
    // covers: S4.117, RB-31, RB-55
    #[test]
    fn foreign_ids_are_none() {
        let key = EventIdKey::random().unwrap();
        let (mine, yours) = (SessionId::random().unwrap(), SessionId::random().unwrap());
        for place in [(0, 0), (1, 2), (u64::MAX, 0), (0, u64::MAX), (1 << 40 | 5, 77), (u64::MAX, u64::MAX)] {
            let id = key.encode(&mine, place.0, place.1);
            assert!(id.len() == EventIdKey::ID_LENGTH && id.bytes().all(|byte| byte.is_ascii_graphic()), "{id}");
            assert_eq!(key.decode(&mine, &id), Some(place));
            assert_eq!(key.decode(&yours, &id), None, "another session");
            assert_eq!(EventIdKey::random().unwrap().decode(&mine, &id), None, "another process");
            for at in 0..id.len() {
                for digit in b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
                    let mut other = id.clone().into_bytes();
                    if std::mem::replace(&mut other[at], *digit) != *digit {
                        let other = String::from_utf8(other).unwrap();
                        assert_eq!(key.decode(&mine, &other), None, "{other} for {id}");
                    }
                }
            }
        }
        assert_ne!(key.encode(&mine, 1, 2), key.encode(&mine, 2, 1));
    }

    /// The same key creates the same ids in another process; other texts are refused.
    // covers: RB-55
    #[test]
    fn keys_can_be_shared() {
        let session = SessionId::parse("5a".repeat(32)).unwrap();
        let (one, other) = (EventIdKey::new([7; 32]), EventIdKey::new([7; 32]));
        let id = one.encode(&session, 1, 1);
        assert_eq!(other.decode(&session, &id), Some((1, 1)));
        assert!(id.starts_with("AAAAAAAAAAEAAAAAAAAAA"), "{id}");
        for wrong in ["", "1", &id[1..], &format!("{id}="), &format!("{id}A"), &"ü".repeat(21), &"\0".repeat(43)] {
            assert_eq!(one.decode(&session, wrong), None, "{wrong:?}");
        }
        assert_eq!(format!("{one:?}"), "EventIdKey(..)");
    }

    /// Ids are the same in every version, so that instances of different versions can replay each other's events. These
    /// were computed with other implementations of HMAC and Base64.
    // covers: RB-55
    #[test]
    fn ids_do_not_change() {
        let session = SessionId::parse("5a".repeat(32)).unwrap();
        let counting = std::array::from_fn(|index| index as u8);
        for (key, stream, number, id) in [
            ([7; 32], 1, 1, "AAAAAAAAAAEAAAAAAAAAAaDa3hlwJBEcSC2BdAfJy1I"),
            (counting, u64::MAX, 77, "__________8AAAAAAAAATS6zvKtCK29QnEK0JPC9Qiw"),
        ] {
            let key = EventIdKey::new(key);
            assert_eq!(key.encode(&session, stream, number), id);
            assert_eq!(key.decode(&session, id), Some((stream, number)));
        }
    }
}
