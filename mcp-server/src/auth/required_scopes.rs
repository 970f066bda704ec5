//! Scopes that requests need.

use std::sync::Arc;

use mcp_types::ErrorObject;

use crate::auth::info::AuthInfo;
use crate::auth::insufficient_scope::InsufficientScope;
use crate::serve::context::RequestContext;

/// Decides whether a token has a scope.
pub(crate) type ScopePolicy = Arc<dyn Fn(Option<&AuthInfo>, &str) -> bool + Send + Sync>;

/// The scopes that something needs, all of them.
pub(crate) type RequiredScopes = Vec<Box<str>>;

/// Checks that the token of a request has the scopes that its method and its target need. The error names all of them, so that
/// a client has to ask its user once.
pub(crate) fn check_scopes(ctx: &RequestContext, target: &[Box<str>]) -> Result<(), ErrorObject> {
    let by_method = &ctx.server().settings().method_scopes;
    // Most servers have none.
    let method = if by_method.is_empty() { None } else { by_method.get(ctx.method()) };
    if target.is_empty() && method.is_none() {
        return Ok(());
    }
    let auth = ctx.auth_info();
    let required = || method.into_iter().flatten().chain(target).map(|scope| &**scope);
    match required().all(|scope| ctx.server().settings().admits_scope(auth.as_ref(), scope)) {
        true => Ok(()),
        false => Err(InsufficientScope::new(required()).into()),
    }
}

/// Whether a text is one scope (RFC 6749, section 3.3).
pub(crate) fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e))
}

/// Adds the setter of required scopes.
macro_rules! scope_setters {
    ($($kind:ident),* $(,)?) => {$(
        impl $kind {
            /// Requires a scope of the access token; several add up. A request without them gets an
            /// [`InsufficientScope`](crate::InsufficientScope) before the handler runs: over HTTP a 403, with which clients ask
            /// their user for more.
            ///
            /// It is listed nevertheless, so that clients know of it. To hide it from clients that could not use it, add
            /// `.visible(|viewer| viewer.has_scope(".."))`: then it does not exist for them.
            ///
            /// On stdio there is no token, so the request is refused, unless
            /// [`ServerBuilder::scope_policy`](crate::ServerBuilder::scope_policy) says otherwise.
            pub fn requires_scope(mut self, scope: impl Into<Box<str>>) -> Self {
                let scope = scope.into();
                if !crate::auth::required_scopes::is_scope(&scope) {
                    self.fault.get_or_insert_with(|| format!("`{scope}` is not one OAuth scope"));
                }
                self.scopes.push(scope);
                self
            }
        }
    )*};
}

pub(crate) use scope_setters;
