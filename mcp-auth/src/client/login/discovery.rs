//! Finding the authorization server of a server.
//!
//! ```text
//!            named by the challenge, or well-known      authorization_servers         RFC 8414, OpenID Connect
//! server ------------------------------------------> metadata of ---------> issuer ----------------------------> metadata of
//!    |                                               the resource                                                the server
//!    |  there is none (2025-03-26)                                                                                  ^   |
//!    +-----------------------------------> the origin is the issuer ------------------------------------------------+   | none
//!                                                                                                                       v
//!                                                                                    /authorize, /token, /register of the origin
//! ```
//!
//! A document that fails a check is never used. Where there are several places, the next one is tried, but a failed check never
//! leads to the fallbacks of 2025-03-26.

use std::collections::VecDeque;

use url::Url;

use super::super::{HttpRequest, HttpResponse, LoginConfig, LoginError, RequestError};
use super::addresses;
use super::target::Target;
use crate::Secret;
use crate::address::{Address, shown};
use crate::metadata::{
    AuthorizationServerMetadata, InvalidMetadata, MAX_METADATA_BYTES, ProtectedResourceMetadata, well_known,
};

/// How many issuers of one resource are considered.
const MAX_ISSUERS: usize = 16;

/// The search for the authorization server of a server.
#[derive(Debug)]
pub(super) struct Discovery {
    /// The address that the challenge named.
    named: Option<Address>,
    /// The issuers that are preferred if there are several.
    preferred: Vec<String>,
    stage: Stage,
    /// The places that are not tried yet.
    places: VecDeque<Url>,
    /// The place that is being tried.
    place: Option<Url>,
    /// The first document that failed a check.
    problem: Option<LoginError>,
}

#[derive(Debug)]
enum Stage {
    Resource,
    Server {
        issuer: String,
        /// Absent if the server has no metadata, as in 2025-03-26.
        resource: Option<Box<ProtectedResourceMetadata>>,
    },
}

/// What comes next.
#[derive(Debug)]
pub(super) enum Progress {
    Fetch(HttpRequest),
    Found(Box<Target>),
}

/// What a place has.
enum Document<T> {
    Found(T),
    Absent,
    Invalid(LoginError),
}

impl Discovery {
    /// Creates the search. `named` is the address that the challenge named.
    pub(super) fn new(config: &LoginConfig, named: Option<&str>, preferred: Vec<String>) -> Result<Self, LoginError> {
        let named = named.map(|url| addresses::check(config, "address of the metadata", url)).transpose()?;
        let mut places: VecDeque<Url> = named.iter().map(|address| address.url().clone()).collect();
        for place in well_known::protected_resource(config.server()) {
            if !places.contains(&place) {
                places.push_back(place);
            }
        }
        Ok(Self { named, preferred, stage: Stage::Resource, places, place: None, problem: None })
    }

    /// Returns the next place to fetch, or what is left if there is none.
    pub(super) fn next(&mut self, config: &LoginConfig) -> Result<Progress, LoginError> {
        loop {
            if let Some(place) = self.places.pop_front() {
                let mut request = HttpRequest::get(place.as_str(), MAX_METADATA_BYTES);
                if let Some(version) = &config.protocol_version {
                    request.headers.push(("mcp-protocol-version", Secret::new(version.as_str())));
                }
                self.place = Some(place);
                return Ok(Progress::Fetch(request));
            }
            if let Some(problem) = self.problem.take() {
                return Err(problem);
            }
            match &self.stage {
                Stage::Resource => {
                    if let Some(named) = &self.named {
                        return Err(LoginError::NoResourceMetadata { url: shown(named.as_str()) });
                    }
                    // 2025-03-26: the server is its own authorization server.
                    self.search_server(config, config.server.origin(), None)?;
                }
                Stage::Server { resource: None, .. } => {
                    return Ok(Progress::Found(Box::new(Target::of_defaults(config))));
                }
                Stage::Server { issuer, resource: Some(_) } => {
                    return Err(LoginError::NoServerMetadata { issuer: issuer.clone() });
                }
            }
        }
    }

    pub(super) fn handle_failure(&mut self, config: &LoginConfig, error: RequestError) -> Result<Progress, LoginError> {
        // As with any other status but success, there is no document in this place.
        if matches!(error, RequestError::Redirected(_)) {
            return self.next(config);
        }
        Err(LoginError::Fetch { url: self.place_text(), error })
    }

    pub(super) fn handle_response(
        &mut self,
        config: &LoginConfig,
        response: &HttpResponse,
    ) -> Result<Progress, LoginError> {
        match response.status {
            // A failing server says nothing about what it has.
            429 | 500.. => return Err(LoginError::Status { url: self.place_text(), status: response.status }),
            200..=299 => {}
            _ => return self.next(config),
        }
        match &self.stage {
            Stage::Resource => match self.read_resource(config, &response.body) {
                Document::Found(metadata) => {
                    let issuer = self.choose_issuer(&metadata)?;
                    self.search_server(config, issuer, Some(Box::new(metadata)))?;
                }
                Document::Absent => {}
                Document::Invalid(problem) => {
                    // The server itself named this document, so there is no doubt which one it meant.
                    if self.place.as_ref() == self.named.as_ref().map(Address::url) {
                        return Err(problem);
                    }
                    self.problem.get_or_insert(problem);
                }
            },
            Stage::Server { issuer, resource } => match self.read_server(issuer, resource.is_some(), &response.body) {
                Document::Found(metadata) => {
                    let target = Target::new(config, metadata, resource.as_deref().cloned());
                    return Ok(Progress::Found(Box::new(target)));
                }
                Document::Absent => {}
                Document::Invalid(problem) => {
                    self.problem.get_or_insert(problem);
                }
            },
        }
        self.next(config)
    }

    fn read_resource(&self, config: &LoginConfig, body: &[u8]) -> Document<ProtectedResourceMetadata> {
        let metadata = match ProtectedResourceMetadata::parse(body) {
            Ok(metadata) => metadata,
            Err(reason) => return self.unreadable(reason),
        };
        if !metadata.is_for(config.server()) {
            let (resource, server) = (shown(&metadata.resource), shown(config.server.as_str()));
            return Document::Invalid(LoginError::ResourceMismatch { resource, server });
        }
        Document::Found(metadata)
    }

    fn read_server(&self, issuer: &str, is_exact: bool, body: &[u8]) -> Document<AuthorizationServerMetadata> {
        let metadata = match AuthorizationServerMetadata::parse(body) {
            Ok(metadata) => metadata,
            Err(reason) => return self.unreadable(reason),
        };
        // Without metadata of the resource, the issuer is the origin, of which the text with and without a slash is the same URL.
        let is_origin = !is_exact && metadata.issuer.strip_suffix('/') == Some(issuer);
        if metadata.issuer != issuer && !is_origin {
            let (expected, found) = (shown(issuer), shown(&metadata.issuer));
            return Document::Invalid(LoginError::IssuerMismatch { expected, found });
        }
        Document::Found(metadata)
    }

    fn unreadable<T>(&self, reason: InvalidMetadata) -> Document<T> {
        // Many servers respond with a page to whatever they do not know.
        let is_named = self.place.as_ref() == self.named.as_ref().map(Address::url);
        if reason == InvalidMetadata::NotJson && !is_named {
            return Document::Absent;
        }
        Document::Invalid(LoginError::Metadata { url: self.place_text(), reason })
    }

    /// Chooses one that the client is known at, or the first.
    fn choose_issuer(&self, metadata: &ProtectedResourceMetadata) -> Result<String, LoginError> {
        let issuers = &metadata.authorization_servers[..metadata.authorization_servers.len().min(MAX_ISSUERS)];
        let known = self.preferred.iter().find(|preferred| issuers.contains(preferred));
        known.or_else(|| issuers.first()).cloned().ok_or(LoginError::NoAuthorizationServer)
    }

    fn search_server(
        &mut self,
        config: &LoginConfig,
        issuer: String,
        resource: Option<Box<ProtectedResourceMetadata>>,
    ) -> Result<(), LoginError> {
        let address = addresses::check_issuer(config, &issuer)?;
        self.places = well_known::authorization_server(address.url()).into();
        self.problem = None;
        self.stage = Stage::Server { issuer, resource };
        Ok(())
    }

    fn place_text(&self) -> String {
        self.place.as_ref().map(|place| shown(place.as_str())).unwrap_or_default()
    }
}
