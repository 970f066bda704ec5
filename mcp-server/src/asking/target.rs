//! What a server-to-client request belongs to: a request of the client, or the connection as a whole.

use mcp_types::{
    ClientCapability, CreateMessageRequestParams, CreateMessageResult, ElicitAction, ElicitRequestFormParams,
    ElicitRequestUrlParams, ElicitResult, Era, InputRequest, ListRootsRequest, ListRootsResult, Method, RawObject,
    RequestParams, RequestedSchema, Restrict, Revision, Root, restrict_to,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::asking::error::AskError;
use crate::asking::form;
use crate::asking::options::AskOptions;
use crate::asking::server_requests::{ElicitContent, Elicited, ask};
use crate::build::registry::is_scheme;
use crate::connection::handle::ConnectionHandle;
use crate::serve::context::RequestContext;

/// The target of a server-to-client request.
#[derive(Clone, Copy)]
pub(crate) enum AskTarget<'a> {
    /// A request of the client. The key identifies the server-to-client request among those of the handler.
    Request { ctx: &'a RequestContext, key: &'a str },
    /// The connection to a legacy client.
    Connection(&'a ConnectionHandle),
}

impl AskTarget<'_> {
    /// Requests a form with the members of `T`.
    pub(crate) async fn elicit<T>(self, message: String, options: AskOptions) -> Result<Elicited<T>, AskError>
    where
        T: JsonSchema + DeserializeOwned,
    {
        let schema = form::schema_of::<T>().map_err(|fault| AskError::InvalidRequest(fault.to_string().into()))?;
        match self.elicit_form(ElicitRequestFormParams::new(message, schema.clone()), options).await? {
            Elicited::Declined => Ok(Elicited::Declined),
            Elicited::Cancelled => Ok(Elicited::Cancelled),
            Elicited::Accepted(content) => {
                let read = form::decode(&schema, content);
                read.map(Elicited::Accepted).map_err(|fault| AskError::InvalidResponse(fault.to_string()))
            }
        }
    }

    pub(crate) async fn elicit_form(
        self,
        mut form: ElicitRequestFormParams,
        options: AskOptions,
    ) -> Result<Elicited<ElicitContent>, AskError> {
        if self.revision() <= Revision::V2025_06_18 {
            form::use_legacy_labels(&mut form.requested_schema);
        }
        // What older revisions cannot express, such as most defaults, still holds for the response.
        let schema = form.requested_schema.clone();
        let (capability, method) = (ClientCapability::ElicitationForm, Method::ELICITATION_CREATE);
        checked(self.send(capability, method, form, options).await?, &schema)
    }

    pub(crate) async fn elicit_url(
        self,
        params: ElicitRequestUrlParams,
        options: AskOptions,
    ) -> Result<Elicited<()>, AskError> {
        if !is_absolute(&params.url) {
            return Err(AskError::InvalidRequest(format!("`{}` is not an absolute URL", params.url).into()));
        }
        let (capability, method) = (ClientCapability::ElicitationUrl, Method::ELICITATION_CREATE);
        let result: ElicitResult = self.send(capability, method, params, options).await?;
        Ok(match result.action {
            ElicitAction::Accept => Elicited::Accepted(()),
            ElicitAction::Decline => Elicited::Declined,
            ElicitAction::Cancel => Elicited::Cancelled,
        })
    }

    pub(crate) async fn sample(
        self,
        params: CreateMessageRequestParams,
        options: AskOptions,
    ) -> Result<CreateMessageResult, AskError> {
        self.send(ClientCapability::Sampling, Method::SAMPLING_CREATE_MESSAGE, params, options).await
    }

    pub(crate) async fn list_roots(self, options: AskOptions) -> Result<Vec<Root>, AskError> {
        let result: ListRootsResult = match self {
            Self::Request { ctx, key } => {
                ctx.check(ClientCapability::Roots)?;
                #[cfg(feature = "mrtr")]
                if let Some(port) = ctx.task_port() {
                    let result: ListRootsResult =
                        ctx.ask_in_task(port, key, ListRootsRequest::default().into()).await?;
                    return Ok(result.roots);
                }
                match ctx.era() {
                    Era::Modern => ctx.ask_in_round(key, ListRootsRequest::default().into()).await?,
                    Era::Legacy => {
                        ctx.mark_awaited();
                        self.send_legacy(Method::ROOTS_LIST, RequestParams::default(), options).await?
                    }
                }
            }
            Self::Connection(_) => self.send_legacy(Method::ROOTS_LIST, RequestParams::default(), options).await?,
        };
        Ok(result.roots)
    }

    async fn send<T: DeserializeOwned>(
        self,
        capability: ClientCapability,
        method: Method,
        #[cfg_attr(not(feature = "mrtr"), expect(unused_mut, reason = "only tasks restrict it here"))]
        mut params: impl Serialize + Restrict + Into<InputRequest>,
        options: AskOptions,
    ) -> Result<T, AskError> {
        if let Self::Request { ctx, key } = self {
            ctx.check(capability)?;
            #[cfg(feature = "mrtr")]
            if let Some(port) = ctx.task_port() {
                self.restrict(&mut params)?;
                return ctx.ask_in_task(port, key, params.into()).await;
            }
            if ctx.era() == Era::Modern {
                return ctx.ask_in_round(key, params.into()).await;
            }
            ctx.mark_awaited();
        }
        self.send_legacy(method, params, options).await
    }

    /// Sends a request to a legacy client, restricted to what its revision can express. The kernel checks the capabilities
    /// of the client.
    async fn send_legacy<T: DeserializeOwned>(
        self,
        method: Method,
        mut params: impl Serialize + Restrict,
        options: AskOptions,
    ) -> Result<T, AskError> {
        self.restrict(&mut params)?;
        let params = RawObject::new(&params).map_err(|fault| AskError::InvalidRequest(fault.to_string().into()))?;
        match self {
            Self::Request { ctx, .. } => {
                ask(ctx.shared(), Some(ctx.server()), Some(ctx.scope().key()), method, params, options).await
            }
            Self::Connection(connection) => {
                ask(&connection.0, connection.0.server().as_ref(), None, method, params, options).await
            }
        }
    }

    /// Removes what the revision of the client cannot express.
    fn restrict(self, params: &mut impl Restrict) -> Result<(), AskError> {
        let revision = self.revision();
        let restriction = restrict_to(params, revision);
        if restriction.may_be_sent() {
            return Ok(());
        }
        let what: Vec<_> = restriction.refused().iter().chain(restriction.missing()).copied().collect();
        let what = what.join(", ");
        Err(AskError::InvalidRequest(format!("{revision} cannot express the request: {what}").into()))
    }

    fn revision(self) -> Revision {
        match self {
            Self::Request { ctx, .. } => ctx.revision(),
            // Without a handshake the kernel refuses the request.
            Self::Connection(connection) => connection.negotiated().unwrap_or(Revision::LATEST_LEGACY),
        }
    }
}

/// Input requests that a handler returned to a legacy client are sent as requests.
impl RequestContext {
    pub(crate) async fn send_legacy_request<T: DeserializeOwned>(
        &self,
        method: Method,
        params: impl Serialize + Restrict,
        options: AskOptions,
    ) -> Result<T, AskError> {
        AskTarget::Request { ctx: self, key: "" }.send_legacy(method, params, options).await
    }
}

/// Whether a URL has a scheme and an authority or path, and no white space.
fn is_absolute(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    is_scheme(scheme) && !rest.is_empty() && !url.contains(|letter: char| letter.is_whitespace() || letter.is_control())
}

/// Validates the response to a form.
fn checked(result: ElicitResult, schema: &RequestedSchema) -> Result<Elicited<ElicitContent>, AskError> {
    match result.action {
        ElicitAction::Decline => Ok(Elicited::Declined),
        ElicitAction::Cancel => Ok(Elicited::Cancelled),
        ElicitAction::Accept => {
            let mut content = result.content.unwrap_or_default();
            schema.fill_defaults(&mut content);
            schema.check(&content).map_err(|fault| AskError::InvalidResponse(fault.to_string()))?;
            Ok(Elicited::Accepted(content))
        }
    }
}
