//! Requests to a legacy client that belong to no request of its own.

use mcp_types::{
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestFormParams, ElicitRequestUrlParams, EmptyResult,
    Method, RawObject, Root,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::asking::options::AskOptions;
use crate::asking::request::ServerRequest;
use crate::asking::server_requests::{ElicitContent, Elicited, ask};
use crate::asking::target::AskTarget;
use crate::connection::handle::ConnectionHandle;

/// Server-to-client requests that belong to no request of the client, for legacy clients.
///
/// They need a session or a stdio connection whose handshake is [complete](Self::initialized); otherwise the future returns
/// an error. Over HTTP the client gets them on its GET stream: a request for which there is no stream is lost, and ends
/// with a timeout. Within a handler, prefer the methods of [`RequestContext`](crate::RequestContext), which also work with
/// modern clients and use the stream of the request.
impl ConnectionHandle {
    /// Asks the user to fill in a form with the members of `T`, as
    /// [`RequestContext::elicit`](crate::RequestContext::elicit) does.
    ///
    /// # Errors
    ///
    /// The future returns an error if `T` is not flat, if no request can be sent to the client, or if its response is not
    /// valid. It is not an error that the user declines.
    // S1.30
    pub fn elicit<'a, T>(&'a self, message: impl Into<String>) -> ServerRequest<'a, Elicited<T>>
    where
        T: JsonSchema + DeserializeOwned + 'a,
    {
        let (target, message) = (AskTarget::Connection(self), message.into());
        ServerRequest::new(AskOptions::of_users(), move |options| target.elicit(message, options))
    }

    /// Asks the user to fill in a form with a given schema.
    ///
    /// # Errors
    ///
    /// The future returns an error if no request can be sent to the client, or if its response is not valid.
    // S1.30
    pub fn elicit_form(&self, form: ElicitRequestFormParams) -> ServerRequest<'_, Elicited<ElicitContent>> {
        let target = AskTarget::Connection(self);
        ServerRequest::new(AskOptions::of_users(), move |options| target.elicit_form(form, options))
    }

    /// Asks the user to visit a web page, for data that must not pass through the client.
    ///
    /// # Errors
    ///
    /// The future returns an error if the URL is not absolute, if no request can be sent to the client, or if the
    /// `elicitation_id` that 2025-11-25 requires is missing.
    // S1.30
    pub fn elicit_url(&self, params: ElicitRequestUrlParams) -> ServerRequest<'_, Elicited<()>> {
        let target = AskTarget::Connection(self);
        ServerRequest::new(AskOptions::of_users(), move |options| target.elicit_url(params, options))
    }

    /// Requests a completion from the client's model.
    ///
    /// # Errors
    ///
    /// The future returns an error if no request can be sent to the client, or if its response is not valid.
    // S1.30
    pub fn sample(&self, params: CreateMessageRequestParams) -> ServerRequest<'_, CreateMessageResult> {
        let target = AskTarget::Connection(self);
        ServerRequest::new(AskOptions::of_users(), move |options| target.sample(params, options))
    }

    /// Requests the roots of the client.
    ///
    /// # Errors
    ///
    /// The future returns an error if no request can be sent to the client, or if its response is not valid.
    // S1.30
    pub fn list_roots(&self) -> ServerRequest<'_, Vec<Root>> {
        let target = AskTarget::Connection(self);
        ServerRequest::new(AskOptions::of_users(), move |options| target.list_roots(options))
    }

    /// Sends a `ping` and waits for the response. It can be sent before the handshake is complete.
    ///
    /// # Errors
    ///
    /// The future returns an error if the request cannot be sent, or if there is no response.
    // S1.34
    pub fn ping(&self) -> ServerRequest<'_, ()> {
        ServerRequest::new(AskOptions::default(), move |options| async move {
            let server = self.0.server();
            let pong = ask::<EmptyResult>(&self.0, server.as_ref(), None, Method::PING, RawObject::empty(), options);
            pong.await.map(drop)
        })
    }

    /// Sends any request, for example one that an extension defines.
    ///
    /// # Errors
    ///
    /// The future returns an error if the request cannot be sent, if there is no response, or if its result is not a `T`.
    // S1.27, S1.31, S1.32
    pub fn request<'a, T: DeserializeOwned + 'a>(&'a self, method: Method, params: &RawObject) -> ServerRequest<'a, T> {
        let params = params.clone();
        ServerRequest::new(AskOptions::default(), move |options| async move {
            let server = self.0.server();
            ask(&self.0, server.as_ref(), None, method, params, options).await
        })
    }
}
