//! Single rounds of a call, for gateways that forward input requests.

use mcp_mrtr::RetryError;
use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::{InputRequiredResult, InputResponses};
use serde::de::DeserializeOwned;

use crate::call::{Call, Extent, Finished};
use crate::error::Error;
use crate::tasks::TaskReference;

/// The outcome of [`Call::one_round`].
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a round ends in one of these ways")]
pub enum RoundOutcome<R> {
    /// The call is complete.
    Complete(R),
    /// The server needs input, or wants the call to be repeated with its state. Send the call again with
    /// [`input_responses`](Call::input_responses) and [`request_state`](Call::request_state).
    InputRequired(Box<InputRequiredResult>),
    /// The server has created a task, which [`Client::resume_task`](crate::Client::resume_task) follows.
    Task(Box<TaskReference>),
}

impl<R: DeserializeOwned + Send + 'static> Call<R> {
    /// Sends the call once, and returns the input requests of a modern server instead of handling them.
    ///
    /// So a gateway can pass them on to its own client, and needs no state of its own: the retry has the responses and the
    /// state of the server. Legacy servers send requests while the call is in flight, which handlers serve in either case;
    /// their calls are always complete.
    ///
    /// ```no_run
    /// use mcp_client::types::{InputResponses, RawObject};
    /// use mcp_client::{Client, Error, RoundOutcome};
    ///
    /// # async fn example(client: Client) -> Result<(), Error> {
    /// let RoundOutcome::InputRequired(required) = client.call_tool("book").one_round().await? else { return Ok(()) };
    /// let mut responses = InputResponses::new();
    /// for (key, request) in required.input_requests.iter().flatten() {
    ///     responses.insert(key, ask(request)); // Elsewhere, and later.
    /// }
    /// let mut retry = client.call_tool("book").input_responses(responses);
    /// if let Some(state) = required.request_state {
    ///     retry = retry.request_state(state);
    /// }
    /// let outcome = retry.one_round().await?;
    /// # drop(outcome);
    /// # Ok(())
    /// # }
    /// # fn ask(_: &mcp_client::types::InputRequest) -> RawObject { RawObject::empty() }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the error of the call, and [`Error::Retry`] if the server sends more input requests than
    /// [`RetryLimits`](crate::RetryLimits) allow.
    pub async fn one_round(self) -> Result<RoundOutcome<R>, Error> {
        let max_input_requests = self.client.shared.settings.retry_limits.max_input_requests;
        let outcome = self.start(Extent::OneRound, move |call, finished| match finished {
            Finished::Complete(result, owner) => Ok(RoundOutcome::Complete(call.decode(&result, owner)?.0)),
            Finished::InputRequired(result, _) => {
                let required = read_input_required(&result, max_input_requests)?;
                Ok(RoundOutcome::InputRequired(Box::new(required)))
            }
            Finished::Task(created) => Ok(RoundOutcome::Task(Box::new((*created).into()))),
        });
        outcome.await
    }

    /// Sets the responses to the input requests of an earlier [round](Self::one_round), under the same keys.
    pub fn input_responses(mut self, responses: InputResponses) -> Self {
        self.input_responses = Some(responses);
        self
    }

    /// Sets the state that the server returned in an earlier [round](Self::one_round), which must be unchanged.
    pub fn request_state(mut self, state: impl Into<String>) -> Self {
        self.request_state = Some(state.into());
        self
    }
}

fn read_input_required(result: &PayloadBuf, limit: usize) -> Result<InputRequiredResult, Error> {
    if result.member_count("inputRequests").unwrap_or_default() > limit {
        return Err(RetryError::TooManyInputRequests { limit }.into());
    }
    result.decode().map_err(|fault| Error::InvalidResponse(fault.to_string()))
}
