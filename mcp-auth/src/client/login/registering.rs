//! The stage of a login in which the client becomes known to the authorization server.

use super::super::register::{
    Choice, ClientMetadata, MAX_REGISTRATION_RESPONSE_BYTES, choose, read_registration, redirect_uri, wants_refresh,
};
use super::super::{Action, HttpRequest, HttpResponse, LoginError, Save};
use super::scopes::ScopeSources;
use super::{Login, State, Target, addresses};
use crate::address::Address;
use crate::{Scopes, Secret, UnixTime};

impl Login {
    pub(super) fn choose_registration(&mut self, now: UnixTime, target: Box<Target>) -> Result<(), LoginError> {
        let has_metadata = !target.has_default_endpoints;
        match choose(&self.config, &target.server, has_metadata, &self.stored.registrations, now)? {
            Choice::Use { registration, is_new } => {
                if is_new {
                    self.save(Save::Registration(registration.clone()));
                }
                self.start_flow(target, registration)
            }
            Choice::Register(authentication) => {
                // Before anything is sent, so that no client is registered in vain.
                self.check_flow(&target)?;
                let url = target.server.registration_endpoint.as_deref().unwrap_or_default();
                let endpoint = addresses::check(&self.config, "registration endpoint", url)?;
                let scope = self.scope_sources(&target, |sources| sources.for_registration()).to_string();
                let metadata = ClientMetadata::new(&self.config).for_server(&target.server, authentication, scope);
                let body = Secret::new(metadata.to_json());
                let request =
                    HttpRequest::post(endpoint.as_str(), "application/json", body, MAX_REGISTRATION_RESPONSE_BYTES);
                self.fetch(request, State::Registering { target, endpoint })
            }
            Choice::Ask => self.ask_for_client(target),
        }
    }

    pub(super) fn finish_registration(
        &mut self,
        target: Box<Target>,
        endpoint: &Address,
        response: &HttpResponse,
    ) -> Result<(), LoginError> {
        match read_registration(response, endpoint, &target.server, redirect_uri(&self.config), &self.known_secrets()) {
            Ok(registration) => {
                self.save(Save::Registration(registration.clone()));
                self.start_flow(target, registration)
            }
            // The client can still be registered by hand, which is what a server that refuses wants.
            Err(LoginError::RegistrationRefused { .. } | LoginError::Status { status: 400..=499, .. })
                if self.config.ask_for_client =>
            {
                self.ask_for_client(target)
            }
            Err(error) => Err(error),
        }
    }

    fn ask_for_client(&mut self, target: Box<Target>) -> Result<(), LoginError> {
        self.outbox.push(Action::AskForClient { issuer: target.issuer().to_owned() });
        self.state = State::AskingForClient(target);
        Ok(())
    }

    pub(super) fn scope_sources(&self, target: &Target, choose: impl Fn(&ScopeSources<'_>) -> Scopes) -> Scopes {
        let previous = match &self.stored.grant {
            Some(grant) => self.stored.requested_scopes.union(&grant.requested_scopes),
            None => self.stored.requested_scopes.clone(),
        };
        choose(&ScopeSources {
            challenge: self.demand.scopes.as_ref(),
            configured: &self.config.scopes,
            resource: target.resource_metadata.as_ref().and_then(|metadata| metadata.scopes_supported.as_deref()),
            previous: &previous,
            server: target.server.scopes_supported.as_deref(),
            refresh: wants_refresh(&self.config),
        })
    }
}
