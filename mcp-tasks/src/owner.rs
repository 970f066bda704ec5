//! Owners of tasks.

use std::fmt;

use mcp_kernel::server::Principal;
use mcp_mrtr::Binding;

/// The owner of tasks: a digest of a principal and a server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_structs, reason = "bytes with a meaning")]
pub struct TaskOwner(pub [u8; 32]);

impl TaskOwner {
    /// Creates the owner for a principal. `audience` names the server, so that servers that share a store do not share the
    /// tasks of a user.
    #[must_use]
    pub fn new(principal: &Principal, audience: &str) -> Self {
        let user = Some((principal.issuer.as_deref(), &*principal.subject));
        Self(Binding::handle(user, audience, mcp_types::tasks::EXTENSION).store_key(b"owner"))
    }
}

impl fmt::Debug for TaskOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, ..] = self.0;
        write!(f, "TaskOwner({a:02x}{b:02x}{c:02x}..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_differ_by_user_issuer_and_server() {
        let owner = |issuer, subject, audience| TaskOwner::new(&Principal::new(issuer, subject), audience);
        let owners = [
            owner(None, "ann", "a"),
            owner(None, "bob", "a"),
            owner(None, "ann", "b"),
            owner(Some("https://issuer.example"), "ann", "a"),
        ];
        for (index, one) in owners.iter().enumerate() {
            assert_eq!(owners.iter().filter(|other| *other == one).count(), 1, "{index}");
        }
        assert_eq!(owner(None, "ann", "a"), owners[0]);
    }
}
