//! Logging in: the flows of a client.
//!
//! Each flow is a machine without I/O: [`Login`] obtains tokens, [`Refresh`] replaces them, [`Revocation`] gives them up. A
//! machine says what to do next (an [`Action`]: send this request, open this page, save this) and takes the result, so that any
//! program can drive it, and tests need neither sockets nor clocks.
//!
//! A [`LoginConfig`] says what to log in to and how ([`Flow`]). What machines save is a [`Registration`] for each
//! authorization server, and a [`Grant`] with the tokens for each server.

mod action;
mod config;
mod endpoint;
mod error;
mod grant;
mod http;
mod login;
mod outbox;
mod redaction;
mod refresh;
mod register;
mod registration;
mod revocation;
mod tokens;

pub use action::{Action, AssertionKind, AssertionRequest, DeviceCode, OpenBrowser, Save};
pub use config::{
    DpopKey, Flow, IdentityProvider, InvalidConfig, LoginConfig, PreRegistered, Stored, SubjectTokenType,
};
#[cfg(feature = "authorizer")]
pub(crate) use endpoint::DpopNonce;
pub use error::{ErrorResponse, LoginError};
pub use grant::Grant;
pub use http::{ClientAssertion, DpopProof, HttpMethod, HttpRequest, HttpResponse, RequestError};
pub use login::{Login, RedirectError};
pub use refresh::Refresh;
pub use registration::{ClientAuthentication, Registration};
pub use revocation::Revocation;
pub use tokens::{TokenType, Tokens};
