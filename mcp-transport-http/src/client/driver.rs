//! The task that drives a client's transport.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::FuturesUnordered;
use http::{HeaderValue, Method as Verb};
use mcp_client::{CallExtensions, CallId, CloseReason, OutgoingMessage, TransportCommand, TransportHandle};
use mcp_types::{Era, Method, Revision};
use reqwest::{Request, Url};
use tokio::time::Sleep;

use super::request::event_reader::StreamError;
use super::request::headers::{self, Session, SessionLost};
use super::request::one_way_post::OneWayPost;
use super::request::post::{LegacySse, Post, PostEnd, PostKind};
use super::request::resumable_stream::ResumableStream;
use super::request::sender::{CallContext, RequestSender};
use super::request::standalone_stream::{StreamEnd, forward, listen};

/// Executes the commands of a client, with one HTTP request per message, all in one task.
///
/// Calls run concurrently. Notifications and responses are sent one after the other, in order; while
/// `notifications/initialized` is being sent, calls wait.
struct Driver<C> {
    client: TransportHandle,
    sender: Arc<RequestSender>,
    /// The calls in flight, which are not boxed, because most requests are calls.
    calls: FuturesUnordered<C>,
    run_call: fn(Post, Request) -> C,
    /// The other requests in flight.
    requests: FuturesUnordered<Abortable<Pin<Box<dyn Future<Output = Ended> + Send>>>>,
    listening: Option<AbortHandle>,
    /// Queued notifications and responses, and their size. They are boxed, because the queue keeps its capacity.
    one_way_posts: VecDeque<Box<OneWayPost>>,
    one_way_bytes: usize,
    /// Whether one of them is being sent, and whether it opens the session.
    one_way_in_flight: Option<bool>,
    /// Calls that wait for the session to be open or for others to end. The client limits their number.
    queued_calls: VecDeque<OutgoingMessage>,
    /// Whether the message that opens the session is not accepted yet.
    is_opening: bool,
    /// The negotiated legacy revision.
    revision: Option<Revision>,
    /// Whether to open a GET stream as soon as the session is open.
    wants_stream: bool,
    /// A GET stream that was refused, and the number of logins before.
    refused_stream: Option<(Box<ResumableStream>, u64)>,
    /// The message endpoint of an HTTP+SSE server.
    sse_endpoint: Option<Url>,
    alarm: Option<Pin<Box<Sleep>>>,
}

/// A request that has ended.
enum Ended {
    Call(CallId, PostEnd),
    /// A request that was aborted.
    Aborted,
    OneWay(Option<SessionLost>),
    Stream(StreamEnd),
}

/// The maximum number of concurrent calls, as each may need a connection.
const MAX_CONCURRENT_CALLS: usize = 512;

/// The maximum number and size of queued notifications and responses. Beyond it the server counts as one that sends
/// requests without accepting the responses.
const MAX_ONE_WAY_POSTS: usize = 4096;
const MAX_ONE_WAY_BYTES: usize = 64 << 20;

/// How long queued notifications and responses may take when the client is closed.
const FINAL_POSTS_TIMEOUT: Duration = Duration::from_secs(1);

/// How long the server may take to end a session.
const DELETE_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs until the client is closed.
pub(crate) async fn run(sender: RequestSender, client: TransportHandle) {
    let Ok(id) = client.session_id().map(|id| HeaderValue::from_str(&id)).transpose() else {
        let why = "the id of the session to resume has characters that are not allowed in a header";
        return client.close(CloseReason::Disconnected(why.to_owned()));
    };
    sender.state().session = Session { id, generation: 0, owner: client.session_owner() };
    let driver = Driver {
        client,
        sender: Arc::new(sender),
        calls: FuturesUnordered::new(),
        run_call,
        requests: FuturesUnordered::new(),
        listening: None,
        one_way_posts: VecDeque::new(),
        one_way_bytes: 0,
        one_way_in_flight: None,
        queued_calls: VecDeque::new(),
        is_opening: false,
        revision: None,
        wants_stream: false,
        refused_stream: None,
        sse_endpoint: None,
        alarm: None,
    };
    driver.drive().await;
}

/// Whether another call may be sent.
fn has_room(sender: &RequestSender) -> bool {
    sender.state().connected_calls() < MAX_CONCURRENT_CALLS
}

/// Completes if a queued call can be sent. It needs no waker, as the calls make room in the task that waits for it.
async fn room(queued_calls: &VecDeque<OutgoingMessage>, is_opening: bool, sender: &RequestSender) {
    if queued_calls.is_empty() || is_opening || !has_room(sender) {
        std::future::pending().await
    }
}

/// Makes a call, until it is aborted.
async fn run_call(post: Post, request: Request) -> Ended {
    let mut run = pin!(post.run(request));
    poll_fn(|cx| {
        if !post.sender.state().is_open(post.call, cx.waker()) {
            return Poll::Ready(Ended::Aborted);
        }
        run.as_mut().poll(cx).map(|end| Ended::Call(post.call, end.unwrap_or_else(|end| end)))
    })
    .await
}

impl<C: Future<Output = Ended> + Send> Driver<C> {
    async fn drive(mut self) {
        let why = loop {
            let alarm = async {
                match &mut self.alarm {
                    Some(alarm) => alarm.await,
                    None => std::future::pending().await,
                }
            };
            // Timers come first, so that nothing delays them. Commands come before requests, so that responses do not pile
            // up in the client. Calls come last, because there may be many of them.
            tokio::select! {
                biased;
                () = alarm => {
                    self.alarm = None;
                    self.client.handle_timeout();
                }
                command = self.client.next_command() => match command {
                    Some(command) => self.execute(command),
                    None => break CloseReason::ByClient,
                },
                Some(ended) = self.requests.next() => if let Some(why) = self.ended(ended.unwrap_or(Ended::Aborted)) {
                    break why;
                },
                Some(ended) = self.calls.next() => if let Some(why) = self.ended(ended) {
                    break why;
                },
                // A call that waits for a login, which it has just begun to do, leaves its place to another one.
                () = room(&self.queued_calls, self.is_opening, &self.sender) => self.start_pending(),
            }
            if self.one_way_posts.len() > MAX_ONE_WAY_POSTS || self.one_way_bytes > MAX_ONE_WAY_BYTES {
                break CloseReason::Disconnected("the server does not accept messages: too many are queued".to_owned());
            }
        };
        self.shut_down(why).await;
    }

    /// Sends queued messages, and ends the session.
    async fn shut_down(mut self, why: CloseReason) {
        self.sender.closing.close();
        self.calls.clear();
        if why == CloseReason::ByClient {
            let _ = tokio::time::timeout(FINAL_POSTS_TIMEOUT, self.finish_one_way_posts()).await;
        }
        drop(self.requests);
        let session = self.sender.state().session.clone();
        if self.sender.options.end_session_on_close && session.id.is_some() && self.sse_endpoint.is_none() {
            let head = headers::for_delete(self.revision, &session);
            let request = self.sender.request(Verb::DELETE, &self.sender.url, head);
            // Servers may not support DELETE (405), or may have lost the session.
            let _ = tokio::time::timeout(
                DELETE_TIMEOUT,
                self.sender.send(request, &session, &CallContext::without_login()),
            )
            .await;
        }
        self.client.close(why);
    }

    /// Sends the queued notifications and responses.
    async fn finish_one_way_posts(&mut self) {
        self.queued_calls.clear();
        self.wants_stream = false;
        while self.one_way_in_flight.is_some()
            && let Some(ended) = self.requests.next().await
        {
            if let Ok(Ended::OneWay(_)) = ended {
                self.one_way_in_flight = None;
                self.start_pending();
            }
        }
    }

    fn execute(&mut self, command: TransportCommand) {
        match command {
            TransportCommand::Send(outgoing) => self.send(outgoing),
            TransportCommand::Abort { call } => {
                let aborted = self.sender.state().abort(call);
                aborted.into_iter().for_each(Waker::wake);
                self.queued_calls.retain(|queued| queued.call != Some(call));
            }
            TransportCommand::Ready { revision } => {
                self.revision = Some(revision).filter(|revision| revision.era() == Era::Legacy);
                // Also for 2024-11-05: servers that negotiate it over Streamable HTTP may have the stream, too.
                self.wants_stream = revision.era() == Era::Legacy
                    && self.sender.options.standalone_stream
                    && self.sse_endpoint.is_none();
                self.start_pending();
            }
            TransportCommand::WakeAt(at) => {
                let duration = at.duration_since(self.client.now());
                self.alarm = Some(Box::pin(tokio::time::sleep(duration)));
            }
        }
    }

    fn send(&mut self, outgoing: OutgoingMessage) {
        if outgoing.method == Some(Method::INITIALIZE) {
            self.forget_session();
        }
        match outgoing.call {
            Some(_) => self.queued_calls.push_back(outgoing),
            None => self.queue_one_way(outgoing),
        }
        self.start_pending();
    }

    /// Queues a notification or response.
    fn queue_one_way(&mut self, outgoing: OutgoingMessage) {
        let opens_session = outgoing.method == Some(Method::NOTIFICATIONS_INITIALIZED);
        // A call that was cancelled during its login does not start another one.
        let may_log_in = outgoing.method != Some(Method::NOTIFICATIONS_CANCELLED);
        let bytes = outgoing.message.len();
        let session = self.sender.state().session.clone();
        match self.post(outgoing, &session) {
            Ok(request) => {
                self.is_opening |= opens_session;
                self.one_way_bytes += bytes;
                self.one_way_posts.push_back(Box::new(OneWayPost {
                    request,
                    bytes,
                    session,
                    may_log_in,
                    opens_session,
                }));
            }
            Err(why) => tracing::warn!(target: "mcp", why, "message cannot be sent"),
        }
    }

    /// Creates the request that posts a message.
    fn post(&self, outgoing: OutgoingMessage, session: &Session) -> Result<Request, String> {
        self.sender.post(self.sse_endpoint.as_ref().unwrap_or(&self.sender.url), outgoing, session)
    }

    /// Starts the requests that can be started.
    fn start_pending(&mut self) {
        if self.one_way_in_flight.is_none()
            && let Some(post) = self.one_way_posts.pop_front()
        {
            self.one_way_in_flight = Some(post.opens_session);
            self.one_way_bytes -= post.bytes;
            let run = post.run(Arc::clone(&self.sender));
            self.start(async move { Ended::OneWay(run.await) });
        }
        if self.is_opening {
            return;
        }
        if std::mem::take(&mut self.wants_stream) {
            let session = self.sender.state().session.clone();
            let stream = ResumableStream::new(Arc::clone(&self.sender), self.revision, session);
            self.listen(stream, false);
        } else if let Some((stream, _)) =
            self.refused_stream.take_if(|(stream, logins)| stream.sender.state().logins != *logins)
        {
            self.listen(*stream, true);
        }
        while has_room(&self.sender)
            && let Some(outgoing) = self.queued_calls.pop_front()
        {
            self.call(outgoing);
        }
    }

    fn listen(&mut self, stream: ResumableStream, is_late: bool) {
        self.listening = Some(self.start(async move { Ended::Stream(listen(stream, is_late).await) }));
    }

    fn call(&self, mut outgoing: OutgoingMessage) {
        let Some(call) = outgoing.call else { return };
        let context = CallContext::new(call, std::mem::take(&mut outgoing.extensions));
        let kind = match &outgoing.method {
            _ if self.sse_endpoint.is_some() => PostKind::LegacySse,
            Some(method) if *method == Method::INITIALIZE => PostKind::Handshake,
            Some(method) if *method == Method::SUBSCRIPTIONS_LISTEN => PostKind::Subscription,
            Some(_) | None => PostKind::Call,
        };
        let (revision, session) = (outgoing.revision, self.sender.state().session.clone());
        match self.post(outgoing, &session) {
            Ok(request) => {
                let sender = Arc::clone(&self.sender);
                self.start_call(Post { sender, call, context, revision, session, kind }, request);
            }
            Err(why) => self.sender.responses.handle_stream_ended(call, Some(why)),
        }
    }

    fn start_call(&self, post: Post, request: Request) {
        self.sender.state().insert(post.call);
        self.calls.push((self.run_call)(post, request));
    }

    fn start(&self, work: impl Future<Output = Ended> + Send + 'static) -> AbortHandle {
        let (handle, registration) = AbortHandle::new_pair();
        self.requests.push(Abortable::new(Box::pin(work), registration));
        handle
    }

    /// Handles the end of a request. Returns the reason if the connection is lost.
    fn ended(&mut self, ended: Ended) -> Option<CloseReason> {
        match ended {
            Ended::Call(call, end) => {
                self.sender.state().remove(call);
                match end {
                    PostEnd::Ended(why) => self.sender.responses.handle_stream_ended(call, why),
                    PostEnd::Unauthorized(error) => self.sender.responses.handle_unauthorized(call, error),
                    #[cfg(feature = "client-tls")]
                    PostEnd::InvalidCertificate(what) => {
                        self.sender.responses.handle_invalid_certificate(call, what);
                    }
                    PostEnd::SessionLost(lost) => self.session_lost(Some(call), lost),
                    PostEnd::StreamLost(lost, why) => {
                        self.session_lost(None, lost);
                        self.sender.responses.handle_stream_ended(call, Some(why));
                    }
                    PostEnd::OnSseStream => {}
                    PostEnd::LegacySse(found) => self.use_legacy_sse(call, *found),
                }
            }
            Ended::OneWay(lost) => {
                if self.one_way_in_flight.take() == Some(true) {
                    self.is_opening = false;
                }
                if let Some(lost) = lost {
                    self.session_lost(None, lost);
                }
            }
            Ended::Stream(StreamEnd::SessionLost(lost)) => self.session_lost(None, lost),
            Ended::Stream(StreamEnd::Unauthorized(stream)) => {
                let logins = self.sender.state().logins;
                self.refused_stream = Some((stream, logins));
            }
            Ended::Stream(StreamEnd::Unreachable(why)) => return Some(CloseReason::Disconnected(why)),
            Ended::Stream(StreamEnd::Abandoned) | Ended::Aborted => {}
        }
        self.start_pending();
        None
    }

    /// Handles the loss of a session. `call` is the one that the server refused, if any.
    fn session_lost(&mut self, call: Option<CallId>, SessionLost { generation, reason }: SessionLost) {
        let is_latest = generation == self.sender.state().session.generation;
        if is_latest {
            self.forget_session();
            // Queued calls were meant for that session, too.
            for outgoing in self.queued_calls.drain(..) {
                self.client.handle_session_lost(outgoing.call, false, reason);
            }
        }
        self.client.handle_session_lost(call, is_latest, reason);
    }

    /// Reads the event stream of an HTTP+SSE server, and sends the refused call to its endpoint.
    fn use_legacy_sse(&mut self, call: CallId, LegacySse { endpoint, mut events, owner, request }: LegacySse) {
        self.sse_endpoint = Some(endpoint);
        let responses = self.sender.responses.clone();
        self.listening = Some(self.start(async move {
            Ended::Stream(StreamEnd::Unreachable(match forward(&mut events, &responses).await {
                Ok(_) => "the server ended its stream".to_owned(),
                Err(StreamError::Broken(why) | StreamError::Unreadable(why)) => why,
            }))
        }));
        let session = {
            let mut state = self.sender.state();
            state.session.owner = Some(owner);
            state.session.clone()
        };
        let (sender, context) = (Arc::clone(&self.sender), CallContext::new(call, CallExtensions::default()));
        self.start_call(Post { sender, call, context, revision: None, session, kind: PostKind::LegacySse }, request);
    }

    /// Forgets the session, and everything queued or open in it.
    fn forget_session(&mut self) {
        {
            let session = &mut self.sender.state().session;
            *session = Session { generation: session.generation + 1, ..Session::default() };
        }
        self.sse_endpoint = None;
        self.one_way_posts.clear();
        self.one_way_bytes = 0;
        self.is_opening = self.one_way_in_flight == Some(true);
        self.wants_stream = false;
        self.refused_stream = None;
        if let Some(listening) = self.listening.take() {
            listening.abort();
        }
    }
}
