//! A response that reads a stream of a session.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::request::Parts;
use mcp_kernel::server::{Route, Transmit};
use mcp_server::BoxFuture;
use mcp_session::{EventIdKey, Replay, SessionLease, StoreError};
use mcp_types::jsonrpc::EncodedMessage;

use super::orphaned;
use super::readers::{Due, ReaderTarget};
use super::record_sync::RecordSync;
use super::session::{STANDALONE, Session};
use super::stream::Stream;
use crate::clock::now;
use crate::event_stream::encode::{TOKEN_EXPIRED, write_empty_event, write_event, write_event_with_id, write_retry};
use crate::server::admission::Permit;
use crate::server::exchange::{EVENT_BATCH_BYTES, ResponseStart, StreamPoll, aborted};
use crate::server::pacer::{Pace, Pacer};
use crate::server::refusal::Refusal;
use crate::server::shutdown::{Stage, WorkGuard};

/// The reader of a stream. Polling it runs the session; dropping it does not cancel the request.
pub(crate) struct StreamReader {
    session: SessionLease<Session>,
    number: u64,
    reader: u64,
    settings: Arc<StreamSettings>,
    pub(crate) pacer: Pacer,
    /// The permit of a listen stream, or of a request that has its response.
    pub(crate) permit: Option<Permit>,
    /// The head of the request, of a response to one.
    pub(crate) parts: Option<Arc<Parts>>,
    /// Whether the response has become an event stream.
    is_stream: bool,
    /// Whether the requests of the session have to be aborted.
    must_abort: bool,
    pub(crate) is_aborted: bool,
    pub(crate) is_over: bool,
    saving: Saving,
    /// The missed events that are being loaded.
    missed: Option<BoxFuture<Result<Replay, StoreError>>>,
}

/// The settings that all readers of a service share.
pub(crate) struct StreamSettings {
    pub(crate) keep_alive_interval: Duration,
    /// The `retry` value of event streams.
    pub(crate) retry: Duration,
    /// How long a request continues after its client disconnected.
    pub(crate) orphaned_timeout: Duration,
    /// The `Retry-After` of requests that are refused for now.
    pub(crate) retry_after: Duration,
    pub(crate) key: Arc<EventIdKey>,
    /// Saves session records, if there is a store.
    pub(crate) record_sync: Option<RecordSync>,
}

/// The session record is saved before a response is sent.
enum Saving {
    Due,
    Running(BoxFuture<Result<(), Refusal>>),
    Done,
}

impl StreamReader {
    /// Creates the reader of a request's response.
    pub(crate) fn of_request(
        session: SessionLease<Session>,
        (number, reader): (u64, u64),
        settings: Arc<StreamSettings>,
        work_guard: WorkGuard,
    ) -> Self {
        Self {
            saving: if session.record_state.is_some() { Saving::Due } else { Saving::Done },
            session,
            number,
            reader,
            pacer: Pacer::new(work_guard, settings.keep_alive_interval),
            settings,
            permit: None,
            parts: None,
            is_stream: false,
            must_abort: false,
            is_aborted: false,
            is_over: false,
            missed: None,
        }
    }

    /// Creates the reader of a GET: it resumes a stream after an event, or reads the standalone stream.
    pub(crate) fn of_stream(
        session: SessionLease<Session>,
        place: Option<(u64, u64)>,
        settings: Arc<StreamSettings>,
        work_guard: WorkGuard,
        permit: Permit,
    ) -> (Self, Vec<u8>) {
        let number = place.map_or(STANDALONE, |(stream, _)| stream);
        let mut state = session.lock();
        let request = state.streams.get(number).and_then(|stream| stream.request);
        let reads =
            if number == STANDALONE { Some(ReaderTarget::Standalone) } else { request.map(ReaderTarget::Request) };
        let reader = session.readers.add(reads);
        let mut before = None;
        // The session may have ended since it was looked up.
        let is_ended = state.is_ended;
        if number == STANDALONE && !is_ended {
            let before = place.map_or(0, |(_, after)| after).max(session.first_number());
            let stream = state.streams.get_or_insert(STANDALONE);
            stream.number = stream.number.max(before);
        }
        let mut first = Vec::new();
        let mut is_over = false;
        match state.streams.get_mut(number).filter(|_| !is_ended) {
            Some(stream) => {
                // The previous reader is replaced, and woken below.
                before = stream.reader.replace(reader);
                stream.expires_at = None;
                stream.is_known = session.is_resumable();
                if place.is_none() {
                    write_initial_event(&session, &settings, number, stream.number, settings.retry, &mut first);
                }
            }
            // The request has finished; its events may still be stored.
            None => is_over = place.is_none() || is_ended,
        }
        drop(state);
        session.readers.wake(before.as_slice());
        let replay = |(stream, after)| -> Option<BoxFuture<_>> {
            let (store, id) = (Arc::clone(&session.events.as_ref()?.store), session.id());
            Some(Box::pin(async move { store.replay(id, stream, after).await }))
        };
        let missed = place.and_then(replay);
        let mut reader = Self::of_request(session, (number, reader), settings, work_guard);
        (reader.permit, reader.is_stream) = (Some(permit), true);
        (reader.is_over, reader.missed) = (is_over, missed);
        (reader, first)
    }

    /// Waits for the response, or for the first message before it.
    pub(crate) fn poll_first(&mut self, cx: &mut Context<'_>, events: &mut Vec<u8>) -> Poll<ResponseStart> {
        if !self.is_stream {
            self.session.readers.register(self.reader, cx.waker());
            // Most handlers finish while their message is passed to the session.
            if !self.is_response_next() {
                self.session.pump_if_due(self.reader);
            }
            while self.is_response_next() {
                let saved = ready!(self.poll_save(cx));
                let mut state = self.session.lock();
                let stream = state.streams.get(self.number).filter(|stream| stream.reader == Some(self.reader));
                if stream.is_some_and(Stream::is_response_next)
                    && let Some(mut stream) = state.streams.remove(self.number)
                    && let Some(reply) = stream.pop()
                {
                    drop(state);
                    self.permit = stream.permit;
                    self.is_over = true;
                    if let Err(refusal) = saved {
                        return Poll::Ready(ResponseStart::Refused(refusal.of(stream.id, self.session.revision)));
                    }
                    self.is_aborted |= reply.failure.is_some() && self.pacer.work_guard.stage() == Stage::Aborting;
                    return Poll::Ready(ResponseStart::Message(reply));
                }
            }
        }
        self.poll(cx, events).map(ResponseStart::Stream)
    }

    /// Whether it reads the stream of the session as a whole.
    pub(crate) fn is_standalone(&self) -> bool {
        self.number == STANDALONE
    }

    /// Whether the next message of the stream is the response.
    fn is_response_next(&self) -> bool {
        let state = self.session.lock();
        let stream = state.streams.get(self.number).filter(|stream| stream.reader == Some(self.reader));
        stream.is_some_and(Stream::is_response_next)
    }

    /// Saves the session record.
    fn poll_save(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Refusal>> {
        if let (Saving::Due, Some(record_sync)) = (&self.saving, &self.settings.record_sync) {
            let (record_sync, session) = (record_sync.clone(), self.session.clone());
            self.saving = Saving::Running(Box::pin(async move { record_sync.save(&session).await }));
        }
        let saved = match &mut self.saving {
            Saving::Running(saving) => match saving.as_mut().poll(cx) {
                Poll::Ready(saved) => saved,
                // A drain does not wait for a store that does not respond.
                Poll::Pending if self.pacer.poll_stage(cx) == Stage::Aborting => {
                    Err(Refusal::shutting_down(self.settings.retry_after))
                }
                Poll::Pending => return Poll::Pending,
            },
            Saving::Due | Saving::Done => Ok(()),
        };
        self.saving = Saving::Done;
        Poll::Ready(saved)
    }

    /// Replaces the response with an error, because the session record cannot be saved.
    fn refuse(&self, refusal: &Refusal) {
        let mut state = self.session.lock();
        if let Some(stream) = state.streams.get_mut(self.number).filter(|stream| stream.reader == Some(self.reader))
            && let Some(message) = refusal.to_message(stream.id.as_ref(), self.session.revision)
        {
            stream.replace_response(message);
        }
    }

    /// Appends the events that are ready.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, events: &mut Vec<u8>) -> Poll<StreamPoll> {
        if let Some(missed) = &mut self.missed {
            let missed = ready!(missed.as_mut().poll(cx));
            self.missed = None;
            self.replay(missed, events);
        }
        loop {
            if self.is_over {
                return Poll::Ready(if events.is_empty() { StreamPoll::End } else { StreamPoll::Events });
            }
            // The reader and its timers have the same task.
            if !self.pacer.wakes(cx.waker()) {
                self.session.readers.register(self.reader, cx.waker());
            }
            let is_held = self.take(events);
            if !events.is_empty() {
                self.pacer.sent();
                return Poll::Ready(StreamPoll::Events);
            }
            if self.is_over {
                continue;
            }
            if is_held && self.is_stream {
                if let Err(refusal) = ready!(self.poll_save(cx)) {
                    self.refuse(&refusal);
                }
                continue;
            }
            if is_held {
                // The response is sent as JSON, not as an event.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let Some(news) = ready!(self.poll_idle(cx)) else {
                if self.is_stream {
                    continue;
                }
                // The next message may be the response, which is then sent as JSON, not as an event.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            };
            if news == StreamPoll::Idle && !self.is_stream {
                // A keep-alive comment needs an event stream.
                self.begin_stream(events);
            }
            if self.pacer.take_token_expiry() {
                events.extend_from_slice(TOKEN_EXPIRED);
            }
            return Poll::Ready(if events.is_empty() { news } else { StreamPoll::Events });
        }
    }

    /// Turns the response into an event stream.
    fn begin_stream(&mut self, events: &mut Vec<u8>) {
        self.is_stream = true;
        let mut state = self.session.lock();
        // Events after the end of the session are not stored.
        let is_known = self.session.is_resumable() && !state.is_ended;
        if let Some(stream) = state.streams.get_mut(self.number) {
            stream.is_known = is_known;
            write_initial_event(&self.session, &self.settings, self.number, stream.number, self.settings.retry, events);
        }
    }

    /// Appends the missed events. New messages have later numbers, and wait in the stream.
    fn replay(&mut self, missed: Result<Replay, StoreError>, events: &mut Vec<u8>) {
        let Replay { events: missed, is_whole } = match missed {
            Ok(missed) => missed,
            Err(error) => {
                tracing::warn!(target: "mcp", %error, "cannot load missed events, so their stream is closed");
                // The client will reconnect with the same event id.
                self.is_over = true;
                return;
            }
        };
        if !is_whole {
            tracing::debug!(target: "mcp", session = ?self.session.id(), "not all missed events of a client are stored");
        }
        let mut last = 0;
        for event in missed {
            // A store may return messages that are not on one line.
            self.write(event.number, &EncodedMessage::from_bytes(event.message.into()), events);
            self.session.counters.replayed.fetch_add(1, Ordering::Relaxed);
            last = event.number;
        }
        let mut state = self.session.lock();
        match state.streams.get_mut(self.number) {
            Some(stream) => stream.number = stream.number.max(last),
            // The request has finished, and these were its last events.
            None => self.is_over = true,
        }
    }

    /// Takes messages from the stream. Returns whether the response is next, and must not be sent as an event, or not yet.
    fn take(&mut self, events: &mut Vec<u8>) -> bool {
        let session = &self.session;
        session.pump_if_due(self.reader);
        let mut guard = session.lock();
        let state = &mut *guard;
        let Some(stream) = state.streams.get_mut(self.number).filter(|stream| stream.reader == Some(self.reader))
        else {
            // Another reader replaced this one, or the session has ended.
            self.is_over = true;
            return false;
        };
        if stream.is_cancelled {
            self.is_over = true;
            let stream = state.streams.remove(self.number);
            self.permit = self.permit.take().or_else(|| stream?.permit);
            return false;
        }
        if stream.is_response_next() && !self.is_stream {
            return true;
        }
        let handler_stream = stream.handler_stream.as_ref().filter(|_| session.is_resumable());
        let closed = handler_stream.and_then(|handler_stream| handler_stream.take_retry());
        let has_news = !stream.is_empty() || closed.is_some();
        if has_news && !self.is_stream {
            self.is_stream = true;
            stream.is_known = session.is_resumable() && !state.is_ended;
            write_initial_event(
                session,
                &self.settings,
                self.number,
                stream.number,
                closed.unwrap_or(self.settings.retry),
                events,
            );
        }
        let is_saved = matches!(self.saving, Saving::Done);
        while events.len() < EVENT_BATCH_BYTES
            && (is_saved || !stream.is_response_next())
            && let Some(Transmit { route, message, .. }) = stream.pop()
        {
            let is_last = matches!(route, Route::Reply(_));
            if stream.is_known {
                self.write(stream.number + 1, &message, events);
                session.store_event(self.number, stream, message);
            } else {
                write_event(events, &message);
            }
            if is_last {
                self.is_over = true;
                let stream = state.streams.remove(self.number);
                self.permit = self.permit.take().or_else(|| stream?.permit);
                return false;
            }
        }
        let is_held = !is_saved && stream.is_response_next();
        if let Some(retry) = closed {
            if !stream.is_empty() {
                // There are more messages than are sent at once.
                if let Some(handler_stream) = &stream.handler_stream {
                    handler_stream.set_retry(retry);
                }
                return is_held;
            }
            // Sends the client the time to reconnect, and ends the response.
            write_retry(events, retry);
            self.is_over = true;
            drop(guard);
            self.leave(retry);
            return false;
        }
        if session.unblock(state, self.number) {
            // The messages that were blocked can be delivered now.
            session.readers.set_due(Due::Run);
        }
        is_held
    }

    fn write(&self, number: u64, message: &EncodedMessage, events: &mut Vec<u8>) {
        let id = |out: &mut Vec<u8>| self.settings.key.write(&self.session.id(), self.number, number, out);
        write_event_with_id(events, id, message);
    }

    /// Leaves the stream, which the client is expected to resume after `retry`.
    fn leave(&self, retry: Duration) {
        let mut state = self.session.lock();
        let Some(stream) = state.streams.get_mut(self.number).filter(|stream| stream.reader == Some(self.reader))
        else {
            return;
        };
        stream.reader = None;
        stream.expires_at = Some(now() + self.settings.orphaned_timeout + retry);
        // A response stays queued until the session record is saved.
        while !(stream.is_response_next() && self.session.record_state.is_some())
            && let Some(transmit) = stream.pop()
        {
            self.session.store_event(self.number, stream, transmit.message);
        }
        let was_blocked = self.session.unblock(&mut state, self.number);
        let is_left = |stream: &Stream| stream.request.is_some() || !stream.is_empty();
        let is_orphan = state.streams.get(self.number).is_some_and(is_left);
        if self.number != STANDALONE && !is_orphan {
            state.streams.remove(self.number);
        }
        drop(state);
        if self.number != STANDALONE && is_orphan {
            orphaned::supervise(&self.session, &self.settings, &self.pacer.work_guard);
        } else if was_blocked {
            // Messages that were blocked can be delivered now.
            self.session.readers.wake_route(None);
        }
    }

    /// Waits for what else there is to do. After `None` there may be new messages.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<Option<StreamPoll>> {
        loop {
            if self.must_abort && self.is_aborted {
                self.is_over = true;
                return Poll::Ready(Some(StreamPoll::End));
            }
            if self.must_abort && self.session.poll_abort(cx, &aborted()).is_ready() {
                self.is_aborted = true;
                return Poll::Ready(None);
            }
            let deadline = self.session.connection.poll_timeout().map(|deadline| deadline.at);
            match ready!(self.pacer.poll(cx, deadline)) {
                Pace::KeepAlive => return Poll::Ready(Some(StreamPoll::Idle)),
                Pace::Timeout => {
                    self.session.connection.handle_timeout(now());
                    self.session.readers.set_due(Due::Run);
                    return Poll::Ready(None);
                }
                // Requests may finish.
                Pace::Drain if self.number != STANDALONE => {}
                Pace::Abort if self.number != STANDALONE => self.must_abort = true,
                // S4.84: the standalone stream ends at once.
                Pace::Drain | Pace::Abort | Pace::Expire => {
                    self.is_over = true;
                    return Poll::Ready(Some(StreamPoll::End));
                }
            }
        }
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        self.session.readers.leave(self.reader);
        self.leave(Duration::ZERO);
    }
}

/// Appends an empty event with an id before the first message, for revisions that define it.
// B-104
fn write_initial_event(
    session: &Session,
    settings: &StreamSettings,
    stream: u64,
    number: u64,
    retry: Duration,
    events: &mut Vec<u8>,
) {
    if session.is_resumable() && session.sends_initial_event() {
        let id = |out: &mut Vec<u8>| settings.key.write(&session.id(), stream, number, out);
        write_empty_event(events, id, retry);
    }
}
