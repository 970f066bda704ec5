//! A tower service that the requests of all connections share.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use tower_service::Service;

/// A service that one request at a time can use.
///
/// Tower services have to be exclusive from `poll_ready` to `call`, and need not be `Clone`: a rate limit counts in the
/// service itself. So a request takes the service out, waits until it is ready, calls it, and puts it back before it awaits
/// the response. Other requests wait for it meanwhile, in the order of their arrival. The mutex is never held while the
/// service runs.
pub(crate) struct SharedService<S>(Mutex<Slot<S>>);

struct Slot<S> {
    /// Absent while a request uses it.
    service: Option<S>,
    /// The requests that wait, by the order of their arrival. One without a waker was woken.
    waiting: BTreeMap<u64, Option<Waker>>,
    last_ticket: u64,
}

impl<S> SharedService<S> {
    pub(crate) fn new(service: S) -> Self {
        Self(Mutex::new(Slot { service: Some(service), waiting: BTreeMap::new(), last_ticket: 0 }))
    }

    /// Waits for the service and until it is ready, and calls it.
    pub(crate) async fn call<R>(&self, request: R) -> Result<S::Future, S::Error>
    where
        S: Service<R>,
    {
        let mut lease = self.lease().await;
        let mut request = Some(request);
        poll_fn(|cx| {
            // Both are there until the service was called.
            let Some(service) = &mut lease.service else { return Poll::Pending };
            ready!(service.poll_ready(cx))?;
            match request.take() {
                Some(request) => Poll::Ready(Ok(service.call(request))),
                None => Poll::Pending,
            }
        })
        .await
    }

    async fn lease(&self) -> Lease<'_, S> {
        let mut ticket = Ticket { shared: self, number: None };
        let service = poll_fn(|cx| ticket.poll(cx)).await;
        Lease { shared: self, service: Some(service) }
    }

    fn lock(&self) -> MutexGuard<'_, Slot<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes the request that is next, without the lock.
fn wake_next<S>(mut slot: MutexGuard<'_, Slot<S>>) {
    let is_free = slot.service.is_some();
    let next = slot.waiting.values_mut().next().filter(|_| is_free).and_then(Option::take);
    drop(slot);
    if let Some(waker) = next {
        waker.wake();
    }
}

/// The place of a request among those that wait.
struct Ticket<'a, S> {
    shared: &'a SharedService<S>,
    number: Option<u64>,
}

impl<S> Ticket<'_, S> {
    fn poll(&mut self, cx: &Context<'_>) -> Poll<S> {
        let mut slot = self.shared.lock();
        let first = slot.waiting.keys().next().copied();
        if self.number == first
            && let Some(service) = slot.service.take()
        {
            let waker = self.number.take().and_then(|number| slot.waiting.remove(&number));
            drop(slot);
            drop(waker);
            return Poll::Ready(service);
        }
        let number = *self.number.get_or_insert_with(|| {
            slot.last_ticket += 1;
            slot.last_ticket
        });
        drop(slot);
        // Cloned without the lock, as that may be code of the application; so the service may be back by now.
        let waker = cx.waker().clone();
        let mut slot = self.shared.lock();
        let old = slot.waiting.insert(number, Some(waker));
        wake_next(slot);
        drop(old);
        Poll::Pending
    }
}

impl<S> Drop for Ticket<'_, S> {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let mut slot = self.shared.lock();
        let waker = slot.waiting.remove(&number);
        // The service may be meant for this request, which was cancelled.
        wake_next(slot);
        drop(waker);
    }
}

/// The service, which is put back when this is dropped.
struct Lease<'a, S> {
    shared: &'a SharedService<S>,
    service: Option<S>,
}

impl<S> Drop for Lease<'_, S> {
    fn drop(&mut self) {
        let mut slot = self.shared.lock();
        slot.service = self.service.take();
        wake_next(slot);
    }
}
