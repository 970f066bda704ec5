//! Encrypts and authenticates states.
//!
//! ```text
//!  version  key id   nonce      sealed: expiry  principal  audience  request  content   tag
//!  1        4        24                 8       16         16        16       ...       16    bytes, as Base64
//! ```

use std::time::Duration;

use chacha20poly1305::XNonce;
use chacha20poly1305::aead::{Aead, Payload};
use mcp_types::base64;

use crate::binding::{Binding, DIGEST_BYTES};
use crate::invalid_state::InvalidState;
use crate::key_ring::KeyRing;
use crate::replay_guard::ReplayGuard;

/// The length of a nonce in bytes: enough for random nonces never to repeat.
pub const NONCE_BYTES: usize = 24;

const VERSION: u8 = 1;
const HEADER_BYTES: usize = 1 + 4;
const EXPIRY_BYTES: usize = 8;

/// Seals `requestState`s, by encryption, and opens them, by decryption and verification.
#[derive(Clone, Debug)]
pub struct Sealer {
    ring: KeyRing,
    lifetime: Duration,
    max_bytes: usize,
}

/// An opened state.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenedState {
    /// The content that was sealed.
    pub content: Vec<u8>,
    /// The nonce, which is unique to this state.
    pub nonce: [u8; NONCE_BYTES],
    /// When it expires, in seconds since the Unix epoch.
    pub expires: u64,
}

/// The error of sealing content that exceeds the size limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the state has {found} bytes, which exceeds the limit of {limit}")]
#[non_exhaustive]
pub struct StateTooLarge {
    /// The size of the state in bytes.
    pub found: usize,
    /// The size limit in bytes.
    pub limit: usize,
}

impl Sealer {
    /// Creates a sealer with a lifetime of 10 minutes and a size limit of 32 KiB.
    #[must_use]
    pub fn new(ring: KeyRing) -> Self {
        Self { ring, lifetime: Duration::from_secs(600), max_bytes: 32 * 1024 }
    }

    /// Sets the lifetime of a state, in whole seconds: the time that a user has to respond. Defaults to 10 minutes.
    #[must_use]
    pub fn lifetime(self, lifetime: Duration) -> Self {
        Self { lifetime, ..self }
    }

    /// Sets the maximum size of a state in bytes. Defaults to 32 KiB.
    #[must_use]
    pub fn max_bytes(self, max_bytes: usize) -> Self {
        Self { max_bytes, ..self }
    }

    /// Seals content. `now` is in seconds since the Unix epoch; the nonce must be random.
    ///
    /// # Errors
    ///
    /// Returns an error if the state would exceed the size limit.
    pub fn seal(
        &self,
        now: u64,
        nonce: [u8; NONCE_BYTES],
        binding: &Binding,
        content: &[u8],
    ) -> Result<String, StateTooLarge> {
        let key = self.ring.current();
        let mut plain = Vec::with_capacity(EXPIRY_BYTES + 3 * DIGEST_BYTES + content.len());
        plain.extend_from_slice(&now.saturating_add(self.lifetime.as_secs()).to_le_bytes());
        for part in [&binding.principal, &binding.audience, &binding.request] {
            plain.extend_from_slice(part);
        }
        plain.extend_from_slice(content);
        let mut state = vec![VERSION];
        state.extend_from_slice(&key.id.to_le_bytes());
        let payload = Payload { msg: &plain, aad: &state };
        let too_large = |found| StateTooLarge { found, limit: self.max_bytes };
        // Encryption fails only for contents of many gigabytes.
        let sealed = key.cipher.encrypt(&XNonce::from(nonce), payload).map_err(|_| too_large(plain.len()))?;
        state.extend_from_slice(&nonce);
        state.extend_from_slice(&sealed);
        let state = base64::encode(&state);
        if state.len() > self.max_bytes { Err(too_large(state.len())) } else { Ok(state) }
    }

    /// Opens the state of a request. `now` is in seconds since the Unix epoch.
    ///
    /// # Errors
    ///
    /// Returns an error if the state has expired, is not authentic, or was sealed for another request or principal.
    pub fn open(&self, now: u64, binding: &Binding, state: &str) -> Result<OpenedState, InvalidState> {
        if state.len() > self.max_bytes {
            return Err(InvalidState::TooLarge);
        }
        let bytes = base64::decode(state).map_err(|_| InvalidState::Malformed)?;
        let (version, rest) = bytes.split_first().ok_or(InvalidState::Malformed)?;
        if *version != VERSION {
            return Err(InvalidState::UnknownVersion);
        }
        let (id, rest) = rest.split_first_chunk().ok_or(InvalidState::Malformed)?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(InvalidState::Malformed)?;
        let key = self.ring.find(u32::from_le_bytes(*id)).ok_or(InvalidState::UnknownKey)?;
        let aad = bytes.get(..HEADER_BYTES).unwrap_or_default();
        let payload = Payload { msg: sealed, aad };
        let plain = key.cipher.decrypt(&XNonce::from(*nonce), payload).map_err(|_| InvalidState::NotAuthentic)?;
        // The content is authentic from here on.
        let (expires, plain) = plain.split_first_chunk::<EXPIRY_BYTES>().ok_or(InvalidState::Malformed)?;
        let expires = u64::from_le_bytes(*expires);
        if now >= expires {
            return Err(InvalidState::Expired);
        }
        let mut plain = plain;
        for (expected, rejected) in [
            (&binding.principal, InvalidState::OtherPrincipal),
            (&binding.audience, InvalidState::OtherAudience),
            (&binding.request, InvalidState::OtherRequest),
        ] {
            let (found, rest) = plain.split_first_chunk::<DIGEST_BYTES>().ok_or(InvalidState::Malformed)?;
            if found != expected {
                return Err(rejected);
            }
            plain = rest;
        }
        Ok(OpenedState { content: plain.to_vec(), nonce: *nonce, expires })
    }

    /// Opens a state that is valid for one use.
    ///
    /// # Errors
    ///
    /// Returns an error if [`open`](Self::open) does, or if the state was used before.
    pub async fn open_once(
        &self,
        now: u64,
        binding: &Binding,
        state: &str,
        guard: &dyn ReplayGuard,
    ) -> Result<OpenedState, InvalidState> {
        let opened = self.open(now, binding, state)?;
        if guard.claim(now, opened.nonce, opened.expires).await { Ok(opened) } else { Err(InvalidState::Replayed) }
    }
}
