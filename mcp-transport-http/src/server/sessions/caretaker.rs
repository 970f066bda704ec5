//! Somebody who looks after requests whose client is gone.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use mcp_session::Lease;
use tokio::runtime::Handle;
use tokio::time::sleep;

use super::session::{STANDALONE, Session, State};
use crate::server::exchange::now;
use crate::server::lifeline::AtWork;

/// Has a session looked after until none of its requests is without a reader: they may finish for a client that comes
/// back, but not for longer than `grace` (G11). The end of the service waits for them.
pub(crate) fn call(session: &Lease<Session>, grace: Duration, at_work: &AtWork) {
    let Ok(runtime) = Handle::try_current() else { return };
    if !std::mem::replace(&mut session.lock().has_caretaker, true) {
        runtime.spawn(look_after(session.clone(), grace, at_work.another()));
    }
}

async fn look_after(session: Lease<Session>, grace: Duration, _at_work: AtWork) {
    let reader = session.readers.next();
    // How often it looks for those whose time is over.
    let interval = (grace / 4).clamp(Duration::from_millis(10), Duration::from_secs(5));
    loop {
        let mut pause = std::pin::pin!(sleep(interval));
        let is_done = poll_fn(|cx| {
            session.readers.register(reader, cx.waker());
            if session.connection.poll_timeout().is_some_and(|deadline| deadline.at <= now()) {
                session.connection.handle_timeout(now());
            }
            session.pump(Some(reader));
            let mut state = session.lock();
            if orphans(&state).is_empty() {
                state.has_caretaker = false;
                return Poll::Ready(true);
            }
            drop(state);
            pause.as_mut().poll(cx).map(|()| false)
        });
        if is_done.await {
            break;
        }
        let mut state = session.lock();
        for number in orphans(&state) {
            let left = state.streams.get(&number).and_then(|stream| stream.left);
            if left.is_some_and(|left| now().duration_since(left) >= grace) {
                tracing::debug!(target: "mcp", "a request is given up, because its client does not come back");
                session.abandon(&mut state, number);
            }
        }
    }
    session.readers.leave(reader);
}

/// The requests that nobody reads the answers of.
fn orphans(state: &State) -> Vec<u64> {
    let is_orphan =
        |number: &u64| *number != STANDALONE && state.streams.get(number).is_some_and(|stream| stream.reader.is_none());
    state.streams.keys().copied().filter(is_orphan).collect()
}
