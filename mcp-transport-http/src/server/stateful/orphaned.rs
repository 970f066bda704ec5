//! Finishes requests whose client disconnected.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use mcp_session::SessionLease;
use tokio::runtime::Handle;
use tokio::time::sleep;

use super::reader::StreamSettings;
use super::readers::ReaderTarget;
use super::session::{STANDALONE, Session, State};
use super::stream::Stream;
use crate::clock::now;
use crate::server::shutdown::WorkGuard;

/// Spawns a task that runs a session until none of its requests is without a reader, unless there is one.
///
/// The requests may finish for a client that reconnects, up to `HttpOptions::orphaned_request_timeout`. A shutdown waits
/// for the task.
// RB-61
pub(crate) fn supervise(session: &SessionLease<Session>, settings: &Arc<StreamSettings>, work_guard: &WorkGuard) {
    let Ok(runtime) = Handle::try_current() else { return };
    let mut state = session.lock();
    if let Some(orphan_reader) = state.orphan_reader {
        drop(state);
        // The new orphaned request may need to run.
        session.readers.wake(&[orphan_reader]);
        return;
    }
    let reader = session.readers.add(Some(ReaderTarget::Orphans));
    state.orphan_reader = Some(reader);
    drop(state);
    runtime.spawn(run(session.clone(), reader, Arc::clone(settings), work_guard.additional()));
}

/// What the task does next.
enum Next {
    Nothing,
    /// Responses wait for the session record to be saved.
    Save,
    /// Orphaned requests may have timed out.
    Expire,
}

async fn run(session: SessionLease<Session>, reader: u64, settings: Arc<StreamSettings>, _work_guard: WorkGuard) {
    // How often timeouts are checked.
    let interval = (settings.orphaned_timeout / 4).clamp(Duration::from_millis(10), Duration::from_secs(5));
    loop {
        let mut pause = std::pin::pin!(sleep(interval));
        let next = poll_fn(|cx| {
            session.readers.register(reader, cx.waker());
            if session.connection.poll_timeout().is_some_and(|deadline| deadline.at <= now()) {
                session.connection.handle_timeout(now());
            }
            session.pump(Some(reader));
            let mut state = session.lock();
            if orphans(&state).next().is_none() {
                state.orphan_reader = None;
                return Poll::Ready(Next::Nothing);
            }
            if !with_response(&state).is_empty() {
                return Poll::Ready(Next::Save);
            }
            drop(state);
            pause.as_mut().poll(cx).map(|()| Next::Expire)
        });
        match next.await {
            Next::Nothing => break,
            Next::Save => save(&session, &settings).await,
            Next::Expire => expire(&session),
        }
    }
    session.readers.leave(reader);
}

/// Saves the session record, and then stores the responses for clients that reconnect.
async fn save(session: &SessionLease<Session>, settings: &StreamSettings) {
    let with_response = with_response(&session.lock());
    let saved = match &settings.record_sync {
        Some(record_sync) => record_sync.save(session).await,
        None => Ok(()),
    };
    let mut state = session.lock();
    for number in with_response {
        // The client may have reconnected meanwhile.
        let Some(stream) = state.streams.get_mut(number).filter(|stream| stream.reader.is_none()) else { continue };
        if let Err(refusal) = &saved
            && let Some(message) = refusal.to_message(stream.id.as_ref(), session.revision)
        {
            stream.replace_response(message);
        }
        while let Some(transmit) = stream.pop() {
            session.store_event(number, stream, transmit.message);
        }
        state.streams.remove(number);
    }
}

/// Cancels requests whose client did not reconnect in time.
fn expire(session: &Session) {
    let mut state = session.lock();
    let is_over = |stream: &Stream| stream.expires_at.is_some_and(|expires_at| now() >= expires_at);
    let over: Vec<u64> = orphans(&state).filter(|(_, stream)| is_over(stream)).map(|(number, _)| number).collect();
    for number in over {
        tracing::debug!(target: "mcp", "request cancelled: its client did not reconnect in time");
        session.abandon(&mut state, number);
    }
}

/// The requests without a reader.
fn orphans(state: &State) -> impl Iterator<Item = (u64, &Stream)> {
    state.streams.iter().filter(|(number, stream)| *number != STANDALONE && stream.reader.is_none())
}

/// The orphaned requests whose response is next in the queue.
fn with_response(state: &State) -> Vec<u64> {
    orphans(state).filter(|(_, stream)| stream.is_response_next()).map(|(number, _)| number).collect()
}
