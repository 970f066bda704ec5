//! The values that functions can take from the context of a request.

use std::any::{Any, type_name};
use std::future::ready;
use std::ops::Deref;
use std::sync::Arc;

use mcp_kernel::server::Principal;
use mcp_types::ErrorObject;

use crate::auth::info::AuthInfo;
use crate::connection::handle::ConnectionHandle;
use crate::connection::session::Session;
use crate::handlers::error::HandlerError;
use crate::handlers::extract::Requirements;
use crate::serve::context::RequestContext;
use crate::serve::progress::Progress;
use crate::server::Server;

/// The types that the function of a handler can take as a parameter, made from the context of the request.
///
/// The library has [`RequestContext`], [`State`], [`Principal`], [`AuthInfo`], [`Extension`], [`Session`],
/// [`ConnectionHandle`], [`Server`] and [`ProgressReporter`]. Applications implement it for types of their own.
///
/// # Examples
///
/// ```
/// use mcp_server::extract::{FromContext, Requirements, State};
/// use mcp_server::{HandlerError, Principal, RequestContext, tool_fn};
///
/// struct Users(Vec<(String, String)>);
///
/// /// The user of the request, with a name.
/// struct User { name: String }
///
/// impl FromContext for User {
///     // The server is not built if it lacks this state.
///     fn require(requirements: &mut Requirements) {
///         requirements.state::<Users>();
///     }
///
///     async fn from_context(ctx: &RequestContext) -> Result<Self, HandlerError> {
///         let principal = Principal::from_context(ctx).await?;
///         let State(users) = State::<Users>::from_context(ctx).await?;
///         let found = users.0.iter().find(|(id, _)| **id == *principal.subject);
///         let (_, name) = found.ok_or(HandlerError::new("unknown user"))?;
///         Ok(Self { name: name.clone() })
///     }
/// }
///
/// async fn who_am_i(user: User) -> String {
///     user.name
/// }
///
/// let who_am_i = tool_fn("who_am_i", who_am_i);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be taken from the context of a request",
    note = "use `State<T>`, `Principal`, `Extension<T>`, `Session` or another type of `mcp_server::extract`, or implement `FromContext`"
)]
pub trait FromContext: Sized + Send + 'static {
    /// Adds what the server must have for this type. The default adds nothing.
    fn require(requirements: &mut Requirements) {
        let _ = requirements;
    }

    /// Makes the value.
    ///
    /// # Errors
    ///
    /// Returns an error if the value cannot be made. It is treated like an error of the handler, which is not called.
    fn from_context(ctx: &RequestContext) -> impl Future<Output = Result<Self, HandlerError>> + Send;
}

impl FromContext for RequestContext {
    fn from_context(ctx: &RequestContext) -> impl Future<Output = Result<Self, HandlerError>> + Send {
        ready(Ok(ctx.clone()))
    }
}

impl FromContext for Server {
    fn from_context(ctx: &RequestContext) -> impl Future<Output = Result<Self, HandlerError>> + Send {
        ready(Ok(ctx.server().clone()))
    }
}

impl FromContext for ConnectionHandle {
    fn from_context(ctx: &RequestContext) -> impl Future<Output = Result<Self, HandlerError>> + Send {
        ready(Ok(ctx.connection().clone()))
    }
}

/// The application's state of this type, which was added with [`ServerBuilder::state`](crate::ServerBuilder::state).
///
/// It dereferences to the state. A server that lacks it is not built.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "a wrapper around one value")]
pub struct State<T>(pub Arc<T>);

impl<T: Any + Send + Sync> FromContext for State<T> {
    fn require(requirements: &mut Requirements) {
        requirements.state::<T>();
    }

    fn from_context(ctx: &RequestContext) -> impl Future<Output = Result<Self, HandlerError>> + Send {
        ready(ctx.server().shared_state().map(Self).ok_or_else(|| {
            HandlerError::not_set_up(format!(
                "there is no state `{}`: add it with `ServerBuilder::state`",
                type_name::<T>()
            ))
        }))
    }
}

/// A value of this type that the transport or a layer attached to the request
/// ([`RequestContext::insert_extension`]).
///
/// It dereferences to the value. A request without it fails before the handler is called, unless the parameter is an
/// `Option`. An extension of the protocol is a [`ProtocolExtension`](crate::ProtocolExtension).
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "a wrapper around one value")]
pub struct Extension<T>(pub Arc<T>);

impl<T: Any + Send + Sync> FromContext for Extension<T> {
    fn from_context(ctx: &RequestContext) -> impl Future<Output = Result<Self, HandlerError>> + Send {
        ready(ctx.extension().map(Self).ok_or_else(|| {
            let name = type_name::<T>();
            HandlerError::not_set_up(format!(
                "no layer attached a `{name}`: call `ctx.insert_extension`, or take an `Option`"
            ))
        }))
    }
}

impl<T: Any + Send + Sync> FromContext for Option<Extension<T>> {
    fn from_context(ctx: &RequestContext) -> impl Future<Output = Result<Self, HandlerError>> + Send {
        ready(Ok(ctx.extension().map(Extension)))
    }
}

macro_rules! shared {
    ($($kind:ident),*) => {$(
        impl<T> Deref for $kind<T> {
            type Target = T;

            fn deref(&self) -> &T {
                &self.0
            }
        }

        impl<T> Clone for $kind<T> {
            fn clone(&self) -> Self {
                Self(Arc::clone(&self.0))
            }
        }
    )*};
}

shared!(State, Extension);

/// The authenticated user of the request. A request without one gets the error -32600, and the handler is not called.
impl FromContext for Principal {
    fn from_context(ctx: &RequestContext) -> impl Future<Output = Result<Self, HandlerError>> + Send {
        let missing = || ErrorObject::invalid_request("this request needs an authenticated user").into();
        ready(ctx.principal().cloned().ok_or_else(missing))
    }
}

impl FromContext for Option<Principal> {
    fn from_context(ctx: &RequestContext) -> impl Future<Output = Result<Self, HandlerError>> + Send {
        ready(Ok(ctx.principal().cloned()))
    }
}

/// What the access token of the request says. A request without one gets the error -32600, and the handler is not called.
impl FromContext for AuthInfo {
    fn from_context(ctx: &RequestContext) -> impl Future<Output = Result<Self, HandlerError>> + Send {
        let missing = || ErrorObject::invalid_request("this request needs an access token").into();
        ready(ctx.auth_info().ok_or_else(missing))
    }
}

impl FromContext for Option<AuthInfo> {
    fn from_context(ctx: &RequestContext) -> impl Future<Output = Result<Self, HandlerError>> + Send {
        ready(Ok(ctx.auth_info()))
    }
}

/// The session of the request. A request without one fails with [`NoSession`](crate::NoSession), and the handler is not called.
impl FromContext for Session {
    fn from_context(ctx: &RequestContext) -> impl Future<Output = Result<Self, HandlerError>> + Send {
        ready(Self::of_request(ctx).map_err(HandlerError::from))
    }
}

impl FromContext for Option<Session> {
    fn from_context(ctx: &RequestContext) -> impl Future<Output = Result<Self, HandlerError>> + Send {
        ready(Ok(Session::of_request(ctx).ok()))
    }
}

/// Reports the progress of the request, for functions that need nothing else of the context.
#[derive(Clone, Debug)]
pub struct ProgressReporter(RequestContext);

impl ProgressReporter {
    /// Sends a progress notification; see [`RequestContext::progress`].
    pub fn report(&self, progress: impl Into<Progress>) {
        self.0.progress(progress);
    }
}

impl FromContext for ProgressReporter {
    fn from_context(ctx: &RequestContext) -> impl Future<Output = Result<Self, HandlerError>> + Send {
        ready(Ok(Self(ctx.clone())))
    }
}
