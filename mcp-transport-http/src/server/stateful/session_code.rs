//! Runs the code of the application that lasts as long as a session.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use mcp_kernel::Time;
use mcp_server::BoxFuture;
use mcp_session::SessionLease;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::{Sleep, sleep};

use super::session::Session;
use crate::clock::now;

/// The future of `ServerBuilder::on_session`, which is a task: it has to run while no response of the session is polled.
///
/// ```text
///   waiting --start--> running --stop, drop--> stopped
/// ```
///
/// The task also runs the session, so that what the code sends is sent, and deadlines are kept. It holds no lease, so that
/// the session can become idle and expire.
pub(crate) struct SessionCode(Mutex<State>);

enum State {
    /// The session is not announced to its client yet.
    Waiting(BoxFuture<()>),
    Running(JoinHandle<()>),
    Stopped,
}

impl SessionCode {
    pub(crate) fn boxed(code: BoxFuture<()>) -> Box<Self> {
        Box::new(Self(Mutex::new(State::Waiting(code))))
    }

    /// Spawns the task, unless that was done before.
    pub(crate) fn start(&self, session: &SessionLease<Session>) {
        let Ok(runtime) = Handle::try_current() else { return };
        let mut state = self.lock();
        match std::mem::replace(&mut *state, State::Stopped) {
            State::Waiting(code) => *state = State::Running(runtime.spawn(run(session.downgrade(), code))),
            other @ (State::Running(_) | State::Stopped) => *state = other,
        }
    }

    /// Cancels the task. The handle is ready when the code was dropped.
    pub(crate) fn stop(&self) -> Option<JoinHandle<()>> {
        let state = std::mem::replace(&mut *self.lock(), State::Stopped);
        match state {
            State::Running(task) => {
                task.abort();
                Some(task)
            }
            State::Waiting(_) | State::Stopped => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SessionCode {
    /// A service may be dropped without a shutdown.
    fn drop(&mut self) {
        self.stop();
    }
}

async fn run(session: Weak<Session>, mut code: BoxFuture<()>) {
    let Some(reader) = session.upgrade().map(|session| session.readers.add(None)) else { return };
    let mut timer = Timer::default();
    poll_fn(|cx| {
        if code.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        let Some(session) = session.upgrade() else { return Poll::Ready(()) };
        session.readers.register(reader, cx.waker());
        session.pump(Some(reader));
        while timer.poll(cx, session.connection.poll_timeout().map(|deadline| deadline.at)).is_ready() {
            session.connection.handle_timeout(now());
            session.pump(Some(reader));
        }
        Poll::Pending
    })
    .await;
    if let Some(session) = session.upgrade() {
        session.readers.leave(reader);
    }
}

/// The next deadline of the session.
#[derive(Default)]
struct Timer(Option<(Time, Pin<Box<Sleep>>)>);

impl Timer {
    /// Waits for a deadline, which replaces an earlier one.
    fn poll(&mut self, cx: &mut Context<'_>, deadline: Option<Time>) -> Poll<()> {
        let Some(at) = deadline else {
            self.0 = None;
            return Poll::Pending;
        };
        let (_, sleep) = match &mut self.0 {
            Some(timer) if timer.0 == at => timer,
            timer => timer.insert((at, Box::pin(sleep(at.duration_since(now()))))),
        };
        sleep.as_mut().poll(cx).map(|()| self.0 = None)
    }
}
