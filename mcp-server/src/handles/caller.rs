//! The handles of one caller.

use std::fmt;
use std::marker::PhantomData;

use mcp_kernel::server::Principal;
use mcp_mrtr::Binding;

use crate::handles::access::{Access, Opened};
use crate::handles::error::{HandleError, HandleMisuse};
use crate::handles::handle::Handle;
use crate::handles::value::HandleValue;
use crate::serve::context::RequestContext;
use crate::server::Server;

/// The handles of one kind that belong to one caller: mints, opens, lists and revokes them.
///
/// Handlers get it from [`RequestContext::handles`], other code from [`Server::handles_of`].
pub struct CallerHandles<T> {
    server: Server,
    binding: Binding,
    is_anonymous: bool,
    value: PhantomData<fn() -> T>,
}

impl<T: HandleValue> CallerHandles<T> {
    fn new(server: &Server, principal: Option<&Principal>) -> Self {
        let by = principal.map(|principal| (principal.issuer.as_deref(), &*principal.subject));
        let binding = Binding::handle(by, &server.info().name, T::NAME);
        Self { server: server.clone(), binding, is_anonymous: principal.is_none(), value: PhantomData }
    }

    /// Mints a handle for a value.
    ///
    /// # Errors
    ///
    /// Returns an error if the value is too large, if the store is full or does not respond, or if the server has no
    /// [`Handles`](crate::Handles) of this type.
    pub async fn mint(&self, value: T) -> Result<Handle<T>, HandleError> {
        let access = self.access()?;
        let (text, version) = access.mint(&encode(&access, &value)?).await?;
        Ok(Handle::new(text, value, version, self.clone()))
    }

    /// Opens a handle that did not arrive as an argument of type [`Handle`], for example one of a prompt.
    ///
    /// # Errors
    ///
    /// Returns [`HandleError::Invalid`] if the handle is not valid for this caller, or another error if it cannot be checked.
    pub async fn open(&self, text: &str) -> Result<Handle<T>, HandleError> {
        let access = self.access()?;
        let Opened { json, version } = access.open(text).await?;
        Ok(Handle::new(text, decode(&access, &json)?, version, self.clone()))
    }

    /// Returns the stored handles of the principal, in no particular order. Their number is limited by the store.
    ///
    /// # Errors
    ///
    /// Returns an error if the handles are sealed, if the caller is anonymous, or if the store does not respond.
    pub async fn list(&self) -> Result<Vec<Handle<T>>, HandleError> {
        let access = self.access()?;
        let found = access.list().await?.into_iter().filter_map(|(text, Opened { json, version })| {
            Some(Handle::new(text, decode(&access, &json).ok()?, version, self.clone()))
        });
        Ok(found.collect())
    }

    /// Revokes all stored handles of the principal, for example when they log out, and returns how many there were.
    ///
    /// # Errors
    ///
    /// Returns an error if the handles are sealed, if the caller is anonymous, or if the store does not respond. Some of
    /// the handles may have been revoked then.
    pub async fn revoke_all(&self) -> Result<usize, HandleError> {
        let access = self.access()?;
        let mut revoked = 0;
        for (text, _) in access.list().await? {
            match access.take(&text).await {
                Ok(_) => revoked += 1,
                // It has expired, or was revoked by another call.
                Err(HandleError::Invalid { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(revoked)
    }

    pub(crate) fn access(&self) -> Result<Access<'_>, HandleError> {
        let settings = self.server.settings();
        let vault = settings.handles.get::<T>();
        let missing = HandleError::NotSupported { kind: T::NAME, cause: HandleMisuse::NotRegistered };
        let (name, hint, is_anonymous) = (T::NAME, T::HINT, self.is_anonymous);
        let (sealing, binding) = (&settings.asking, &self.binding);
        vault.map(|vault| Access { vault, sealing, binding, is_anonymous, name, hint }).ok_or(missing)
    }
}

/// Serializes a value.
pub(crate) fn encode<T: HandleValue>(access: &Access<'_>, value: &T) -> Result<Vec<u8>, HandleError> {
    serde_json::to_vec(value).map_err(|fault| {
        tracing::error!(target: "mcp", kind = T::NAME, %fault, "the value of a handle cannot be serialized");
        access.not_supported(HandleMisuse::Unserializable)
    })
}

/// Reads a value, which an earlier version of the server may have written.
pub(crate) fn decode<T: HandleValue>(access: &Access<'_>, json: &[u8]) -> Result<T, HandleError> {
    serde_json::from_slice(json).map_err(|fault| {
        tracing::warn!(target: "mcp", kind = T::NAME, %fault, "the value of a handle has another type");
        access.invalid()
    })
}

impl RequestContext {
    /// Returns the handles of the caller of this request, to mint and to list them. Tools get the handles in their arguments
    /// as [`Handle`]s.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_server::{Handle, HandleError, HandleValue, Json, NoArguments, RequestContext};
    ///
    /// #[derive(Default, serde::Serialize, serde::Deserialize)]
    /// struct Basket {
    ///     items: Vec<String>,
    /// }
    ///
    /// impl HandleValue for Basket {
    ///     const NAME: &'static str = "basket";
    ///     const HINT: &'static str = "Call `open_basket` to get one.";
    /// }
    ///
    /// #[derive(serde::Serialize, schemars::JsonSchema)]
    /// struct Opened {
    ///     basket: Handle<Basket>,
    /// }
    ///
    /// async fn open_basket(ctx: RequestContext, _: NoArguments) -> Result<Json<Opened>, HandleError> {
    ///     Ok(Json(Opened { basket: ctx.handles().mint(Basket::default()).await? }))
    /// }
    /// ```
    #[must_use]
    pub fn handles<T: HandleValue>(&self) -> CallerHandles<T> {
        CallerHandles::new(self.server(), self.principal())
    }
}

impl Server {
    /// Returns the handles of a principal, or of anonymous callers, outside of a request: for example to revoke them when a
    /// user logs out.
    #[must_use]
    pub fn handles_of<T: HandleValue>(&self, principal: Option<&Principal>) -> CallerHandles<T> {
        CallerHandles::new(self, principal)
    }
}

impl<T> Clone for CallerHandles<T> {
    fn clone(&self) -> Self {
        let (server, binding) = (self.server.clone(), self.binding.clone());
        Self { server, binding, is_anonymous: self.is_anonymous, value: PhantomData }
    }
}

impl<T: HandleValue> fmt::Debug for CallerHandles<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallerHandles").field("kind", &T::NAME).finish_non_exhaustive()
    }
}
