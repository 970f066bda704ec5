//! What a flow wants done.

use std::fmt;

use super::{Grant, HttpRequest, LoginError, Registration};
use crate::UnixTime;
use crate::address::shown;

/// What a flow wants done next.
#[derive(Debug)]
#[non_exhaustive]
pub enum Action {
    /// Send a request, then call `handle_response` or `handle_failure`.
    Fetch(HttpRequest),
    /// Let a user agree in a browser, then call `handle_redirect` with the address that the browser was sent back to.
    OpenBrowser(OpenBrowser),
    /// Show a user where to enter which code. Nothing has to be reported back: go on polling.
    ShowDeviceCode(DeviceCode),
    /// Poll again at that time.
    WaitUntil(UnixTime),
    /// Ask for what the authorization server knows the client by, then call `handle_client` or `handle_declined`.
    AskForClient {
        /// The issuer that the client has to be registered with.
        issuer: String,
    },
    /// Provide an assertion, then call `handle_assertion` or `handle_declined`.
    SupplyAssertion(AssertionRequest),
    /// Change what is stored, then call `handle_saved`.
    Save(Save),
    /// The flow succeeded. It is over.
    Done(Box<Grant>),
    /// The flow failed. It is over.
    Failed(LoginError),
    /// Nothing: the flow waits for the result of an earlier action, or is over.
    Idle,
}

/// A user has to agree in a browser.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenBrowser {
    /// The address to open. It is `https`, or `http` to this machine.
    pub url: String,
    /// The address that the browser will be sent back to.
    pub redirect_uri: String,
    /// The issuer of the authorization server, to tell the user who asks.
    pub issuer: String,
}

impl fmt::Debug for OpenBrowser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address has the state, which protects the redirect.
        f.debug_struct("OpenBrowser")
            .field("endpoint", &shown(&self.url))
            .field("redirect_uri", &self.redirect_uri)
            .field("issuer", &self.issuer)
            .finish()
    }
}

/// A user has to enter a code at another device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceCode {
    /// The code to enter.
    pub user_code: String,
    /// Where to enter it. It is `https`, or `http` to this machine.
    pub verification_uri: String,
    /// The same address with the code in it, for a link or a QR code, if the authorization server offers it.
    pub verification_uri_complete: Option<String>,
    /// When the code expires.
    pub expires_at: UnixTime,
}

/// An assertion that the host of the client has to provide.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssertionRequest {
    /// What the assertion is.
    pub kind: AssertionKind,
    /// Who the assertion has to be issued for: an authorization server for the identity of a workload, the client at the
    /// identity provider for the identity of a user.
    pub audience: String,
    /// The resource that access is wanted to.
    pub resource: String,
}

impl fmt::Debug for AssertionRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AssertionRequest")
            .field("kind", &self.kind)
            .field("audience", &self.audience)
            .field("resource", &shown(&self.resource))
            .finish()
    }
}

/// What an assertion is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AssertionKind {
    /// The token that the identity provider issued when the user logged in to the client (an ID token or a SAML assertion).
    Identity,
    /// The token that the platform issued to the workload.
    Workload,
}

/// A change of what is stored.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Save {
    /// Keep a registration. It replaces another one with the same issuer.
    Registration(Registration),
    /// Drop the registration with this issuer and client identifier: the authorization server does not know it any more.
    ForgetRegistration {
        /// The issuer of the registration.
        issuer: String,
        /// The identifier of the client.
        client_id: String,
    },
    /// Keep the result of a login or of a refresh. It replaces the one with the same issuer and resource.
    Grant(Box<Grant>),
    /// Drop the result of a login: its tokens are no longer valid.
    ForgetGrant {
        /// The issuer of the tokens.
        issuer: String,
        /// The resource that the tokens are for.
        resource: String,
    },
}

impl fmt::Debug for Save {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registration(registration) => f.debug_tuple("Registration").field(registration).finish(),
            Self::ForgetRegistration { issuer, client_id } => {
                f.debug_struct("ForgetRegistration").field("issuer", issuer).field("client_id", client_id).finish()
            }
            Self::Grant(grant) => f.debug_tuple("Grant").field(grant).finish(),
            Self::ForgetGrant { issuer, resource } => {
                f.debug_struct("ForgetGrant").field("issuer", issuer).field("resource", &shown(resource)).finish()
            }
        }
    }
}
