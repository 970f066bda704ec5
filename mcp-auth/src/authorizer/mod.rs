//! Logging in, for clients over HTTP.
//!
//! [`OAuth`] is the [`Authorizer`](mcp_transport_http::Authorizer) of a server: it obtains tokens when the server demands them,
//! keeps them in a [`TokenStore`](crate::store::TokenStore), refreshes them, and never loses them to another task or process.

mod active_login;
mod backoff;
mod builder;
mod clock;
mod core;
mod credentials;
mod error;
mod login_run;
mod logins;
mod logout;
mod oauth;
mod prompt;
mod record;
mod renewal;
mod sender;
mod single_flight;
mod step_ups;
mod unattended_login;
mod user_login;

pub use async_trait::async_trait;

pub use self::builder::OAuthBuilder;
pub use self::error::{BuildError, OAuthError};
pub use self::oauth::OAuth;
#[cfg(feature = "browser")]
pub use self::prompt::BrowserPrompt;
pub use self::prompt::{
    AssertionSource, DevicePrompt, LoginPrompt, LoopbackListener, PendingLogin, PromptError, RedirectCheck,
    TerminalDevicePrompt, TerminalPrompt,
};
