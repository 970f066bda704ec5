//! Which scopes a login requests.

use crate::Scopes;

/// The maximum number of scopes that are taken from metadata.
const MAX_SCOPES: usize = 100;
/// The scope that asks for a refresh token. It belongs to the authorization server, not to the resource.
const OFFLINE_ACCESS: &str = "offline_access";

/// What the choice of scopes depends on.
pub(super) struct ScopeSources<'a> {
    /// The scopes that the challenge demands.
    pub(super) challenge: Option<&'a Scopes>,
    /// The scopes that the configuration wants.
    pub(super) configured: &'a Scopes,
    /// `scopes_supported` of the resource.
    pub(super) resource: Option<&'a [String]>,
    /// The scopes that were requested before.
    pub(super) previous: &'a Scopes,
    /// `scopes_supported` of the authorization server.
    pub(super) server: Option<&'a [String]>,
    /// Whether a refresh token is wanted, and possible with this flow.
    pub(super) refresh: bool,
}

impl ScopeSources<'_> {
    /// Returns the scopes to request: those of the challenge, else those of the resource, together with those that were requested
    /// before, so that a login never loses what an earlier one obtained.
    pub(super) fn choose(&self) -> Scopes {
        let wanted = match self.challenge {
            Some(challenge) => challenge.union(self.configured),
            None if !self.configured.is_empty() => self.configured.clone(),
            None => self.of_resource(),
        };
        self.with_offline_access(wanted.union(self.previous))
    }

    /// Returns the scopes that a client registers for: also those that later logins are likely to need.
    pub(super) fn for_registration(&self) -> Scopes {
        self.with_offline_access(self.choose().union(&self.of_resource()))
    }

    fn of_resource(&self) -> Scopes {
        let scopes = self.resource.unwrap_or_default().iter().take(MAX_SCOPES);
        scopes.filter_map(|scope| scope.parse().ok()).fold(Scopes::new(), |all, scope: Scopes| all.union(&scope))
    }

    /// Requests a refresh token only where the authorization server says that this is the way to get one.
    fn with_offline_access(&self, scopes: Scopes) -> Scopes {
        let is_offered = self.server.unwrap_or_default().iter().any(|scope| scope == OFFLINE_ACCESS);
        let others = scopes.iter().filter(|scope| *scope != OFFLINE_ACCESS);
        others.chain((self.refresh && is_offered).then_some(OFFLINE_ACCESS)).collect()
    }
}

/// Whether a refresh token is asked for by a scope.
pub(super) fn asks_for_refresh(scopes: &Scopes) -> bool {
    scopes.contains(OFFLINE_ACCESS)
}
