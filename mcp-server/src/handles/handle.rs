//! A handle, as tools take and return it.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::handles::access::Replaced;
use crate::handles::caller::{CallerHandles, decode, encode};
use crate::handles::error::HandleError;
use crate::handles::value::HandleValue;
use crate::handles::{decoding, schema};

/// A handle: a text that stands for a value of the server, from one call to the next.
///
/// The arguments of a tool can contain handles, also in an `Option` or a `Vec`. They are opened before the handler runs, and
/// dereference to their values. One that is unknown, expired, revoked, of another kind or of another user is an argument
/// error, which tells the model how to get a new one ([`HandleValue::HINT`]). A call can have up to 64 handles.
///
/// A handle is serialized as its text, so the result of a tool can contain it; see [`RequestContext::handles`] for how to
/// mint one. Return the handle again after an [`update`](Self::update), as a sealed one has another text then.
///
/// The server must have [`Handles`](crate::Handles) of the type. A handle can be deserialized only from the arguments of a
/// tool; elsewhere, use [`CallerHandles::open`].
///
/// [`RequestContext::handles`]: crate::RequestContext::handles
///
/// # Examples
///
/// ```
/// use mcp_server::{Handle, HandleError, HandleValue, Handles, RequestContext, Server, tool};
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Default, Serialize, Deserialize)]
/// struct Basket {
///     items: Vec<String>,
/// }
///
/// impl HandleValue for Basket {
///     const NAME: &'static str = "basket";
///     const HINT: &'static str = "Call `open_basket` to get one.";
/// }
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Add {
///     basket: Handle<Basket>,
///     item: String,
/// }
///
/// async fn add(_: RequestContext, Add { mut basket, item }: Add) -> Result<String, HandleError> {
///     basket.update(|basket| basket.items.push(item.clone())).await?;
///     Ok(format!("{} items are in the basket {}", basket.items.len(), basket.text()))
/// }
///
/// let server = Server::builder("shop", "1.0").handles(Handles::<Basket>::in_memory()).tool(tool("add", add)).build()?;
/// # Ok::<(), mcp_server::BuildError>(())
/// ```
pub struct Handle<T>(Option<Opening<T>>);

/// An open handle. Only while arguments are searched for handles are there handles without one.
struct Opening<T> {
    text: Arc<str>,
    value: Arc<T>,
    version: u64,
    caller: CallerHandles<T>,
}

impl<T> Opening<T> {
    fn changed(&mut self, text: Option<String>, value: T, version: u64) {
        (self.value, self.version) = (Arc::new(value), version);
        if let Some(text) = text {
            self.text = text.into();
        }
    }
}

/// How often an update starts again because other calls were faster.
const MAX_ATTEMPTS: usize = 16;

impl<T> Handle<T> {
    pub(crate) fn new(text: impl Into<Arc<str>>, value: T, version: u64, caller: CallerHandles<T>) -> Self {
        Self(Some(Opening { text: text.into(), value: Arc::new(value), version, caller }))
    }

    /// A handle that was found in arguments, but is not open yet.
    pub(crate) fn unopened() -> Self {
        Self(None)
    }

    fn opening(&self) -> &Opening<T> {
        self.0.as_ref().expect(UNOPENED)
    }

    fn opening_mut(&mut self) -> &mut Opening<T> {
        self.0.as_mut().expect(UNOPENED)
    }

    /// Returns the text of the handle, for a result. It gives access to the value, so it should not be logged.
    ///
    /// # Panics
    ///
    /// Panics where [`deref`](Self::deref) does.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.opening().text
    }
}

const UNOPENED: &str = "a handle was used while the arguments of its tool were deserialized: use it in the handler";

impl<T: HandleValue> Handle<T> {
    /// Changes the value, and renews the lifetime of the handle.
    ///
    /// `change` gets the current value, which may be newer than the one of this call. It runs again if another call changes
    /// the value of a stored handle at the same time. A sealed handle is replaced by another one, with another text; the
    /// previous one stays valid unless there is a [replay guard](crate::Handles::replay_guard).
    ///
    /// With a modern client, a handler that sends requests to the client runs again when the response arrives: update
    /// the value after the last request, or in [`RequestContext::once`](crate::RequestContext::once).
    ///
    /// # Errors
    ///
    /// Returns an error if the handle is not valid any more, if the value is too large, if the store does not respond, or if
    /// other calls change the value too often. The value is the same as before then.
    ///
    /// # Panics
    ///
    /// Panics where [`deref`](Self::deref) does.
    pub async fn update<R>(&mut self, mut change: impl FnMut(&mut T) -> R) -> Result<R, HandleError> {
        let this = self.opening_mut();
        let access = this.caller.access()?;
        let mut opened = access.open(&this.text).await?;
        for _ in 0..MAX_ATTEMPTS {
            let mut value: T = decode(&access, &opened.json)?;
            let output = change(&mut value);
            let json = encode(&access, &value)?;
            match access.replace(&this.text, &json, opened.version).await? {
                Replaced::Done { text, version } => {
                    this.changed(text, value, version);
                    return Ok(output);
                }
                Replaced::Changed(there) => opened = there,
            }
        }
        Err(HandleError::Conflict { kind: T::NAME })
    }

    /// Replaces the value, if no other call has changed it since this handle was opened, and renews the lifetime of the
    /// handle. A sealed handle has another text then; without a replay guard, other changes are not detected.
    ///
    /// # Errors
    ///
    /// Returns [`HandleError::Conflict`] if another call has changed the value, or the errors of [`update`](Self::update).
    ///
    /// # Panics
    ///
    /// Panics where [`deref`](Self::deref) does.
    pub async fn replace(&mut self, value: T) -> Result<(), HandleError> {
        let this = self.opening_mut();
        let access = this.caller.access()?;
        match access.replace(&this.text, &encode(&access, &value)?, this.version).await? {
            Replaced::Done { text, version } => {
                this.changed(text, value, version);
                Ok(())
            }
            Replaced::Changed(_) => Err(HandleError::Conflict { kind: T::NAME }),
        }
    }

    /// Uses the handle up, and returns its current value: of several calls with one handle, also at the same time, only one
    /// succeeds.
    ///
    /// A handler that sends requests to the client should do so before, as it runs again with the same arguments when the
    /// response of a modern client arrives.
    ///
    /// # Errors
    ///
    /// Returns [`HandleError::Invalid`] if the handle is not valid any more, or another error if the store does not respond,
    /// or if the handle is sealed and there is no replay guard.
    ///
    /// # Panics
    ///
    /// Panics where [`deref`](Self::deref) does.
    pub async fn take(self) -> Result<T, HandleError> {
        let this = self.opening();
        let access = this.caller.access()?;
        let json = access.take(&this.text).await?;
        decode(&access, &json)
    }

    /// Revokes the handle. It is not an error if it is not valid any more.
    ///
    /// # Errors
    ///
    /// Returns an error if the store does not respond, or if the handle is sealed and there is no replay guard.
    ///
    /// # Panics
    ///
    /// Panics where [`deref`](Self::deref) does.
    pub async fn revoke(self) -> Result<(), HandleError> {
        let this = self.opening();
        match this.caller.access()?.take(&this.text).await {
            Ok(_) | Err(HandleError::Invalid { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl<T> Deref for Handle<T> {
    type Target = T;

    /// Returns the value as it was when the handle was opened or last updated.
    ///
    /// # Panics
    ///
    /// Panics if it is called while the arguments of the tool are being deserialized, by a `Deserialize` of the application:
    /// the handle is opened after that, before the handler runs.
    fn deref(&self) -> &T {
        &self.opening().value
    }
}

/// Clones share the value that was opened; an update of one is not seen by the others.
impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        Self(self.0.as_ref().map(|Opening { text, value, version, caller }| Opening {
            text: Arc::clone(text),
            value: Arc::clone(value),
            version: *version,
            caller: caller.clone(),
        }))
    }
}

/// Shows neither the text nor the value.
impl<T: HandleValue> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("kind", &T::NAME).finish_non_exhaustive()
    }
}

/// Serializes the text.
impl<T> Serialize for Handle<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(opening) => serializer.serialize_str(&opening.text),
            None => Err(serde::ser::Error::custom(UNOPENED)),
        }
    }
}

impl<'de, T: HandleValue> Deserialize<'de> for Handle<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor(PhantomData))
    }
}

struct TextVisitor<T>(PhantomData<fn() -> T>);

impl<T: HandleValue> Visitor<'_> for TextVisitor<T> {
    type Value = Handle<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a {} handle, which is a string", T::NAME)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Handle<T>, E> {
        decoding::find(text).map_err(E::custom)
    }
}

impl<T: HandleValue> JsonSchema for Handle<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Handle_of_{}", T::NAME).into()
    }

    fn schema_id() -> Cow<'static, str> {
        format!("mcp_server::Handle<{}>", std::any::type_name::<T>()).into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema::of_handle::<T>()
    }
}
