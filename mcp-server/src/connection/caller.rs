//! The sender of a message.

use std::any::Any;
use std::sync::Arc;

use mcp_kernel::server::Principal;

use crate::auth::info::AuthInfo;
use crate::extensions::Extensions;

/// The sender of a message, as far as the transport knows it.
///
/// # Examples
///
/// ```
/// use mcp_server::{Caller, Principal};
///
/// let ann = Caller::default().principal(Principal::new(None, "ann")).extension("a note".to_owned());
/// assert!(ann.principal.is_some());
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Caller {
    /// The authenticated user, if any.
    pub principal: Option<Principal>,
    /// Values for handlers, which they get with [`RequestContext::extension`](crate::RequestContext::extension).
    pub extensions: Extensions,
}

impl Caller {
    /// Sets the authenticated user.
    #[must_use]
    pub fn principal(mut self, principal: Principal) -> Self {
        self.principal = Some(principal);
        self
    }

    /// Sets the user and adds what the access token says, for handlers that take an [`AuthInfo`].
    #[must_use]
    pub fn auth_info(mut self, auth: Arc<AuthInfo>) -> Self {
        self.principal = Some(auth.principal().clone());
        self.extensions.insert_shared(auth);
        self
    }

    /// Adds a value for handlers, which they get by its type with
    /// [`RequestContext::extension`](crate::RequestContext::extension).
    #[must_use]
    pub fn extension<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.extensions.insert(value);
        self
    }
}

/// Implements the methods that tell the caller, for types with a field `caller`. The request is the one that the documentation
/// names.
macro_rules! caller_accessors {
    ($type:ident, $user:literal, $request:literal) => {
        impl $type {
            #[doc = concat!("Returns the authenticated user", $user, ", as the transport reported it; `None` on stdio.")]
            #[must_use]
            pub fn principal(&self) -> Option<&mcp_kernel::server::Principal> {
                self.caller.principal.as_ref()
            }

            #[doc = concat!("Returns a value that the transport attached to the request", $request, ", by its type.")]
            ///
            /// Over HTTP there is an `http::request::Parts`, as in
            /// [`RequestContext::extension`](crate::RequestContext::extension).
            #[must_use]
            pub fn extension<T: std::any::Any + Send + Sync>(&self) -> Option<std::sync::Arc<T>> {
                self.caller.extensions.share()
            }
        }
    };
}

pub(crate) use caller_accessors;
