//! The scopes that requests need.

use std::sync::Arc;

use mcp_types::Method;

use crate::auth::info::AuthInfo;
use crate::auth::required_scopes::is_scope;
use crate::build::builder::ServerBuilder;
use crate::build::error::BuildError;

impl ServerBuilder {
    /// Requires a scope of the access token for all requests of a method; several add up, also with those of a tool
    /// ([`Tool::requires_scope`](crate::Tool::requires_scope)). Requests without them get an
    /// [`InsufficientScope`](crate::InsufficientScope). Methods of the handshake, `ping` and notifications need none.
    ///
    /// ```
    /// use mcp_server::Server;
    /// use mcp_server::types::Method;
    ///
    /// let builder = Server::builder("library", "1.0").requires_scope(Method::TOOLS_CALL, "tools:use");
    /// ```
    pub fn requires_scope(mut self, method: Method, scope: impl Into<Box<str>>) -> Self {
        let scope = scope.into();
        if !is_scope(&scope) {
            self.fault.get_or_insert_with(|| BuildError::InvalidScope { scope: scope.to_string() });
        }
        self.settings.method_scopes.entry(method).or_default().push(scope);
        self
    }

    /// Sets what decides whether a request has a scope. By default its token must have exactly that scope, and requests
    /// without a token have none.
    ///
    /// Use it for scopes that include others, unless the layer that verifies tokens knows of them, and for servers that are
    /// also used on stdio, where there are no tokens and the client is the user who started the server:
    ///
    /// ```
    /// use mcp_server::Server;
    ///
    /// let builder = Server::builder("library", "1.0")
    ///     .scope_policy(|auth, scope| auth.is_none_or(|auth| auth.has_scope(scope) || auth.has_scope("admin")));
    /// ```
    ///
    /// Over HTTP, requests without a token reach a server only if nothing authenticates them, and such a policy lets them in.
    pub fn scope_policy(mut self, policy: impl Fn(Option<&AuthInfo>, &str) -> bool + Send + Sync + 'static) -> Self {
        self.settings.scope_policy = Some(Arc::new(policy));
        self
    }
}
