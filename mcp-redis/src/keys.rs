//! The keys in Redis.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use mcp_session::SessionId;

/// The keys of one prefix.
///
/// | key | type | content |
/// |---|---|---|
/// | `<prefix>:session:<hash>` | hash | `version` and `record` |
/// | `<prefix>:events:<hash>` | sorted set | the streams of the session, by their last use; a string once it has ended |
/// | `<prefix>:events:<hash>:<stream>` | stream | its events, by their numbers |
/// | `<prefix>:events:<hash>:<stream>:meta` | hash | what is known of the stream |
/// | `<prefix>:events:epoch` | string | changes when all streams become incomplete |
///
/// Keys of different prefixes never collide, whatever the prefixes contain.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    pub(crate) prefix: String,
}

impl Keys {
    pub(crate) fn session(&self, id: SessionId) -> String {
        format!("{}:session:{}", self.prefix, hash(id))
    }

    pub(crate) fn events(&self, id: SessionId) -> String {
        format!("{}:events:{}", self.prefix, hash(id))
    }

    pub(crate) fn epoch(&self) -> String {
        format!("{}:events:epoch", self.prefix)
    }
}

/// The hash of a session id, as the id itself would give access to the session.
pub(crate) fn hash(id: SessionId) -> String {
    hex(&Sha256::digest(id.as_bytes()))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
