//! A response that reads a stream of a session.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use mcp_kernel::{Route, Time, Transmit};
use mcp_session::{BoxFuture, EventKey, Lease, Replay, StoreError};
use mcp_types::ErrorObject;
use mcp_types::jsonrpc::EncodedMessage;
use tokio::time::{Sleep, sleep, sleep_until};

use super::orphaned;
use super::readers::ReaderTarget;
use super::record_sync::RecordSync;
use super::session::{STANDALONE, Session};
use super::stream::Stream;
use crate::clock::now;
use crate::server::admission::Permit;
use crate::server::body::write_event;
use crate::server::exchange::{EVENT_BATCH_BYTES, ResponseStart, StreamPoll, after};
use crate::server::refusal::Refusal;
use crate::server::shutdown::{Stage, StageWatch, WorkGuard};

/// The reader of a stream. It runs the session while it is polled; dropping it lets the request go on.
pub(crate) struct StreamReader {
    session: Lease<Session>,
    number: u64,
    reader: u64,
    settings: StreamSettings,
    work_guard: WorkGuard,
    /// The room that listening takes, or that a request takes which is answered.
    permit: Option<Permit>,
    /// Whether the response is a stream by now.
    is_stream: bool,
    is_aborted: bool,
    is_over: bool,
    saving: Saving,
    /// What the client missed, on its way.
    missed: Option<BoxFuture<Result<Replay, StoreError>>>,
    waiting: Option<Waiting>,
    deadline: Option<(Time, Pin<Box<Sleep>>)>,
    /// When whoever asked may not hear any more.
    expiry: Option<Pin<Box<Sleep>>>,
}

/// How readers of a service behave.
#[derive(Clone)]
pub(crate) struct StreamSettings {
    pub(crate) keep_alive_interval: Duration,
    /// When clients are to come back for what they missed.
    pub(crate) retry: Duration,
    /// How long a request goes on for a client that is gone.
    pub(crate) orphaned_timeout: Duration,
    pub(crate) key: Arc<EventKey>,
    /// Who keeps what a request has settled, if anybody does.
    pub(crate) record_sync: Option<RecordSync>,
}

/// What a request has settled is kept before it is answered.
enum Saving {
    Due,
    Running(BoxFuture<Result<(), Refusal>>),
    Done,
}

struct Waiting {
    end: StageWatch,
    silence: Pin<Box<Sleep>>,
}

impl StreamReader {
    /// Reads the answer to a request.
    pub(crate) fn of_request(
        session: Lease<Session>,
        (number, reader): (u64, u64),
        settings: StreamSettings,
        work_guard: WorkGuard,
    ) -> Self {
        Self {
            saving: if session.record_state.is_some() { Saving::Due } else { Saving::Done },
            session,
            number,
            reader,
            settings,
            work_guard,
            permit: None,
            is_stream: false,
            is_aborted: false,
            is_over: false,
            missed: None,
            waiting: None,
            deadline: None,
            expiry: None,
        }
    }

    /// Reads a stream from where the client is in it; without a place, what belongs to the session as a whole.
    pub(crate) fn of_stream(
        session: Lease<Session>,
        place: Option<(u64, u64)>,
        settings: StreamSettings,
        work_guard: WorkGuard,
        permit: Permit,
    ) -> (Self, Vec<u8>) {
        let number = place.map_or(STANDALONE, |(stream, _)| stream);
        let mut state = session.lock();
        let request = state.streams.get(&number).and_then(|stream| stream.request);
        let reads =
            if number == STANDALONE { Some(ReaderTarget::Standalone) } else { request.map(ReaderTarget::Request) };
        let reader = session.readers.add(reads);
        let mut before = None;
        // It may have ended since it was found.
        let is_ended = state.is_ended;
        if number == STANDALONE && !is_ended {
            let before = place.map_or(0, |(_, after)| after).max(session.first_number());
            let stream = state.streams.entry(STANDALONE).or_default();
            stream.number = stream.number.max(before);
        }
        let mut first = Vec::new();
        let mut is_over = false;
        match state.streams.get_mut(&number).filter(|_| !is_ended) {
            Some(stream) => {
                // Whoever read it before has lost it, and does not know yet.
                before = stream.reader.replace(reader);
                stream.expires_at = None;
                stream.is_known = session.is_resumable();
                if place.is_none() {
                    write_initial_event(&session, &settings, number, stream.number, settings.retry, &mut first);
                }
            }
            // The request is over; what was said about it may be there.
            None => is_over = place.is_none() || is_ended,
        }
        drop(state);
        session.readers.wake(before.as_slice());
        let replay = |(stream, after)| Some(session.events.as_ref()?.store.replay(session.id, stream, after));
        let missed = place.and_then(replay);
        let reader = Self {
            saving: if session.record_state.is_some() { Saving::Due } else { Saving::Done },
            session,
            number,
            reader,
            settings,
            work_guard,
            permit: Some(permit),
            is_stream: true,
            is_aborted: false,
            is_over,
            missed,
            waiting: None,
            deadline: None,
            expiry: None,
        };
        (reader, first)
    }

    /// Ends the response at a time; the stream is there for the next one.
    pub(crate) fn expire_at(&mut self, at: Instant) {
        self.expiry = Some(Box::pin(sleep_until(at.into())));
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Takes the room of a request that is over, to be held until its response is sent.
    pub(crate) fn take_permit(&mut self) -> Option<Permit> {
        self.permit.take()
    }

    pub(crate) fn is_aborted(&self) -> bool {
        self.is_aborted
    }

    /// Waits for the answer, or for the first thing that is said before it.
    pub(crate) fn poll_first(&mut self, cx: &mut Context<'_>, events: &mut Vec<u8>) -> Poll<ResponseStart> {
        if !self.is_stream {
            self.session.readers.register(self.reader, cx.waker());
            // Most handlers are done by the time that their message is taken.
            if !self.is_answer_next() {
                self.session.pump(Some(self.reader));
            }
            while self.is_answer_next() {
                let saved = ready!(self.poll_saved(cx));
                let mut state = self.session.lock();
                let stream = state.streams.get(&self.number).filter(|stream| stream.reader == Some(self.reader));
                if stream.is_some_and(Stream::is_answer_next)
                    && let Some(mut stream) = state.streams.remove(&self.number)
                    && let Some(answer) = stream.pop()
                {
                    drop(state);
                    self.permit = stream.permit;
                    self.is_over = true;
                    if let Err(refusal) = saved {
                        return Poll::Ready(ResponseStart::Refused(refusal.of(stream.id)));
                    }
                    self.is_aborted |= answer.failure.is_some() && self.work_guard.stage() == Stage::Aborting;
                    return Poll::Ready(ResponseStart::Message(answer));
                }
            }
        }
        self.poll(cx, events).map(ResponseStart::Stream)
    }

    /// Whether the next message of the stream is the answer.
    fn is_answer_next(&self) -> bool {
        let state = self.session.lock();
        let stream = state.streams.get(&self.number).filter(|stream| stream.reader == Some(self.reader));
        stream.is_some_and(Stream::is_answer_next)
    }

    /// Keeps what the request has settled, which it has when there is an answer.
    fn poll_saved(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Refusal>> {
        if let (Saving::Due, Some(record_sync)) = (&self.saving, &self.settings.record_sync) {
            let (record_sync, session) = (record_sync.clone(), self.session.clone());
            self.saving = Saving::Running(Box::pin(async move { record_sync.save(&session).await }));
        }
        let saved = match &mut self.saving {
            Saving::Running(saving) => ready!(saving.as_mut().poll(cx)),
            Saving::Due | Saving::Done => Ok(()),
        };
        self.saving = Saving::Done;
        Poll::Ready(saved)
    }

    /// Says that the answer cannot be given, because what it says cannot be kept.
    fn refuse(&self, refusal: &Refusal) {
        let mut state = self.session.lock();
        if let Some(stream) = state.streams.get_mut(&self.number).filter(|stream| stream.reader == Some(self.reader))
            && let Some(message) = refusal.to_message(stream.id.as_ref(), self.session.revision)
        {
            stream.replace_answer(message);
        }
    }

    /// Appends what there is to say.
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
            self.session.readers.register(self.reader, cx.waker());
            let is_held = self.take(events);
            if !events.is_empty() {
                if let Some(waiting) = &mut self.waiting {
                    waiting.silence.as_mut().reset(after(self.settings.keep_alive_interval));
                }
                return Poll::Ready(StreamPoll::Events);
            }
            if self.is_over {
                continue;
            }
            if is_held && self.is_stream {
                if let Err(refusal) = ready!(self.poll_saved(cx)) {
                    self.refuse(&refusal);
                }
                continue;
            }
            if is_held {
                // It is no event as long as the response is no stream.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let Some(news) = ready!(self.poll_idle(cx)) else {
                if self.is_stream {
                    continue;
                }
                // What is there now may be the answer, which is no event as long as the response is no stream.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            };
            if news == StreamPoll::Idle && !self.is_stream {
                // The response has to become a stream for the comment to go anywhere.
                self.begin_stream(events);
            }
            return Poll::Ready(if events.is_empty() { news } else { StreamPoll::Events });
        }
    }

    /// Makes the response a stream.
    fn begin_stream(&mut self, events: &mut Vec<u8>) {
        self.is_stream = true;
        let mut state = self.session.lock();
        // What is said after the end is not kept.
        let is_known = self.session.is_resumable() && !state.is_ended;
        if let Some(stream) = state.streams.get_mut(&self.number) {
            stream.is_known = is_known;
            write_initial_event(&self.session, &self.settings, self.number, stream.number, self.settings.retry, events);
        }
    }

    /// Writes what the client missed; what comes from now on has later numbers, and waits in the stream.
    fn replay(&mut self, missed: Result<Replay, StoreError>, events: &mut Vec<u8>) {
        let Replay { events: missed, is_whole } = match missed {
            Ok(missed) => missed,
            Err(error) => {
                tracing::warn!(target: "mcp", %error, "events cannot be sent again now, so their stream ends");
                // The client comes back, and has missed nothing yet.
                self.is_over = true;
                return;
            }
        };
        if !is_whole {
            tracing::debug!(target: "mcp", session = ?self.session.id, "not all that a client missed is there");
        }
        let mut last = 0;
        for event in missed {
            // A store is not the kernel: what it returns need not be on one line.
            self.write(event.number, &EncodedMessage::from_bytes(event.message.into()), events);
            self.session.counters.replayed.fetch_add(1, Ordering::Relaxed);
            last = event.number;
        }
        let mut state = self.session.lock();
        match state.streams.get_mut(&self.number) {
            Some(stream) => stream.number = stream.number.max(last),
            // The request is over, and that was all.
            None => self.is_over = true,
        }
    }

    /// Takes what is in the stream; returns whether the answer is there, and must not be an event, or not yet.
    fn take(&mut self, events: &mut Vec<u8>) -> bool {
        let session = &self.session;
        session.pump(Some(self.reader));
        let mut guard = session.lock();
        let state = &mut *guard;
        let Some(stream) = state.streams.get_mut(&self.number).filter(|stream| stream.reader == Some(self.reader))
        else {
            // Another reader took its place, or the session is over.
            self.is_over = true;
            return false;
        };
        if stream.is_cancelled {
            self.is_over = true;
            let stream = state.streams.remove(&self.number);
            self.permit = self.permit.take().or_else(|| stream?.permit);
            return false;
        }
        if stream.is_answer_next() && !self.is_stream {
            return true;
        }
        let closed = stream.close_request.take().filter(|_| session.is_resumable());
        let has_news = !stream.queue.is_empty() || closed.is_some();
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
            && (is_saved || !stream.is_answer_next())
            && let Some(Transmit { route, message, .. }) = stream.pop()
        {
            let is_last = matches!(route, Route::Reply(_));
            if stream.is_known {
                self.write(stream.number + 1, &message, events);
                session.keep(self.number, stream, message);
            } else {
                write_event(events, &message);
            }
            if is_last {
                self.is_over = true;
                let stream = state.streams.remove(&self.number);
                self.permit = self.permit.take().or_else(|| stream?.permit);
                return false;
            }
        }
        let is_held = !is_saved && stream.is_answer_next();
        if let Some(retry) = closed {
            if !stream.queue.is_empty() {
                // There is more to say than is sent at once.
                stream.close_request.set(retry);
                return is_held;
            }
            // The client is told when to come back, and let go.
            events.extend_from_slice(format!("retry: {}\n\n", retry.as_millis()).as_bytes());
            self.is_over = true;
            drop(guard);
            self.leave(retry);
            return false;
        }
        session.unblock(state, self.number);
        is_held
    }

    fn write(&self, number: u64, message: &EncodedMessage, events: &mut Vec<u8>) {
        let id = self.settings.key.write(&self.session.id, self.number, number);
        events.extend_from_slice(format!("id: {id}\n").as_bytes());
        write_event(events, message);
    }

    /// Leaves the stream to whoever comes next, which is not expected before some time.
    fn leave(&self, retry: Duration) {
        let mut state = self.session.lock();
        let Some(stream) = state.streams.get_mut(&self.number).filter(|stream| stream.reader == Some(self.reader))
        else {
            return;
        };
        stream.reader = None;
        stream.expires_at = Some(now() + self.settings.orphaned_timeout + retry);
        // An answer stays until what it says is kept.
        while !(stream.is_answer_next() && self.session.record_state.is_some())
            && let Some(transmit) = stream.pop()
        {
            if !self.session.keep(self.number, stream, transmit.message) {
                self.session.counters.unheard.fetch_add(1, Ordering::Relaxed);
            }
        }
        let was_blocked = self.session.unblock(&mut state, self.number);
        let is_left = |stream: &Stream| stream.request.is_some() || !stream.queue.is_empty();
        let is_orphan = state.streams.get(&self.number).is_some_and(is_left);
        if self.number != STANDALONE && !is_orphan {
            state.streams.remove(&self.number);
        }
        drop(state);
        if self.number != STANDALONE && is_orphan {
            orphaned::supervise(&self.session, &self.settings, &self.work_guard);
        } else if was_blocked {
            // There is room now for what others wait for.
            self.session.readers.wake_route(None);
        }
    }

    /// Waits for something other than a message; without news there may be messages now.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<Option<StreamPoll>> {
        let keep_alive_interval = self.settings.keep_alive_interval;
        let waiting = self.waiting.get_or_insert_with(|| Waiting {
            end: self.work_guard.watch(),
            silence: Box::pin(sleep(keep_alive_interval)),
        });
        waiting.end.poll(cx, &self.work_guard);
        match self.work_guard.stage() {
            Stage::Serving => {}
            // S4.84: what belongs to no request ends at once.
            Stage::Draining if self.number != STANDALONE => {}
            Stage::Aborting if self.number != STANDALONE && !self.is_aborted => {
                let why = ErrorObject::internal_error("the server had to end before the request was done");
                if self.session.poll_give_up(cx, &why).is_ready() {
                    self.is_aborted = true;
                    return Poll::Ready(None);
                }
            }
            Stage::Draining | Stage::Aborting => {
                self.is_over = true;
                return Poll::Ready(Some(StreamPoll::End));
            }
        }
        if self.expiry.as_mut().is_some_and(|expiry| expiry.as_mut().poll(cx).is_ready()) {
            self.is_over = true;
            return Poll::Ready(Some(StreamPoll::End));
        }
        if self.poll_deadline(cx).is_ready() {
            self.session.connection.handle_timeout(now());
            return Poll::Ready(None);
        }
        let Some(waiting) = &mut self.waiting else { return Poll::Pending };
        ready!(waiting.silence.as_mut().poll(cx));
        waiting.silence.as_mut().reset(after(keep_alive_interval));
        Poll::Ready(Some(StreamPoll::Idle))
    }

    /// Waits for what the session is to be reminded of.
    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = self.session.connection.poll_timeout() else {
            self.deadline = None;
            return Poll::Pending;
        };
        if self.deadline.as_ref().is_none_or(|(at, _)| *at != deadline.at) {
            self.deadline = Some((deadline.at, Box::pin(sleep(deadline.at.duration_since(now())))));
        }
        match &mut self.deadline {
            Some((_, sleep)) => sleep.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        self.session.readers.leave(self.reader);
        self.leave(Duration::ZERO);
    }
}

/// Tells the client where in the stream it is, before anything is said: only revisions that know of it.
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
        let id = settings.key.write(&session.id, stream, number);
        events.extend_from_slice(format!("id: {id}\nretry: {}\ndata: \n\n", retry.as_millis()).as_bytes());
    }
}
