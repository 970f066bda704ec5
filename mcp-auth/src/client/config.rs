//! What a login is for, and by which means.

use url::Url;

use super::{ClientAuthentication, Grant, Registration};
use crate::address::{Address, UnsafeAddress};
use crate::{Scopes, Secret};

/// How a login obtains its tokens.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Flow {
    /// A user agrees in a browser, which is sent back to an address of the client (authorization code with PKCE).
    AuthorizationCode {
        /// The address that the browser is sent back to: `https`, or `http` to this machine.
        redirect_uri: String,
    },
    /// A user enters a code at another device (RFC 8628).
    DeviceCode,
    /// The client acts for itself (client credentials).
    ClientCredentials,
    /// The identity provider of an enterprise vouches for its user, who has logged in to the client before (ID-JAG).
    EnterpriseManaged(IdentityProvider),
    /// The platform that the client runs on vouches for it (workload identity, RFC 7523).
    WorkloadIdentity,
}

/// The identity provider of an enterprise, and what it knows the client by.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IdentityProvider {
    /// Where the provider exchanges tokens.
    pub token_endpoint: String,
    /// The identifier of the client at the provider.
    pub client_id: String,
    /// The secret of the client at the provider.
    pub client_secret: Option<Secret>,
    /// How the client authenticates at the provider.
    pub authentication: ClientAuthentication,
    /// The issuer of the provider: the audience of a client assertion. Defaults to the token endpoint.
    pub issuer: Option<String>,
    /// What the user's assertion is.
    pub subject_token_type: SubjectTokenType,
}

/// What the assertion of a user is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubjectTokenType {
    /// An ID token of OpenID Connect.
    IdToken,
    /// A SAML 2.0 assertion.
    Saml2,
}

impl IdentityProvider {
    /// Creates a provider that knows the client by its identifier only.
    pub fn new(token_endpoint: impl Into<String>, client_id: impl Into<String>) -> Self {
        Self {
            token_endpoint: token_endpoint.into(),
            client_id: client_id.into(),
            client_secret: None,
            authentication: ClientAuthentication::None,
            issuer: None,
            subject_token_type: SubjectTokenType::IdToken,
        }
    }

    /// Sets the secret of the client at the provider, and how it is sent.
    #[must_use]
    pub fn client_secret(mut self, secret: impl Into<Secret>, authentication: ClientAuthentication) -> Self {
        (self.client_secret, self.authentication) = (Some(secret.into()), authentication);
        self
    }
}

/// A client that was registered with an authorization server by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PreRegistered {
    /// The issuer that the client is registered with. If it is absent, the client is bound to the first issuer that is met.
    pub issuer: Option<String>,
    /// The identifier of the client.
    pub client_id: String,
    /// The secret of a confidential client.
    pub client_secret: Option<Secret>,
    /// How the client authenticates. If it is absent, it is chosen from what the authorization server supports.
    pub authentication: Option<ClientAuthentication>,
}

impl PreRegistered {
    /// Creates a public client.
    pub fn new(client_id: impl Into<String>) -> Self {
        Self { issuer: None, client_id: client_id.into(), client_secret: None, authentication: None }
    }

    /// Sets the issuer that the client is registered with.
    #[must_use]
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }

    /// Sets the secret of a confidential client.
    #[must_use]
    pub fn client_secret(mut self, secret: impl Into<Secret>) -> Self {
        self.client_secret = Some(secret.into());
        self
    }

    /// Sets how the client authenticates.
    #[must_use]
    pub const fn authentication(mut self, authentication: ClientAuthentication) -> Self {
        self.authentication = Some(authentication);
        self
    }
}

/// The key that DPoP proofs are signed with.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DpopKey {
    /// The algorithm of the key, such as `ES256`.
    pub algorithm: String,
    /// The thumbprint of the key (RFC 7638), which authorization codes are bound to.
    pub thumbprint: String,
    /// Whether tokens that are not bound to the key are refused.
    pub is_required: bool,
}

impl DpopKey {
    /// Creates the description of a key that is used where the authorization server or the resource supports it.
    pub fn new(algorithm: impl Into<String>, thumbprint: impl Into<String>) -> Self {
        Self { algorithm: algorithm.into(), thumbprint: thumbprint.into(), is_required: false }
    }

    /// Refuses tokens that are not bound to the key.
    #[must_use]
    pub const fn required(mut self) -> Self {
        self.is_required = true;
        self
    }
}

/// What a login is for, and by which means.
#[derive(Clone, Debug)]
#[must_use]
pub struct LoginConfig {
    pub(crate) server: Address,
    pub(crate) flow: Flow,
    pub(crate) client_name: String,
    pub(crate) client_uri: Option<String>,
    pub(crate) pre_registered: Option<PreRegistered>,
    pub(crate) client_metadata_url: Option<String>,
    pub(crate) dynamic_registration: bool,
    pub(crate) ask_for_client: bool,
    pub(crate) scopes: Scopes,
    pub(crate) refresh: bool,
    pub(crate) dpop: Option<DpopKey>,
    pub(crate) private_addresses: bool,
    pub(crate) protocol_version: Option<String>,
}

/// The error of a login that cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidConfig {
    /// The address of the server cannot be used.
    #[error("the address of the server cannot be used: {0}")]
    Server(UnsafeAddress),
    /// The redirect URI cannot be used.
    #[error("the redirect URI cannot be used: {0}")]
    RedirectUri(UnsafeAddress),
    /// The token endpoint of the identity provider cannot be used.
    #[error("the token endpoint of the identity provider cannot be used: {0}")]
    IdentityProvider(UnsafeAddress),
    /// The address of the client's metadata document is not `https` with a path.
    #[error("the address of the client's metadata document must be https and have a path")]
    ClientMetadataUrl,
}

impl LoginConfig {
    /// Creates the configuration of a login to the server with this address.
    ///
    /// # Errors
    ///
    /// Returns an error if the address of the server, or one of the flow, is neither `https` nor `http` to this machine.
    pub fn new(server: &str, flow: Flow) -> Result<Self, InvalidConfig> {
        // A fragment is never sent, so it says nothing about the server.
        let server = Address::parse(server.split('#').next().unwrap_or_default()).map_err(InvalidConfig::Server)?;
        match &flow {
            Flow::AuthorizationCode { redirect_uri } => {
                Address::parse(redirect_uri).map_err(InvalidConfig::RedirectUri)?;
            }
            Flow::EnterpriseManaged(provider) => {
                Address::parse(&provider.token_endpoint).map_err(InvalidConfig::IdentityProvider)?;
            }
            Flow::DeviceCode | Flow::ClientCredentials | Flow::WorkloadIdentity => {}
        }
        let private_addresses = server.is_private();
        Ok(Self {
            server,
            flow,
            client_name: "MCP client".to_owned(),
            client_uri: None,
            pre_registered: None,
            client_metadata_url: None,
            dynamic_registration: true,
            ask_for_client: false,
            scopes: Scopes::new(),
            refresh: true,
            dpop: None,
            private_addresses,
            protocol_version: None,
        })
    }

    /// Sets the name of the client, which users see when they are asked to agree. Defaults to `MCP client`.
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.client_name = name.into();
        self
    }

    /// Sets the address of a page about the client.
    pub fn client_uri(mut self, uri: impl Into<String>) -> Self {
        self.client_uri = Some(uri.into());
        self
    }

    /// Sets the client that was registered with the authorization server by hand. It is preferred to all others.
    pub fn pre_registered(mut self, client: PreRegistered) -> Self {
        self.pre_registered = Some(client);
        self
    }

    /// Sets the address of the client's metadata document, which is the identifier of the client where the authorization server
    /// supports that. [`client_metadata_document`](Self::client_metadata_document) returns what to publish there.
    ///
    /// # Errors
    ///
    /// Returns an error if the address is not `https` or has no path.
    pub fn client_metadata_url(mut self, url: &str) -> Result<Self, InvalidConfig> {
        let address = Address::parse(url).map_err(|_| InvalidConfig::ClientMetadataUrl)?;
        if address.url().scheme() != "https" || matches!(address.url().path(), "" | "/") {
            return Err(InvalidConfig::ClientMetadataUrl);
        }
        self.client_metadata_url = Some(url.to_owned());
        Ok(self)
    }

    /// Sets whether the client registers itself where the authorization server allows that. Defaults to true.
    pub const fn dynamic_registration(mut self, is_allowed: bool) -> Self {
        self.dynamic_registration = is_allowed;
        self
    }

    /// Sets whether a user can be asked for a client identifier if there is no other way to get one. Defaults to false.
    pub const fn ask_for_client(mut self, can_ask: bool) -> Self {
        self.ask_for_client = can_ask;
        self
    }

    /// Sets scopes that are requested in addition to those that the server demands, instead of those in its metadata.
    pub fn scopes(mut self, scopes: Scopes) -> Self {
        self.scopes = scopes;
        self
    }

    /// Sets whether a refresh token is wanted. Defaults to true.
    pub const fn refresh(mut self, is_wanted: bool) -> Self {
        self.refresh = is_wanted;
        self
    }

    /// Sets the key that tokens can be bound to.
    pub fn dpop(mut self, key: DpopKey) -> Self {
        self.dpop = Some(key);
        self
    }

    /// Sets whether metadata can name addresses of this machine and of private networks. Defaults to whether the server has one.
    ///
    /// With it, a server on the internet can make the client send requests into the network that it runs in.
    pub const fn private_addresses(mut self, are_allowed: bool) -> Self {
        self.private_addresses = are_allowed;
        self
    }

    /// Sets the revision of the protocol, which is sent along when metadata is fetched.
    pub fn protocol_version(mut self, version: impl Into<String>) -> Self {
        self.protocol_version = Some(version.into());
        self
    }

    /// Returns the address of the server.
    #[must_use]
    pub const fn server(&self) -> &Url {
        self.server.url()
    }

    /// Returns how the login obtains its tokens.
    #[must_use]
    pub const fn flow(&self) -> &Flow {
        &self.flow
    }

    /// Whether metadata can name addresses of this machine and of private networks.
    #[must_use]
    pub const fn allows_private_addresses(&self) -> bool {
        self.private_addresses
    }
}

/// What is known from earlier logins.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Stored {
    /// The registrations of the client, each with another issuer.
    pub registrations: Vec<Registration>,
    /// The tokens for this server. If they can be refreshed, the login tries that before it involves a user.
    pub grant: Option<Grant>,
    /// The scopes that were requested before for this server. They are requested again, so that nothing is lost.
    pub requested_scopes: Scopes,
}
