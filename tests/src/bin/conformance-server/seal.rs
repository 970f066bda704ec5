//! States that clients bring back, and cannot change.

use std::hash::{BuildHasher, RandomState};

use mcp_server::RequestContext;
use mcp_server::types::ErrorObject;

/// Puts a keyed digest behind a state. The key is random and lasts as long as the process.
///
/// The digest is the hash of the standard library: good enough to notice changes in a test, and no model for a server
/// that has something to lose.
#[derive(Default)]
pub(crate) struct Seal(RandomState);

impl Seal {
    /// The state as a client gets it. `purpose` is what it belongs to: elsewhere it is not valid.
    pub(crate) fn close(&self, purpose: &str, state: &str) -> String {
        format!("{state}.{:016x}", self.0.hash_one((purpose, state)))
    }

    fn open<'a>(&self, purpose: &str, sealed: &'a str) -> Option<&'a str> {
        let (state, _) = sealed.rsplit_once('.')?;
        (self.close(purpose, state) == sealed).then_some(state)
    }
}

/// Seals a state for the next round of a request.
pub(crate) fn seal(ctx: &RequestContext, purpose: &str, state: &str) -> String {
    the_seal(ctx).close(purpose, state)
}

/// The state of the round before, if there was one.
///
/// # Errors
///
/// Fails if the state is not one that was sealed for this purpose.
pub(crate) fn unseal<'a>(ctx: &'a RequestContext, purpose: &str) -> Result<Option<&'a str>, ErrorObject> {
    let open = |sealed| {
        let state = the_seal(ctx).open(purpose, sealed);
        state.ok_or_else(|| ErrorObject::invalid_params("`requestState` is not what this server sent"))
    };
    ctx.request_state().map(open).transpose()
}

fn the_seal(ctx: &RequestContext) -> &Seal {
    ctx.state().expect("the server is built with a seal")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_changed_does_not_open() {
        let seal = Seal::default();
        let sealed = seal.close("tool", "round-1");
        assert_eq!(seal.open("tool", &sealed), Some("round-1"));
        assert_eq!(seal.open("other", &sealed), None);
        assert_eq!(seal.open("tool", &format!("{sealed}-TAMPERED")), None);
        assert_eq!(seal.open("tool", &sealed.replace('1', "2")), None);
        assert_eq!(seal.open("tool", "round-1"), None);
        assert_eq!(Seal::default().open("tool", &sealed), None);
    }
}
