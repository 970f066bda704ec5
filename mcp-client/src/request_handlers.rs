//! Handlers of the application for server-to-client requests.

use std::pin::Pin;
use std::sync::Arc;

use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::{
    ClientCapabilities, ClientCapability, CreateMessageRequest, CreateMessageRequestParams, CreateMessageResult,
    ElicitAction, ElicitRequest, ElicitRequestFormParams, ElicitRequestParams, ElicitRequestUrlParams, ElicitResult,
    ErrorCode, ErrorObject, InputRequest, InvalidFormContent, JsonObject, ListRootsRequest, ListRootsResult, Method,
    RawJson, RawObject, RequestMeta, RequestParams, RequestedSchema, Restrict, ResultMeta, Revision, restrict_to,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::MessageContext;
use crate::input::InputResult;
use crate::tasks::followed::related_task;

pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Handler<P, R> = Arc<dyn Fn(MessageContext, P) -> BoxFuture<Result<R, ErrorObject>> + Send + Sync>;

/// One handler for each kind of request; the client declares the capabilities that it has handlers for.
#[derive(Clone, Default)]
pub(crate) struct RequestHandlers {
    pub(crate) form: Option<Handler<ElicitRequestFormParams, ElicitResult>>,
    pub(crate) url: Option<Handler<ElicitRequestUrlParams, ElicitResult>>,
    pub(crate) sampling: Option<Handler<CreateMessageRequestParams, CreateMessageResult>>,
    /// Whether the sampling handler supports tools.
    pub(crate) sampling_tools: bool,
    pub(crate) roots: Option<Handler<(), ListRootsResult>>,
    /// The handlers of other methods.
    pub(crate) others: Vec<(Method, Handler<PayloadBuf, RawObject>)>,
    /// The capabilities that the client declares, which may be more than there are handlers for.
    pub(crate) declared: ClientCapabilities,
}

/// The types that a handler for server-to-client requests can return: a result, or a `Result` whose error becomes a
/// JSON-RPC error.
pub trait IntoClientResult<R>: Send {
    /// Converts the value into a result, or a JSON-RPC error.
    ///
    /// # Errors
    ///
    /// Returns the error that the handler returned.
    fn into_client_result(self) -> Result<R, ErrorObject>;
}

macro_rules! into_client_result {
    ($($result:ty),*) => {
        $(
            impl IntoClientResult<$result> for $result {
                fn into_client_result(self) -> Result<$result, ErrorObject> {
                    Ok(self)
                }
            }

            impl<E: Into<ErrorObject> + Send> IntoClientResult<$result> for Result<$result, E> {
                fn into_client_result(self) -> Result<$result, ErrorObject> {
                    self.map_err(Into::into)
                }
            }
        )*
    };
}

into_client_result!(ElicitResult, CreateMessageResult, ListRootsResult, RawObject);

/// Boxes a handler.
pub(crate) fn handler<P, R, F, Fut>(function: F) -> Handler<P, R>
where
    F: Fn(MessageContext, P) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoClientResult<R>> + Send + 'static,
{
    Arc::new(move |context, params| {
        let result = function(context, params);
        Box::pin(async move { result.await.into_client_result() })
    })
}

impl RequestHandlers {
    /// Handles a request of a legacy server.
    pub(crate) async fn handle(
        &self,
        context: MessageContext,
        method: &Method,
        params: &PayloadBuf,
        revision: Revision,
    ) -> Result<RawObject, ErrorObject> {
        let request = match method.as_str() {
            "elicitation/create" => ElicitRequest::new(decode::<ElicitRequestParams>(params)?).into(),
            "sampling/createMessage" => CreateMessageRequest::new(decode::<CreateMessageRequestParams>(params)?).into(),
            "roots/list" => ListRootsRequest::default().params(decode::<RequestParams>(params)?).into(),
            _ => {
                let other = self.others.iter().find(|(other, _)| other == method);
                let Some((_, handler)) = other else {
                    return Err(ErrorObject::new(ErrorCode::METHOD_NOT_FOUND, format!("unknown method `{method}`")));
                };
                return handler(context, params.clone()).await;
            }
        };
        for required in ClientCapability::required_by(&request) {
            // Servers may ignore that there is no context, and so may clients that they asked for it.
            if required != ClientCapability::SamplingContext && !required.is_declared(&self.declared) {
                return Err(undeclared(required));
            }
        }
        let result = self.handle_input(context, request, revision).await?;
        match related_task(params) {
            Some(task) => with_related_task(&result, &task),
            None => Ok(result),
        }
    }

    /// Handles an input request: by the handler of its call, or by that of the client.
    pub(crate) async fn handle_input(
        &self,
        context: MessageContext,
        request: InputRequest,
        revision: Revision,
    ) -> Result<RawObject, ErrorObject> {
        let handled = match context.input_handler() {
            Some(handler) => handler(without_progress_token(request.clone())).await?,
            None => None,
        };
        match request {
            InputRequest::Elicit(request) => {
                let form = if let ElicitRequestParams::Form(form) = &request.params { Some(form) } else { None };
                let schema = form.map(|form| form.requested_schema.clone());
                let result = match handled {
                    Some(result) => result.into_elicited()?,
                    None => self.elicit(context, request.params).await?,
                };
                encode(checked(result, schema)?, revision)
            }
            InputRequest::CreateMessage(request) => {
                let result = match handled {
                    Some(result) => result.into_sampled()?,
                    None => self.sample(context, request.params).await?,
                };
                encode(result, revision)
            }
            InputRequest::ListRoots(_) => {
                let result = match (handled, &self.roots) {
                    (Some(result), _) => result.into_roots()?,
                    (None, Some(handler)) => handler(context, ()).await?,
                    (None, None) => return Err(undeclared(ClientCapability::Roots)),
                };
                encode(result, revision)
            }
            InputRequest::Unknown(_) | _ => match handled {
                Some(InputResult::Raw(result)) => Ok(result),
                Some(_) | None => Err(ErrorObject::invalid_params("unknown kind of input request")),
            },
        }
    }

    async fn elicit(&self, context: MessageContext, params: ElicitRequestParams) -> Result<ElicitResult, ErrorObject> {
        match (params, &self.form, &self.url) {
            (ElicitRequestParams::Form(form), Some(handler), _) => handler(context, form).await,
            (ElicitRequestParams::Url(url), _, Some(handler)) => handler(context, url).await,
            (ElicitRequestParams::Form(_), None, _) => Err(undeclared(ClientCapability::ElicitationForm)),
            (ElicitRequestParams::Url(_) | _, _, _) => Err(undeclared(ClientCapability::ElicitationUrl)),
        }
    }

    async fn sample(
        &self,
        context: MessageContext,
        request: CreateMessageRequestParams,
    ) -> Result<CreateMessageResult, ErrorObject> {
        let Some(handler) = &self.sampling else { return Err(undeclared(ClientCapability::Sampling)) };
        if !self.sampling_tools && (request.tools.is_some() || request.tool_choice.is_some()) {
            return Err(undeclared(ClientCapability::SamplingTools));
        }
        handler(context, request).await
    }
}

/// Completes and checks the result of an elicitation request, which has a schema if it is a form.
fn checked(mut result: ElicitResult, schema: Option<RequestedSchema>) -> Result<ElicitResult, ErrorObject> {
    match schema {
        Some(schema) if result.action == ElicitAction::Accept => {
            let content = result.content.get_or_insert_default();
            schema.fill_defaults(content);
            // EL-19: content that violates the requested schema is not sent.
            let wrong = |fault: InvalidFormContent| {
                ErrorObject::internal_error(format!("the form content is invalid: {fault}"))
            };
            schema.check(content).map_err(wrong)?;
        }
        // EL-9: only accepted forms have content.
        Some(_) | None => result.content = None,
    }
    Ok(result)
}

/// Adds the task of a request to its result.
// B-86
fn with_related_task(result: &RawObject, task: &str) -> Result<RawObject, ErrorObject> {
    let failed = |fault: serde_json::Error| ErrorObject::internal_error(fault.to_string());
    let mut members: JsonObject = result.decode().map_err(failed)?;
    let meta = members.get("_meta").map(|meta| meta.decode::<ResultMeta>()).transpose().map_err(failed)?;
    let mut meta = meta.unwrap_or_default();
    meta.set_related_task(task);
    members.insert("_meta", RawJson::new(&meta).map_err(failed)?);
    RawObject::new(&members).map_err(failed)
}

/// Removes the progress token that a legacy server set. It belongs to this connection, and is different each time: a gateway
/// could not recognize the request when the call is repeated.
fn without_progress_token(mut request: InputRequest) -> InputRequest {
    let meta = match &mut request {
        InputRequest::Elicit(ElicitRequest { params: ElicitRequestParams::Form(form), .. }) => &mut form.meta,
        InputRequest::Elicit(ElicitRequest { params: ElicitRequestParams::Url(url), .. }) => &mut url.meta,
        InputRequest::CreateMessage(request) => &mut request.params.meta,
        InputRequest::ListRoots(ListRootsRequest { params: Some(params), .. }) => &mut params.meta,
        InputRequest::Elicit(_) | InputRequest::ListRoots(_) | InputRequest::Unknown(_) | _ => return request,
    };
    if let Some(own) = meta {
        own.progress_token = None;
        meta.take_if(|own| *own == RequestMeta::default());
    }
    request
}

fn undeclared(capability: ClientCapability) -> ErrorObject {
    ErrorObject::invalid_params(format!("this client does not support `{}`", capability.name()))
}

fn decode<T: DeserializeOwned>(params: &PayloadBuf) -> Result<T, ErrorObject> {
    params.decode().map_err(|fault| fault.to_error_object())
}

/// Encodes a result in the revision of the server; fails if that cannot express it.
// DU-44
fn encode(mut result: impl Serialize + Restrict, revision: Revision) -> Result<RawObject, ErrorObject> {
    let restriction = restrict_to(&mut result, revision);
    if !restriction.may_be_sent() {
        let what: Vec<_> = restriction.refused().iter().chain(restriction.missing()).copied().collect();
        let what = what.join(", ");
        return Err(ErrorObject::internal_error(format!("{revision} cannot express the result: {what}")));
    }
    RawObject::new(&result).map_err(|fault| ErrorObject::internal_error(fault.to_string()))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use mcp_types::jsonrpc::Limits;
    use mcp_types::{OneOrMany, Role, SamplingContent, TextContent};

    use super::*;

    fn sampled(content: OneOrMany<SamplingContent>, revision: Revision) -> Result<String, String> {
        let sampling = handler(move |_, _: CreateMessageRequestParams| {
            let result = CreateMessageResult::new(Role::ASSISTANT, content.clone(), "model");
            async move { result }
        });
        let mut declared = ClientCapabilities::default();
        ClientCapability::Sampling.declare(&mut declared);
        let handlers = RequestHandlers { sampling: Some(sampling), declared, ..RequestHandlers::default() };
        let params = PayloadBuf::parse(r#"{"messages":[],"maxTokens":1}"#, &Limits::default()).unwrap();
        let method = Method::SAMPLING_CREATE_MESSAGE;
        let handled = handlers.handle(MessageContext::default(), &method, &params, revision).now_or_never().unwrap();
        handled.map(|result| result.as_str().to_owned()).map_err(|error| error.message.into_owned())
    }

    /// An older server gets what its revision can express, or an error.
    // covers: DU-44
    #[test]
    fn results_fit_the_revision() {
        let text = || SamplingContent::from(TextContent::new("a"));
        let one = || OneOrMany::from(text());
        let many = || OneOrMany::from(vec![text(), text()]);
        assert!(sampled(one(), Revision::V2024_11_05).is_ok());
        assert!(sampled(many(), Revision::V2025_11_25).is_ok());
        let refused = sampled(many(), Revision::V2025_06_18).unwrap_err();
        assert!(refused.starts_with("2025-06-18 cannot express the result: "), "{refused}");
    }
}
