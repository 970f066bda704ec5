//! States that only their server can read and make.
//!
//! ```text
//!  version  key id   nonce      sealed: expiry  principal  audience  request  content   tag
//!  1        4        24                 8       16         16        16       ...       16    bytes, as Base64
//! ```

use chacha20poly1305::XNonce;
use chacha20poly1305::aead::{Aead, Payload};
use mcp_types::base64;

use crate::binding::{Binding, DIGEST};
use crate::key_ring::KeyRing;
use crate::ledger::Ledger;
use crate::rejected::Rejected;

/// How many random bytes each state needs; they must never repeat, which this many do not.
pub const NONCE_BYTES: usize = 24;

const VERSION: u8 = 1;
const HEAD: usize = 1 + 4;
const EXPIRY: usize = 8;

/// Makes states and opens them.
#[derive(Clone, Debug)]
pub struct Sealer {
    ring: KeyRing,
    lifetime: u64,
    limit: usize,
}

/// A state that came back.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Opened {
    /// What was put in.
    pub content: Vec<u8>,
    /// What tells this state from all others.
    pub nonce: [u8; NONCE_BYTES],
    /// When it expires, in seconds since 1970.
    pub expires: u64,
}

/// The content does not fit into a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the state has {found} bytes, which is more than {limit}")]
#[non_exhaustive]
pub struct TooLarge {
    /// How long the state would be.
    pub found: usize,
    /// How long it may be.
    pub limit: usize,
}

impl Sealer {
    /// Seals with a ring of keys, for ten minutes, up to 32 KiB.
    #[must_use]
    pub fn new(ring: KeyRing) -> Self {
        Self { ring, lifetime: 600, limit: 32 * 1024 }
    }

    /// How long a state is good, in seconds: as long as a person may think.
    #[must_use]
    pub fn with_lifetime(self, seconds: u64) -> Self {
        Self { lifetime: seconds, ..self }
    }

    /// How many bytes a state may have.
    #[must_use]
    pub fn with_limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Seals content. `now` is in seconds since 1970; the nonce must be random.
    ///
    /// # Errors
    ///
    /// Fails if the content is too large.
    pub fn seal(
        &self,
        now: u64,
        nonce: [u8; NONCE_BYTES],
        binding: &Binding,
        content: &[u8],
    ) -> Result<String, TooLarge> {
        let key = self.ring.current();
        let mut plain = Vec::with_capacity(EXPIRY + 3 * DIGEST + content.len());
        plain.extend_from_slice(&now.saturating_add(self.lifetime).to_le_bytes());
        for part in [&binding.principal, &binding.audience, &binding.request] {
            plain.extend_from_slice(part);
        }
        plain.extend_from_slice(content);
        let mut state = vec![VERSION];
        state.extend_from_slice(&key.id.to_le_bytes());
        let payload = Payload { msg: &plain, aad: &state };
        let too_large = |found| TooLarge { found, limit: self.limit };
        // It fails for contents of many gigabytes alone.
        let sealed = key.cipher.encrypt(&XNonce::from(nonce), payload).map_err(|_| too_large(plain.len()))?;
        state.extend_from_slice(&nonce);
        state.extend_from_slice(&sealed);
        let state = base64::encode(&state);
        if state.len() > self.limit { Err(too_large(state.len())) } else { Ok(state) }
    }

    /// Opens a state that came back with a request.
    ///
    /// # Errors
    ///
    /// Fails if it is not one that was sealed for this request and this principal, lately.
    pub fn open(&self, now: u64, binding: &Binding, state: &str) -> Result<Opened, Rejected> {
        if state.len() > self.limit {
            return Err(Rejected::TooLarge);
        }
        let bytes = base64::decode(state).map_err(|_| Rejected::Malformed)?;
        let (version, rest) = bytes.split_first().ok_or(Rejected::Malformed)?;
        if *version != VERSION {
            return Err(Rejected::UnknownVersion);
        }
        let (id, rest) = rest.split_first_chunk().ok_or(Rejected::Malformed)?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(Rejected::Malformed)?;
        let key = self.ring.find(u32::from_le_bytes(*id)).ok_or(Rejected::UnknownKey)?;
        let aad = bytes.get(..HEAD).unwrap_or_default();
        let payload = Payload { msg: sealed, aad };
        let plain = key.cipher.decrypt(&XNonce::from(*nonce), payload).map_err(|_| Rejected::NotAuthentic)?;
        // From here on everything is as it was sealed.
        let (expires, plain) = plain.split_first_chunk::<EXPIRY>().ok_or(Rejected::Malformed)?;
        let expires = u64::from_le_bytes(*expires);
        if now >= expires {
            return Err(Rejected::Expired);
        }
        let mut plain = plain;
        for (expected, rejected) in [
            (&binding.principal, Rejected::OtherPrincipal),
            (&binding.audience, Rejected::OtherAudience),
            (&binding.request, Rejected::OtherRequest),
        ] {
            let (found, rest) = plain.split_first_chunk::<DIGEST>().ok_or(Rejected::Malformed)?;
            if found != expected {
                return Err(rejected);
            }
            plain = rest;
        }
        Ok(Opened { content: plain.to_vec(), nonce: *nonce, expires })
    }

    /// Opens a state that may be used once.
    ///
    /// # Errors
    ///
    /// Fails as [`open`](Self::open) does, and if the state was used before.
    pub fn open_once(&self, now: u64, binding: &Binding, state: &str, ledger: &dyn Ledger) -> Result<Opened, Rejected> {
        let opened = self.open(now, binding, state)?;
        if ledger.claim(now, opened.nonce, opened.expires) { Ok(opened) } else { Err(Rejected::Replayed) }
    }
}
