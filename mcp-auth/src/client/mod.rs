//! Logging in: the flows of a client.

mod action;
mod config;
mod error;
mod grant;
mod http;
mod login;
mod refresh;
mod registration;
mod revocation;
mod tokens;

pub use action::{Action, AssertionKind, AssertionRequest, DeviceCode, OpenBrowser, Save};
pub use config::{
    DpopKey, Flow, IdentityProvider, InvalidConfig, LoginConfig, PreRegistered, Stored, SubjectTokenType,
};
pub use error::{LoginError, OAuthError};
pub use grant::Grant;
pub use http::{ClientAssertion, DpopProof, FetchError, HttpMethod, HttpRequest, HttpResponse};
pub use login::{Login, RedirectError};
pub use refresh::Refresh;
pub use registration::{ClientAuthentication, Registration};
pub use revocation::Revocation;
pub use tokens::{TokenType, Tokens};
