//! Handles in the arguments of a call.
//!
//! Arguments are deserialized synchronously, and opening a handle may have to wait for a store. So the arguments are
//! deserialized twice: first to find the handles, and again when they are open, for the handler. If some of them are not
//! valid, the arguments are searched again, as an untagged enum may have another variant with other handles.

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

impl OpenedHandle {
    pub(crate) fn is_valid(&self) -> bool {
        self.handle.is_ok()
    }
}

/// What is done with handles that are deserialized.
struct Scope {
    /// The handles that were opened.
    opened: Rc<Vec<OpenedHandle>>,
    /// Collects further handles; `None` if they are refused.
    found: Option<Vec<FoundHandle>>,
}

impl Scope {
    fn finding(opened: Vec<OpenedHandle>) -> Self {
        Self { opened: Rc::new(opened), found: Some(Vec::new()) }
    }
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

/// Finds handles in arguments, beside those that were opened before, which it returns as well.
pub(crate) type FindHandles = fn(&str, Vec<OpenedHandle>) -> (FoundHandles, Vec<OpenedHandle>);

/// Finds the handles in arguments of type `A`.
pub(crate) fn find_all<A: DeserializeOwned>(
    arguments: &str,
    opened: Vec<OpenedHandle>,
) -> (FoundHandles, Vec<OpenedHandle>) {
    let restore = Restore(SCOPE.replace(Some(Scope::finding(opened))));
    let is_valid = serde_json::from_str::<A>(arguments).is_ok();
    let scope = SCOPE.take();
    drop(restore);
    let Some(Scope { opened, found }) = scope else { return (FoundHandles::InvalidArguments, Vec::new()) };
    let found = if is_valid { found.map(FoundHandles::Valid) } else { None };
    // No other reference outlives a search.
    (found.unwrap_or(FoundHandles::InvalidArguments), Rc::into_inner(opened).unwrap_or_default())
}

/// Calls a function that deserializes invalid arguments once more, to report the error.
pub(crate) fn without_opening<R>(call: impl FnOnce() -> R) -> R {
    let _restore = Restore(SCOPE.replace(Some(Scope::finding(Vec::new()))));
    call()
}

/// Calls a function that deserializes arguments with these handles.
pub(crate) fn with_opened<R>(opened: Vec<OpenedHandle>, call: impl FnOnce() -> R) -> R {
    let scope = Scope { opened: Rc::new(opened), found: None };
    let _restore = Restore(SCOPE.replace(Some(scope)));
    call()
}

/// Returns the handle that a text stands for, while arguments are deserialized.
pub(crate) fn find<T: HandleValue>(text: &str) -> Result<Handle<T>, String> {
    let value = TypeId::of::<T>();
    let opened = SCOPE.with_borrow(|scope| scope.as_ref().map(|scope| Rc::clone(&scope.opened)));
    let opened = opened.ok_or_else(|| {
        format!(
            "a {} handle can be deserialized only from the arguments of a tool whose schema has it; use \
             `ctx.handles().open(..)` elsewhere",
            T::NAME
        )
    })?;
    match opened.iter().find(|known| known.value == value && *known.text == *text).map(|known| &known.handle) {
        Some(Ok(handle)) => handle.downcast_ref::<Handle<T>>().cloned().ok_or_else(|| invalid::<T>().to_string()),
        Some(Err(error)) => Err(error.to_string()),
        None => collect::<T>(text, opened.len()),
    }
}

/// Collects a handle that is not open yet, if handles are searched.
fn collect<T: HandleValue>(text: &str, opened: usize) -> Result<Handle<T>, String> {
    let value = TypeId::of::<T>();
    SCOPE.with_borrow_mut(|scope| {
        let found = scope.as_mut().and_then(|scope| scope.found.as_mut());
        let found = found.ok_or_else(|| invalid::<T>().to_string())?;
        if !found.iter().any(|known| known.value == value && *known.text == *text) {
            if opened + found.len() >= MAX_HANDLES {
                return Err(format!("more than {MAX_HANDLES} handles in one call"));
            }
            found.push(FoundHandle { value, text: text.into(), open: open::<T> });
        }
        Ok(Handle::unopened())
    })
}

fn invalid<T: HandleValue>() -> HandleError {
    HandleError::Invalid { kind: T::NAME, hint: T::HINT }
}
