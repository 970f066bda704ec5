//! What handles stand for.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A value that handles stand for: a kind of state between calls, with the texts that the model needs.
///
/// # Examples
///
/// ```
/// use mcp_server::HandleValue;
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
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the value of a handle",
    label = "not a value of handles",
    note = "implement `HandleValue` for it, with a `NAME`, a `HINT`, and serde's `Serialize` and `Deserialize`"
)]
pub trait HandleValue: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The name of this kind of handle, such as `basket`: up to 32 letters, digits, `-` and `_` of ASCII.
    ///
    /// Each handle begins with it, and is bound to it: a handle of another kind is not accepted. Changing the name
    /// invalidates the handles in circulation.
    const NAME: &'static str;

    /// Tells the model how to get a handle, such as "Call `open_basket` to get one."
    ///
    /// It is part of the descriptions of arguments, and of the error that the model gets for a handle that is not valid.
    const HINT: &'static str;
}
