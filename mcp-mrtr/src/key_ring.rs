//! The keys that seal states.

use chacha20poly1305::XChaCha20Poly1305;
use chacha20poly1305::aead::KeyInit;

/// A secret key with an id, by which it is found when a state returns.
#[derive(Clone)]
pub struct Key {
    pub(crate) id: u32,
    pub(crate) cipher: XChaCha20Poly1305,
}

impl Key {
    /// Creates a key. The secret must come from a cryptographically secure random source, and each id must have only one
    /// secret.
    #[must_use]
    pub fn new(id: u32, secret: [u8; 32]) -> Self {
        Self { id, cipher: XChaCha20Poly1305::new(&secret.into()) }
    }
}

/// The current key, which seals, and further keys, which only open.
///
/// To rotate keys without rejecting states in circulation: first add the new key on all instances with
/// [`open_with`](Self::open_with), then make it the current one, and remove the old one after the state lifetime.
#[derive(Clone)]
pub struct KeyRing {
    current: Key,
    others: Vec<Key>,
}

impl KeyRing {
    /// Creates a key ring with one key.
    #[must_use]
    pub fn new(current: Key) -> Self {
        Self { current, others: Vec::new() }
    }

    /// Adds a key that opens states but does not seal them, for key rotation.
    #[must_use]
    pub fn open_with(mut self, key: Key) -> Self {
        self.others.push(key);
        self
    }

    pub(crate) fn current(&self) -> &Key {
        &self.current
    }

    pub(crate) fn find(&self, id: u32) -> Option<&Key> {
        std::iter::once(&self.current).chain(&self.others).find(|key| key.id == id)
    }
}

/// Does not print the secret.
impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key").field("id", &self.id).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyRing").field("current", &self.current).field("others", &self.others).finish()
    }
}
