//! The keys in Redis.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use mcp_session::SessionId;

/// The keys of one prefix: the documentation of the crate lists them.
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

    #[cfg(feature = "server")]
    pub(crate) fn bus(&self) -> String {
        format!("{}:bus", self.prefix)
    }

    #[cfg(feature = "server")]
    pub(crate) fn bus_number(&self) -> String {
        format!("{}:bus:number", self.prefix)
    }

    #[cfg(feature = "server")]
    pub(crate) fn handle(&self, name: &str) -> String {
        format!("{}:handle:{name}", self.prefix)
    }

    #[cfg(feature = "server")]
    pub(crate) fn handles(&self) -> String {
        format!("{}:handles", self.prefix)
    }

    #[cfg(feature = "server")]
    pub(crate) fn handles_of(&self, owner: &str) -> String {
        format!("{}:handles:{owner}", self.prefix)
    }

    #[cfg(feature = "server")]
    pub(crate) fn states(&self) -> String {
        format!("{}:states", self.prefix)
    }

    #[cfg(feature = "auth")]
    pub(crate) fn proofs(&self) -> String {
        format!("{}:proofs", self.prefix)
    }

    #[cfg(feature = "auth")]
    pub(crate) fn proofs_of(&self, key: &str) -> String {
        format!("{}:proofs:{key}", self.prefix)
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
