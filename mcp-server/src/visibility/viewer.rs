//! The client to whom something is visible or not.

use std::any::Any;
use std::cell::OnceCell;
use std::sync::Arc;

use mcp_kernel::server::Principal;
use mcp_types::Implementation;

use crate::auth::info::AuthInfo;
use crate::connection::handle::ConnectionHandle;
use crate::connection::listen_streams::ListenStream;
use crate::serve::context::RequestContext;
use crate::server::Server;

/// The client to whom an item is visible or not, or who is notified of a change or not.
///
/// A predicate gets it where a request is served, and also where a notification is sent, which may be long after the
/// client's last request:
///
/// | | request | notification to a modern client | notification to a legacy client |
/// |---|---|---|---|
/// | [`principal`](Self::principal) | that of the request | that of `subscriptions/listen` | that of the client's last message |
/// | [`auth_info`](Self::auth_info) | that of the request | that of `subscriptions/listen` | that of the client's last message |
/// | [`extension`](Self::extension) | those of the request and the connection | those of `subscriptions/listen` and the connection | those of the connection |
/// | [`client_info`](Self::client_info) | that of the request | that of `subscriptions/listen` | that of the handshake |
/// | [`connection`](Self::connection), [`state`](Self::state) | yes | yes | yes |
///
/// Middleware that determines the user of a request attaches it to the request
/// ([`RequestContext::insert_extension`]), and for legacy clients to the connection as well
/// ([`Scratch::insert`](crate::Scratch::insert)): [`extension`](Self::extension) finds it in both. `subscriptions/listen` passes through
/// middleware, so that this works for its notifications, too.
pub struct Viewer<'a> {
    server: &'a Server,
    connection: &'a ConnectionHandle,
    source: Source<'a>,
}

/// Where the properties of the viewer come from.
enum Source<'a> {
    Request(&'a RequestContext),
    ListenStream(&'a ListenStream),
    /// A legacy client. Its handshake is decoded if the name is needed.
    Connection {
        principal: Option<&'a Principal>,
        auth: Option<&'a Arc<AuthInfo>>,
        client_info: OnceCell<Option<Implementation>>,
    },
}

impl<'a> Viewer<'a> {
    pub(crate) fn of_request(ctx: &'a RequestContext) -> Self {
        Self { server: ctx.server(), connection: ctx.connection(), source: Source::Request(ctx) }
    }

    pub(crate) fn of_listen_stream(
        server: &'a Server,
        connection: &'a ConnectionHandle,
        listener: &'a ListenStream,
    ) -> Self {
        Self { server, connection, source: Source::ListenStream(listener) }
    }

    pub(crate) fn of_connection(
        server: &'a Server,
        connection: &'a ConnectionHandle,
        principal: Option<&'a Principal>,
        auth: Option<&'a Arc<AuthInfo>>,
    ) -> Self {
        Self { server, connection, source: Source::Connection { principal, auth, client_info: OnceCell::new() } }
    }

    /// Returns the authenticated user, as the transport reported it; `None` on stdio.
    #[must_use]
    pub fn principal(&self) -> Option<&Principal> {
        match &self.source {
            Source::Request(ctx) => ctx.principal(),
            Source::ListenStream(listener) => listener.scope.principal(),
            Source::Connection { principal, .. } => *principal,
        }
    }

    /// Returns what the access token says.
    #[must_use]
    pub fn auth_info(&self) -> Option<AuthInfo> {
        let of_connection = match &self.source {
            Source::Connection { auth, .. } => auth.cloned(),
            Source::Request(_) | Source::ListenStream(_) => None,
        };
        of_connection.or_else(|| self.extension()).map(|auth| AuthInfo::clone(&auth))
    }

    /// Returns whether the token has a scope, as [`ServerBuilder::scope_policy`](crate::ServerBuilder::scope_policy) decides.
    #[must_use]
    pub fn has_scope(&self, scope: &str) -> bool {
        self.server.settings().admits_scope(self.auth_info().as_ref(), scope)
    }

    /// Returns a value by its type: one that the transport or middleware attached to the request, or else one that was stored
    /// for the connection with [`Scratch::insert`](crate::Scratch::insert).
    #[must_use]
    pub fn extension<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let of_request = match &self.source {
            Source::Request(ctx) => ctx.extension(),
            Source::ListenStream(listener) => listener.extensions.share(),
            Source::Connection { .. } => None,
        };
        of_request.or_else(|| self.connection.0.kept())
    }

    /// Returns the name and version that the client claims. They are not verified: use them for display and logs, never to
    /// protect something.
    #[must_use]
    pub fn client_info(&self) -> Option<&Implementation> {
        match &self.source {
            Source::Request(ctx) => ctx.client_info(),
            Source::ListenStream(listener) => listener.scope.client_info(),
            Source::Connection { client_info, .. } => {
                client_info.get_or_init(|| self.connection.0.lock().kernel.client_info()).as_ref()
            }
        }
    }

    /// Returns the connection of the client. Requests of modern clients, and of clients without a session, over HTTP have a
    /// connection of their own each.
    #[must_use]
    pub fn connection(&self) -> &ConnectionHandle {
        self.connection
    }

    /// Returns the server.
    #[must_use]
    pub fn server(&self) -> &Server {
        self.server
    }

    /// Returns a value that was added with [`ServerBuilder::state`](crate::ServerBuilder::state), by its type.
    #[must_use]
    pub fn state<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.server.state()
    }
}

impl std::fmt::Debug for Viewer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Viewer").field("principal", &self.principal()).finish_non_exhaustive()
    }
}
