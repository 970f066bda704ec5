//! Handlers of the application for server-to-client requests.

use std::pin::Pin;
use std::sync::Arc;

use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::{
    ClientCapabilities, CreateMessageRequestParams, CreateMessageResult, ElicitAction, ElicitRequestFormParams,
    ElicitRequestParams, ElicitRequestUrlParams, ElicitResult, ElicitationCapability, ErrorCode, ErrorObject,
    InputRequest, InvalidFormContent, ListRootsResult, Method, RawObject, Restrict, Revision, RootsCapability,
    SamplingCapability, restrict_to,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Handler<P, R> = Arc<dyn Fn(P) -> BoxFuture<Result<R, ErrorObject>> + Send + Sync>;

/// One handler for each kind of request; the client declares the capabilities that it has handlers for.
#[derive(Clone, Default)]
pub(crate) struct RequestHandlers {
    pub(crate) form: Option<Handler<ElicitRequestFormParams, ElicitResult>>,
    pub(crate) url: Option<Handler<ElicitRequestUrlParams, ElicitResult>>,
    pub(crate) sampling: Option<Handler<CreateMessageRequestParams, CreateMessageResult>>,
    /// Whether the sampling handler supports tools.
    pub(crate) sampling_tools: bool,
    pub(crate) roots: Option<Handler<(), ListRootsResult>>,
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

into_client_result!(ElicitResult, CreateMessageResult, ListRootsResult);

/// Boxes a handler.
pub(crate) fn handler<P, R, F, Fut>(function: F) -> Option<Handler<P, R>>
where
    F: Fn(P) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoClientResult<R>> + Send + 'static,
{
    Some(Arc::new(move |params| {
        let result = function(params);
        Box::pin(async move { result.await.into_client_result() })
    }))
}

impl RequestHandlers {
    /// Declares the capabilities that there are handlers for.
    pub(crate) fn declare(&self, capabilities: &mut ClientCapabilities) {
        let empty = || Some(RawObject::empty());
        if self.form.is_some() || self.url.is_some() {
            let mut elicitation = ElicitationCapability::default();
            elicitation.form = self.form.as_ref().and_then(|_| empty());
            elicitation.url = self.url.as_ref().and_then(|_| empty());
            capabilities.elicitation = Some(elicitation);
        }
        if self.sampling.is_some() {
            let mut sampling = SamplingCapability::default();
            sampling.tools = if self.sampling_tools { empty() } else { None };
            capabilities.sampling = Some(sampling);
        }
        if self.roots.is_some() {
            capabilities.roots = Some(RootsCapability::default().list_changed(true));
        }
    }

    /// Handles a request of a legacy server.
    pub(crate) async fn handle(
        &self,
        method: &Method,
        params: &PayloadBuf,
        revision: Revision,
    ) -> Result<RawObject, ErrorObject> {
        match method.as_str() {
            "elicitation/create" => self.elicit(decode(params)?, revision).await,
            "sampling/createMessage" => self.sample(decode(params)?, revision).await,
            "roots/list" => self.list_roots(revision).await,
            _ => Err(ErrorObject::new(ErrorCode::METHOD_NOT_FOUND, format!("unknown method `{method}`"))),
        }
    }

    /// Handles an input request of a modern server.
    pub(crate) async fn handle_input(&self, request: InputRequest) -> Result<RawObject, ErrorObject> {
        let revision = Revision::LATEST;
        match request {
            InputRequest::Elicit(request) => self.elicit(request.params, revision).await,
            InputRequest::CreateMessage(request) => self.sample(request.params, revision).await,
            InputRequest::ListRoots(_) => self.list_roots(revision).await,
            InputRequest::Unknown(_) | _ => Err(ErrorObject::invalid_params("unknown kind of input request")),
        }
    }

    async fn elicit(&self, params: ElicitRequestParams, revision: Revision) -> Result<RawObject, ErrorObject> {
        match (params, &self.form, &self.url) {
            (ElicitRequestParams::Form(form), Some(handler), _) => {
                let schema = form.requested_schema.clone();
                let mut result = handler(form).await?;
                // EL-9: only accepted forms have content.
                if result.action == ElicitAction::Accept {
                    let content = result.content.get_or_insert_default();
                    schema.fill_defaults(content);
                    // EL-19: content that violates the requested schema is not sent.
                    let wrong = |fault: InvalidFormContent| {
                        ErrorObject::internal_error(format!("the form content is invalid: {fault}"))
                    };
                    schema.check(content).map_err(wrong)?;
                } else {
                    result.content = None;
                }
                encode(result, revision)
            }
            (ElicitRequestParams::Url(url), _, Some(handler)) => {
                let mut result = handler(url).await?;
                result.content = None;
                encode(result, revision)
            }
            _ => Err(ErrorObject::invalid_params("this client did not declare this mode of elicitation")),
        }
    }

    async fn sample(&self, request: CreateMessageRequestParams, revision: Revision) -> Result<RawObject, ErrorObject> {
        let Some(handler) = &self.sampling else {
            return Err(ErrorObject::invalid_params("this client did not declare sampling"));
        };
        if !self.sampling_tools && (request.tools.is_some() || request.tool_choice.is_some()) {
            return Err(ErrorObject::invalid_params("this client did not declare sampling with tools"));
        }
        encode(handler(request).await?, revision)
    }

    async fn list_roots(&self, revision: Revision) -> Result<RawObject, ErrorObject> {
        let Some(handler) = &self.roots else {
            return Err(ErrorObject::invalid_params("this client did not declare roots"));
        };
        encode(handler(()).await?, revision)
    }
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
        let sampling = handler(move |_: CreateMessageRequestParams| {
            let result = CreateMessageResult::new(Role::ASSISTANT, content.clone(), "model");
            async move { result }
        });
        let handlers = RequestHandlers { sampling, ..RequestHandlers::default() };
        let params = PayloadBuf::parse(r#"{"messages":[],"maxTokens":1}"#, &Limits::default()).unwrap();
        let method = Method::SAMPLING_CREATE_MESSAGE;
        let handled = handlers.handle(&method, &params, revision).now_or_never().unwrap();
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
