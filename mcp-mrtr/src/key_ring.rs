//! The keys that states are sealed with.

use chacha20poly1305::XChaCha20Poly1305;
use chacha20poly1305::aead::KeyInit;

/// A secret with a name, by which it is found when a state comes back.
#[derive(Clone)]
pub struct Key {
    pub(crate) id: u32,
    pub(crate) cipher: XChaCha20Poly1305,
}

impl Key {
    /// Names a secret. It must come from a good source of randomness, and a name must never be used for another one.
    #[must_use]
    pub fn new(id: u32, secret: [u8; 32]) -> Self {
        Self { id, cipher: XChaCha20Poly1305::new(&secret.into()) }
    }
}

/// One key to seal with, and others that still open.
///
/// To change the key without breaking rounds that are under way: first give all instances the new one with
/// [`and`](Self::and), then make it the first, and once the oldest state has expired leave the old one out.
#[derive(Clone)]
pub struct KeyRing {
    current: Key,
    others: Vec<Key>,
}

impl KeyRing {
    /// Seals and opens with one key.
    #[must_use]
    pub fn new(current: Key) -> Self {
        Self { current, others: Vec::new() }
    }

    /// Opens with another one too.
    #[must_use]
    pub fn and(mut self, key: Key) -> Self {
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

/// Secrets are not for logs.
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
