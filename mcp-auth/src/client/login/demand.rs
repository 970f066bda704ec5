//! What the challenges of a server demand of a login.

use crate::{Challenge, Scopes};

/// What the challenges of a server demand of a login.
#[derive(Debug, Default)]
pub(super) struct Demand {
    /// The address of the metadata of the resource.
    pub(super) resource_metadata: Option<String>,
    /// The scopes that the request needs.
    pub(super) scopes: Option<Scopes>,
    /// Whether the token was valid but had too few scopes.
    pub(super) is_step_up: bool,
    /// Whether only tokens that are bound to a key are accepted.
    pub(super) is_dpop: bool,
}

impl Demand {
    pub(super) fn new(challenges: &[Challenge]) -> Self {
        // Both schemes can be offered in one response, with parameters in either.
        let bearer = challenges.iter().filter(|challenge| challenge.is_bearer());
        let dpop = challenges.iter().filter(|challenge| challenge.is_dpop());
        let relevant: Vec<&Challenge> = bearer.chain(dpop).collect();
        Self {
            resource_metadata: relevant.iter().find_map(|challenge| challenge.resource_metadata()).map(str::to_owned),
            scopes: relevant.iter().find_map(|challenge| challenge.scope()),
            is_step_up: relevant.iter().any(|challenge| challenge.is_insufficient_scope()),
            is_dpop: !relevant.is_empty() && relevant.iter().all(|challenge| challenge.is_dpop()),
        }
    }
}
