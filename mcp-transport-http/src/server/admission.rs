//! How much is taken on at the same time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use http::header::CONTENT_TYPE;
use http::{Response, StatusCode};
use mcp_server::Principal;

use super::body::ResponseBody;
use super::options::HttpOptions;
use super::refusal::Refusal;

/// What is taken on now.
#[derive(Default)]
pub(crate) struct Admission {
    requests: Counter,
    listen_streams: Counter,
    refusals: Counter,
    lookups: Counter,
    uploads: AtomicUsize,
}

#[derive(Default)]
struct Counter {
    all: AtomicUsize,
    by_principal: Mutex<HashMap<Principal, usize>>,
}

/// What a request takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PermitKind {
    Request,
    /// It stays, and costs little.
    ListenStream,
    /// It asks the store for its session. This is counted apart, or where as many requests are in flight as there may be,
    /// nothing that they wait for could come.
    Lookup,
    /// It is refused, or failed before it was taken on, and the client has not read why.
    Refusal,
}

impl Admission {
    fn counter(&self, kind: PermitKind) -> &Counter {
        match kind {
            PermitKind::Request => &self.requests,
            PermitKind::ListenStream => &self.listen_streams,
            PermitKind::Lookup => &self.lookups,
            PermitKind::Refusal => &self.refusals,
        }
    }

    /// Takes so many requests on, if there is room.
    pub(crate) fn admit(
        self: &Arc<Self>,
        kind: PermitKind,
        count: usize,
        principal: Option<&Principal>,
        options: &HttpOptions,
    ) -> Result<Permit, Refusal> {
        let (most, most_of_one, all, one) = match kind {
            PermitKind::Request | PermitKind::Lookup | PermitKind::Refusal => (
                options.max_in_flight,
                options.max_in_flight_per_principal,
                "the server works on as many requests as it can: try again later",
                "you have as many requests at work as you may: try again when one is done",
            ),
            PermitKind::ListenStream => (
                options.max_listen_streams,
                options.max_listen_streams_per_principal,
                "as many streams are open for changes as the server can keep: try again later",
                "you have as many streams open for changes as you may: close one first",
            ),
        };
        let counter = self.counter(kind);
        if !take(&counter.all, count, most) {
            return Err(Refusal::busy(StatusCode::SERVICE_UNAVAILABLE, all, options.retry_after));
        }
        let mut permit = Permit { admission: Arc::clone(self), kind, count, principal: None };
        if let Some(principal) = principal {
            let mut by_principal = counter.by_principal.lock().unwrap_or_else(PoisonError::into_inner);
            let taken = by_principal.entry(principal.clone()).or_default();
            if *taken + count > most_of_one {
                if *taken == 0 {
                    by_principal.remove(principal);
                }
                drop(by_principal);
                return Err(Refusal::busy(StatusCode::TOO_MANY_REQUESTS, one, options.retry_after));
            }
            *taken += count;
            permit.principal = Some(principal.clone());
        }
        Ok(permit)
    }

    /// Holds the text of a refusal until it is sent, if there is room for it. Otherwise the client has to do with the
    /// status, which it cannot leave unread: a response without a body needs no window.
    pub(crate) fn hold_refusal(self: &Arc<Self>, response: &mut Response<ResponseBody>, options: &HttpOptions) {
        if !response.body().needs_permit() {
            return;
        }
        if take(&self.refusals.all, 1, options.max_in_flight.max(MIN_REFUSALS)) {
            let permit = Permit { admission: Arc::clone(self), kind: PermitKind::Refusal, count: 1, principal: None };
            response.body_mut().hold(permit);
            return;
        }
        *response.body_mut() = ResponseBody::empty();
        response.headers_mut().remove(CONTENT_TYPE);
    }

    /// Takes a body that does not come at once, if there is room.
    pub(crate) fn admit_upload(self: &Arc<Self>, options: &HttpOptions) -> Result<UploadPermit, Refusal> {
        if take(&self.uploads, 1, options.max_uploads) {
            return Ok(UploadPermit(Arc::clone(self)));
        }
        let text = "as many bodies are on their way as the server can take: send it at once, or try again later";
        Err(Refusal::busy(StatusCode::SERVICE_UNAVAILABLE, text, options.retry_after))
    }
}

/// How many refusals may be unsent if there may be fewer requests in flight.
const MIN_REFUSALS: usize = 64;

/// SessionCounters so many more, unless there would be more than there may be.
fn take(counter: &AtomicUsize, count: usize, most: usize) -> bool {
    let more = |taken: usize| taken.checked_add(count).filter(|taken| *taken <= most);
    counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
}

/// Room for a request, until it is dropped.
pub(crate) struct Permit {
    admission: Arc<Admission>,
    kind: PermitKind,
    count: usize,
    principal: Option<Principal>,
}

impl Permit {
    /// SessionCounters what is left of the request once more, whether there is room or not.
    pub(crate) fn another(&self) -> Self {
        let Self { admission, kind, count, principal } = self;
        let counter = admission.counter(*kind);
        counter.all.fetch_add(*count, Ordering::Relaxed);
        if let Some(principal) = principal {
            let mut by_principal = counter.by_principal.lock().unwrap_or_else(PoisonError::into_inner);
            *by_principal.entry(principal.clone()).or_default() += count;
        }
        Self { admission: Arc::clone(admission), kind: *kind, count: *count, principal: principal.clone() }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let counter = self.admission.counter(self.kind);
        counter.all.fetch_sub(self.count, Ordering::Relaxed);
        if let Some(principal) = self.principal.take() {
            let mut by_principal = counter.by_principal.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(taken) = by_principal.get_mut(&principal) {
                *taken -= self.count;
                if *taken == 0 {
                    by_principal.remove(&principal);
                }
            }
        }
    }
}

/// Room for a body, until it is dropped.
pub(crate) struct UploadPermit(Arc<Admission>);

impl Drop for UploadPermit {
    fn drop(&mut self) {
        self.0.uploads.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many as there may be, in total and of one; nothing is left of them.
    // covers: RB-52, L-18
    #[test]
    fn there_is_room_again() {
        let options =
            HttpOptions::default().max_in_flight(3).max_in_flight_per_principal(2).max_listen_streams(1).max_uploads(1);
        let admission = Arc::new(Admission::default());
        let (ann, bob) = (Principal::new(None, "ann"), Principal::new(Some("here"), "ann"));
        let admit = |kind, who| admission.admit(kind, 1, who, &options);
        let one = admit(PermitKind::Request, Some(&ann)).ok();
        let two = admit(PermitKind::Request, Some(&ann)).ok();
        assert!(one.is_some() && two.is_some());
        assert!(admit(PermitKind::Request, Some(&ann)).is_err(), "two are enough for one");
        let three = admit(PermitKind::Request, Some(&bob)).ok();
        assert!(three.is_some() && admit(PermitKind::Request, None).is_err(), "three are enough for all");
        let listener = admit(PermitKind::ListenStream, Some(&ann)).ok();
        assert!(listener.is_some() && admit(PermitKind::ListenStream, None).is_err());
        drop(two);
        assert!(admission.admit(PermitKind::Request, 2, None, &options).is_err(), "a batch takes as many as it has");
        let four = admit(PermitKind::Request, Some(&ann)).ok();
        assert!(four.is_some());
        let upload = admission.admit_upload(&options).ok();
        assert!(upload.is_some() && admission.admit_upload(&options).is_err());
        drop((one, three, four, listener, upload));
        assert_eq!(admission.requests.all.load(Ordering::Relaxed), 0);
        assert_eq!(admission.listen_streams.all.load(Ordering::Relaxed), 0);
        assert!(admission.requests.by_principal.lock().unwrap().is_empty());
        assert!(admission.admit_upload(&options).is_ok());
    }
}
