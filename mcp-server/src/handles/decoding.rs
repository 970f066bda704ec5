//! Handles in the arguments of a call.
//!
//! Arguments are deserialized synchronously, and opening a handle may have to wait for a store. So the arguments are
//! deserialized twice: first to find the handles, and again when they are open, for the handler.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::handles::error::HandleError;
use crate::handles::handle::Handle;
use crate::handles::value::HandleValue;
use crate::serve::context::RequestContext;

/// The maximum number of different handles in the arguments of a call.
const MAX_HANDLES: usize = 64;

/// The handles in the arguments of a call.
pub(crate) enum FoundHandles {
    /// The arguments are valid, if these are.
    Valid(Vec<FoundHandle>),
    /// The arguments are not valid, whatever their handles are.
    InvalidArguments,
}

/// A handle that was found in arguments.
pub(crate) struct FoundHandle {
    value: TypeId,
    text: Arc<str>,
    open: for<'a> fn(&'a RequestContext, &'a str) -> OpenFuture<'a>,
}

type OpenFuture<'a> = Pin<Box<dyn Future<Output = Result<AnyHandle, HandleError>> + Send + 'a>>;

/// A [`Handle`] of any type.
type AnyHandle = Box<dyn Any + Send + Sync>;

/// A handle that was opened, or the reason why it is not valid.
pub(crate) struct OpenedHandle {
    value: TypeId,
    text: Arc<str>,
    handle: Result<AnyHandle, HandleError>,
}

impl FoundHandle {
    /// Opens the handle for the caller of a request.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not known whether the handle is valid.
    pub(crate) async fn open(self, ctx: &RequestContext) -> Result<OpenedHandle, HandleError> {
        let handle = match (self.open)(ctx, &self.text).await {
            Err(error) if !matches!(error, HandleError::Invalid { .. }) => return Err(error),
            opened => opened,
        };
        Ok(OpenedHandle { value: self.value, text: self.text, handle })
    }
}

fn open<'a, T: HandleValue>(ctx: &'a RequestContext, text: &'a str) -> OpenFuture<'a> {
    let caller = ctx.handles::<T>();
    Box::pin(async move { Ok(Box::new(caller.open(text).await?) as AnyHandle) })
}

/// What is done with handles that are deserialized.
enum Scope {
    /// They are collected.
    Finding(Vec<FoundHandle>),
    /// They are replaced by those that were opened.
    Opened(Rc<[OpenedHandle]>),
}

thread_local! {
    static SCOPE: RefCell<Option<Scope>> = const { RefCell::new(None) };
}

/// Restores the previous scope when it is dropped, also if deserializing panics.
struct Restore(Option<Scope>);

impl Drop for Restore {
    fn drop(&mut self) {
        drop(SCOPE.replace(self.0.take()));
    }
}

/// Finds the handles in arguments of type `A`.
pub(crate) fn find_all<A: DeserializeOwned>(arguments: &str) -> FoundHandles {
    let restore = Restore(SCOPE.replace(Some(Scope::Finding(Vec::new()))));
    let is_valid = serde_json::from_str::<A>(arguments).is_ok();
    let scope = SCOPE.take();
    drop(restore);
    match scope {
        Some(Scope::Finding(found)) if is_valid => FoundHandles::Valid(found),
        _ => FoundHandles::InvalidArguments,
    }
}

/// Calls a function that deserializes invalid arguments once more, to report the error.
pub(crate) fn without_opening<R>(call: impl FnOnce() -> R) -> R {
    let _restore = Restore(SCOPE.replace(Some(Scope::Finding(Vec::new()))));
    call()
}

/// Calls a function that deserializes arguments with these handles.
pub(crate) fn with_opened<R>(handles: Vec<OpenedHandle>, call: impl FnOnce() -> R) -> R {
    let _restore = Restore(SCOPE.replace(Some(Scope::Opened(handles.into()))));
    call()
}

/// Returns the handle that a text stands for, while arguments are deserialized.
pub(crate) fn find<T: HandleValue>(text: &str) -> Result<Handle<T>, String> {
    let value = TypeId::of::<T>();
    let opened = SCOPE.with_borrow_mut(|scope| match scope {
        None => Err(format!(
            "a {} handle can be deserialized only from the arguments of a tool whose schema has it; \
             use `ctx.handles().open(..)` elsewhere",
            T::NAME
        )),
        Some(Scope::Finding(found)) => {
            if found.iter().any(|known| known.value == value && *known.text == *text) {
                return Ok(None);
            }
            if found.len() >= MAX_HANDLES {
                return Err(format!("more than {MAX_HANDLES} handles in one call"));
            }
            found.push(FoundHandle { value, text: text.into(), open: open::<T> });
            Ok(None)
        }
        Some(Scope::Opened(handles)) => Ok(Some(Rc::clone(handles))),
    })?;
    let Some(handles) = opened else { return Ok(Handle::unopened()) };
    let found = handles.iter().find(|known| known.value == value && *known.text == *text);
    match found.map(|found| &found.handle) {
        Some(Ok(handle)) => handle.downcast_ref::<Handle<T>>().cloned().ok_or_else(|| invalid::<T>().to_string()),
        Some(Err(error)) => Err(error.to_string()),
        None => Err(invalid::<T>().to_string()),
    }
}

fn invalid<T: HandleValue>() -> HandleError {
    HandleError::Invalid { kind: T::NAME, hint: T::HINT }
}
