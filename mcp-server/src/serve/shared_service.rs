//! A tower service that the requests of all connections share.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use tower_service::Service;

/// A service that one request at a time can use.
///
/// Tower services have to be exclusive from `poll_ready` to `call`, and need not be `Clone`: a rate limit counts in the
/// service itself. So a request takes the service out, and calls it if it is ready. It puts it back within the same poll,
/// whether it was ready or not: a request may not be polled again for long, as the handlers of a response that its client does
/// not read are not, and must not keep the service from the others. The mutexes are never held while the service runs.
pub(crate) struct SharedService<S> {
    /// Absent while a request polls it.
    service: Mutex<Option<S>>,
    line: Arc<Line>,
}

/// The requests that wait for the service, in the order of their arrival.
///
/// It is also the waker of the service, whichever request polled it. It is apart from the service, which keeps the waker.
#[derive(Default)]
struct Line(Mutex<State>);

#[derive(Default)]
struct State {
    /// Whether a request polls the service.
    is_taken: bool,
    /// Whether the service was not ready when it was polled last, and has not woken the line since.
    is_pending: bool,
    /// By the order of their arrival. One without a waker was woken, and has not been polled since.
    waiting: BTreeMap<u64, Option<Waker>>,
    last_ticket: u64,
}

/// How many requests are woken when the service can be used. One would be enough if all of them were polled then; if the
/// client of the first one does not read its response, the second one uses the service instead. Those that were woken are
/// passed over from then on, until they are polled.
const WOKEN_AT_ONCE: usize = 2;

impl<S> SharedService<S> {
    pub(crate) fn new(service: S) -> Self {
        Self { service: Mutex::new(Some(service)), line: Arc::default() }
    }

    /// Waits for the service and until it is ready, and calls it.
    pub(crate) async fn call<R>(&self, request: R) -> Result<S::Future, S::Error>
    where
        S: Service<R>,
    {
        let (mut ticket, mut request) = (Ticket { line: &self.line, number: None }, Some(request));
        let waker = Waker::from(Arc::clone(&self.line));
        poll_fn(|cx| {
            let Some(mut lease) = self.take(&mut ticket, cx) else { return Poll::Pending };
            // Both are there until the service was called.
            let Some(service) = &mut lease.service else { return Poll::Pending };
            match service.poll_ready(&mut Context::from_waker(&waker)) {
                Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                Poll::Ready(Ok(())) => match request.take() {
                    Some(request) => Poll::Ready(Ok(service.call(request))),
                    None => Poll::Pending,
                },
                Poll::Pending => {
                    // In line before the service is back, so that its waker finds this request.
                    ticket.wait(cx);
                    lease.is_pending = true;
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Takes the service if it may be ready and no other request is to use it before. Otherwise the request waits.
    fn take(&self, ticket: &mut Ticket<'_>, cx: &Context<'_>) -> Option<Lease<'_, S>> {
        let mut state = self.line.lock();
        if !state.is_usable() || !state.is_next(ticket.number) {
            drop(state);
            ticket.wait(cx);
            return None;
        }
        state.is_taken = true;
        // Unless it is ready, or wakes the line meanwhile.
        state.is_pending = true;
        let waker = ticket.number.and_then(|number| state.waiting.remove(&number));
        drop(state);
        drop(waker);
        let service = self.lock().take();
        Some(Lease { shared: self, service, is_pending: false })
    }

    fn lock(&self) -> MutexGuard<'_, Option<S>> {
        self.service.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_usable(&self) -> bool {
        !self.is_taken && !self.is_pending
    }

    /// Whether all requests before this one were woken.
    fn is_next(&self, ticket: Option<u64>) -> bool {
        let first = self.waiting.iter().find(|(_, waker)| waker.is_some()).map(|(number, _)| *number);
        first.is_none_or(|first| ticket.is_some_and(|ticket| ticket <= first))
    }
}

impl Line {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Line {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = self.lock();
        state.is_pending = false;
        wake_next(state);
    }
}

/// Wakes the requests that are next if the service can be used, without the lock.
fn wake_next(mut state: MutexGuard<'_, State>) {
    if !state.is_usable() {
        return;
    }
    let mut next = [const { None }; WOKEN_AT_ONCE];
    let asleep = state.waiting.values_mut().filter(|waker| waker.is_some());
    next.iter_mut().zip(asleep).for_each(|(next, waker)| *next = waker.take());
    drop(state);
    next.into_iter().flatten().for_each(Waker::wake);
}

/// The place of a request in line.
struct Ticket<'a> {
    line: &'a Line,
    number: Option<u64>,
}

impl Ticket<'_> {
    /// Waits in line, at the place that the request had before.
    fn wait(&mut self, cx: &Context<'_>) {
        // Cloned without the lock, as that may be code of the application.
        let waker = cx.waker().clone();
        let mut state = self.line.lock();
        let number = *self.number.get_or_insert_with(|| {
            state.last_ticket += 1;
            state.last_ticket
        });
        let old = state.waiting.insert(number, Some(waker));
        // The service may be usable by now; or it was, and the requests before this one were woken but are not polled.
        wake_next(state);
        drop(old);
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let mut state = self.line.lock();
        // It is not in line any more if it has called the service.
        let Some(waker) = state.waiting.remove(&number) else { return };
        // The request may have been woken to use the service, and was cancelled.
        wake_next(state);
        drop(waker);
    }
}

/// The service, which is put back when this is dropped.
struct Lease<'a, S> {
    shared: &'a SharedService<S>,
    service: Option<S>,
    /// Whether the service is not ready.
    is_pending: bool,
}

impl<S> Drop for Lease<'_, S> {
    fn drop(&mut self) {
        *self.shared.lock() = self.service.take();
        let mut state = self.shared.line.lock();
        state.is_taken = false;
        // If it has woken the line since it was polled, it is usable even so.
        state.is_pending &= self.is_pending;
        wake_next(state);
    }
}
