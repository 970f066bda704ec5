//! The calls that messages of the server belong to.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::input::CallInputHandler;

/// The context of a message of the server: the call that it belongs to, if that is known.
///
/// It is known for all messages of a modern server that belong to a call, and for those of a legacy server over HTTP, where
/// each call has its own stream. On a pipe, such as the standard streams of a child process, messages of a legacy server do
/// not say so: an elicitation or sampling request belongs to the call in flight if it is the only one and none was cancelled
/// before, and other messages belong to none.
///
/// # Examples
///
/// ```
/// use mcp_client::Client;
/// use mcp_client::types::{ElicitAction, ElicitResult};
///
/// struct User(&'static str);
///
/// let builder = Client::builder("example", "1.0").on_form_elicitation(async |context, form| {
///     match context.extension::<User>() {
///         Some(User(name)) => eprintln!("to {name}: {}", form.message),
///         None => eprintln!("to all users: {}", form.message),
///     }
///     ElicitResult::new(ElicitAction::Decline)
/// });
/// # async fn call(client: Client) -> Result<(), mcp_client::Error> {
/// let result = client.call_tool("book").extension(User("Ada")).await?;
/// # drop(result);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct MessageContext {
    call: Option<CallContext>,
}

impl MessageContext {
    pub(crate) fn new(call: Option<CallContext>) -> Self {
        Self { call }
    }

    /// Returns the values that are attached to the call that the message belongs to, or `None` if the call is not known.
    #[must_use]
    pub fn call(&self) -> Option<&CallExtensions> {
        self.call.as_ref().map(|call| &call.extensions)
    }

    /// Returns a value that [`Call::extension`](crate::Call::extension) attached to the call.
    #[must_use]
    pub fn extension<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.call()?.get()
    }

    /// Returns the handler of the call's own input requests.
    pub(crate) fn input_handler(&self) -> Option<&CallInputHandler> {
        self.call.as_ref()?.on_input.as_ref()
    }
}

/// The values that [`Call::extension`](crate::Call::extension) attached to a call, one of each type.
///
/// They are not sent. Handlers of the call's server-to-client requests get them in their [`MessageContext`], and transports
/// in the [`OutgoingMessage`](crate::OutgoingMessage) of the call, to select its credentials.
#[derive(Clone, Default)]
pub struct CallExtensions(Option<Arc<Vec<Arc<dyn Any + Send + Sync>>>>);

impl CallExtensions {
    pub(crate) fn insert<T: Any + Send + Sync>(&mut self, value: T) {
        let values = Arc::make_mut(self.0.get_or_insert_default());
        values.retain(|present| !present.is::<T>());
        values.push(Arc::new(value));
    }

    /// Returns the value of a type.
    #[must_use]
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.as_ref()?.iter().find_map(|value| value.downcast_ref())
    }

    /// Returns whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl fmt::Debug for CallExtensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The values may be secrets.
        f.debug_struct("CallExtensions").field("len", &self.0.as_ref().map_or(0, |values| values.len())).finish()
    }
}

/// What the caller attached to a call. Empty without an allocation.
#[derive(Clone, Default)]
pub(crate) struct CallContext {
    pub(crate) extensions: CallExtensions,
    pub(crate) on_input: Option<CallInputHandler>,
}

impl fmt::Debug for CallContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.extensions.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_value_of_each_type() {
        let mut extensions = CallExtensions::default();
        assert!(extensions.is_empty() && extensions.get::<u8>().is_none());
        extensions.insert(1_u8);
        let before = extensions.clone();
        extensions.insert("a");
        extensions.insert(2_u8);
        assert_eq!((extensions.get::<u8>(), extensions.get::<&str>()), (Some(&2), Some(&"a")));
        assert_eq!((before.get::<u8>(), before.get::<&str>()), (Some(&1), None));
        assert_eq!(format!("{extensions:?}"), "CallExtensions { len: 2 }");
    }
}
