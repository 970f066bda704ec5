//! What the server may ask of the application.

use std::pin::Pin;
use std::sync::Arc;

use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::{
    ClientCapabilities, CreateMessageRequestParams, CreateMessageResult, ElicitAction, ElicitRequestFormParams,
    ElicitRequestParams, ElicitRequestUrlParams, ElicitResult, ElicitationCapability, ErrorCode, ErrorObject,
    InputRequest, InvalidAnswer, ListRootsResult, Method, RawObject, Restrict, Revision, RootsCapability,
    SamplingCapability, restrict_to,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Answer<Q, A> = Arc<dyn Fn(Q) -> BoxFuture<Result<A, ErrorObject>> + Send + Sync>;

/// The functions that answer, one for each kind of question; what has none is not declared.
#[derive(Clone, Default)]
pub(crate) struct Answers {
    pub(crate) form: Option<Answer<ElicitRequestFormParams, ElicitResult>>,
    pub(crate) url: Option<Answer<ElicitRequestUrlParams, ElicitResult>>,
    pub(crate) sampling: Option<Answer<CreateMessageRequestParams, CreateMessageResult>>,
    /// Whether the model can use the tools that a server sends along.
    pub(crate) with_tools: bool,
    pub(crate) roots: Option<Answer<(), ListRootsResult>>,
}

/// What a function that answers the server may return: an answer, or an error instead of one.
pub trait IntoAnswer<A>: Send {
    /// Turns it into one of the two.
    ///
    /// # Errors
    ///
    /// With what the server is told instead of an answer.
    fn into_answer(self) -> Result<A, ErrorObject>;
}

macro_rules! into_answer {
    ($($answer:ty),*) => {
        $(
            impl IntoAnswer<$answer> for $answer {
                fn into_answer(self) -> Result<$answer, ErrorObject> {
                    Ok(self)
                }
            }

            impl<E: Into<ErrorObject> + Send> IntoAnswer<$answer> for Result<$answer, E> {
                fn into_answer(self) -> Result<$answer, ErrorObject> {
                    self.map_err(Into::into)
                }
            }
        )*
    };
}

into_answer!(ElicitResult, CreateMessageResult, ListRootsResult);

/// Makes all functions look the same.
pub(crate) fn answer<Q, A, F, Fut>(function: F) -> Option<Answer<Q, A>>
where
    F: Fn(Q) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoAnswer<A>> + Send + 'static,
{
    Some(Arc::new(move |question| {
        let answering = function(question);
        Box::pin(async move { answering.await.into_answer() })
    }))
}

impl Answers {
    /// Declares what can be answered.
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
            sampling.tools = if self.with_tools { empty() } else { None };
            capabilities.sampling = Some(sampling);
        }
        if self.roots.is_some() {
            capabilities.roots = Some(RootsCapability::default().list_changed(true));
        }
    }

    /// Answers a request of a legacy server, in its revision.
    pub(crate) async fn answer(
        &self,
        method: &Method,
        params: &PayloadBuf,
        revision: Revision,
    ) -> Result<RawObject, ErrorObject> {
        match method.as_str() {
            "elicitation/create" => self.elicit(read(params)?, revision).await,
            "sampling/createMessage" => self.sample(read(params)?, revision).await,
            "roots/list" => self.list_roots(revision).await,
            _ => Err(ErrorObject::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method `{method}` here"))),
        }
    }

    /// Answers a question of a modern server.
    pub(crate) async fn answer_input(&self, question: InputRequest) -> Result<RawObject, ErrorObject> {
        let revision = Revision::LATEST;
        match question {
            InputRequest::Elicit(request) => self.elicit(request.params, revision).await,
            InputRequest::CreateMessage(request) => self.sample(request.params, revision).await,
            InputRequest::ListRoots(_) => self.list_roots(revision).await,
            InputRequest::Unknown(_) | _ => Err(ErrorObject::invalid_params("this kind of question is not known")),
        }
    }

    async fn elicit(&self, question: ElicitRequestParams, revision: Revision) -> Result<RawObject, ErrorObject> {
        match (question, &self.form, &self.url) {
            (ElicitRequestParams::Form(form), Some(answer), _) => {
                let schema = form.requested_schema.clone();
                let mut result = answer(form).await?;
                // EL-9: content is for what was accepted.
                if result.action == ElicitAction::Accept {
                    let content = result.content.get_or_insert_default();
                    schema.fill_defaults(content);
                    // EL-19: the server is not told what its form rules out.
                    let wrong =
                        |fault: InvalidAnswer| ErrorObject::internal_error(format!("the answer is wrong: {fault}"));
                    schema.check(content).map_err(wrong)?;
                } else {
                    result.content = None;
                }
                written(result, revision)
            }
            (ElicitRequestParams::Url(url), _, Some(answer)) => {
                let mut result = answer(url).await?;
                result.content = None;
                written(result, revision)
            }
            _ => Err(ErrorObject::invalid_params("this client did not declare this mode of elicitation")),
        }
    }

    async fn sample(&self, request: CreateMessageRequestParams, revision: Revision) -> Result<RawObject, ErrorObject> {
        let Some(answer) = &self.sampling else {
            return Err(ErrorObject::invalid_params("this client did not declare sampling"));
        };
        if !self.with_tools && (request.tools.is_some() || request.tool_choice.is_some()) {
            return Err(ErrorObject::invalid_params("this client did not declare sampling with tools"));
        }
        written(answer(request).await?, revision)
    }

    async fn list_roots(&self, revision: Revision) -> Result<RawObject, ErrorObject> {
        let Some(answer) = &self.roots else {
            return Err(ErrorObject::invalid_params("this client did not declare roots"));
        };
        written(answer(()).await?, revision)
    }
}

fn read<T: DeserializeOwned>(params: &PayloadBuf) -> Result<T, ErrorObject> {
    params.decode().map_err(|fault| fault.to_error_object())
}

/// Writes an answer as far as the server's revision can express it.
// DU-44
fn written(mut answer: impl Serialize + Restrict, revision: Revision) -> Result<RawObject, ErrorObject> {
    let restriction = restrict_to(&mut answer, revision);
    if !restriction.may_be_sent() {
        let what: Vec<_> = restriction.refused().iter().chain(restriction.missing()).copied().collect();
        let what = what.join(", ");
        return Err(ErrorObject::internal_error(format!("{revision} cannot express the answer: {what}")));
    }
    RawObject::new(&answer).map_err(|fault| ErrorObject::internal_error(fault.to_string()))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use mcp_types::jsonrpc::Limits;
    use mcp_types::{OneOrMany, Role, SamplingContent, TextContent};

    use super::*;

    fn sampled(content: OneOrMany<SamplingContent>, revision: Revision) -> Result<String, String> {
        let sampling = answer(move |_: CreateMessageRequestParams| {
            let result = CreateMessageResult::new(Role::ASSISTANT, content.clone(), "model");
            async move { result }
        });
        let answers = Answers { sampling, ..Answers::default() };
        let params = PayloadBuf::parse(r#"{"messages":[],"maxTokens":1}"#, &Limits::default()).unwrap();
        let method = Method::SAMPLING_CREATE_MESSAGE;
        let answered = answers.answer(&method, &params, revision).now_or_never().unwrap();
        answered.map(|answer| answer.as_str().to_owned()).map_err(|error| error.message.into_owned())
    }

    /// An older server gets what its revision can express, or hears that there is no answer for it.
    // covers: DU-44
    #[test]
    fn answers_fit_the_revision() {
        let text = || SamplingContent::from(TextContent::new("a"));
        let one = || OneOrMany::from(text());
        let many = || OneOrMany::from(vec![text(), text()]);
        assert!(sampled(one(), Revision::V2024_11_05).is_ok());
        assert!(sampled(many(), Revision::V2025_11_25).is_ok());
        let refused = sampled(many(), Revision::V2025_06_18).unwrap_err();
        assert!(refused.starts_with("2025-06-18 cannot express the answer: "), "{refused}");
    }
}
