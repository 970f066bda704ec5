//! Limits on concurrent requests, listen streams, lookups and uploads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::header::CONTENT_TYPE;
use http::{Response, StatusCode};
use mcp_server::Principal;

use super::body::ResponseBody;
use super::options::HttpOptions;
use super::principal_counts::PrincipalCounts;
use super::refusal::Refusal;

/// Counts what is in flight.
#[derive(Default)]
pub(crate) struct Admission {
    requests: Counter,
    listen_streams: Counter,
    refusals: Counter,
    lookups: Counter,
    uploads: Counter,
}

#[derive(Default)]
struct Counter {
    all: AtomicUsize,
    by_principal: Mutex<PrincipalCounts>,
}

impl Counter {
    fn by_principal(&self) -> MutexGuard<'_, PrincipalCounts> {
        self.by_principal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a permit is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PermitKind {
    Request,
    /// A stream that stays open for notifications.
    ListenStream,
    /// A lookup in the session store. Counted apart, so that messages that requests in flight wait for still arrive when
    /// the maximum number of requests is reached.
    Lookup,
    /// The unsent response to a refused request.
    Refusal,
    /// A slow or large upload.
    Upload,
}

impl Admission {
    /// Creates the permit for what was counted.
    fn permit(self: &Arc<Self>, kind: PermitKind, count: usize) -> Permit {
        Permit { admission: Arc::clone(self), kind, count, principal: None }
    }

    fn counter(&self, kind: PermitKind) -> &Counter {
        match kind {
            PermitKind::Request => &self.requests,
            PermitKind::ListenStream => &self.listen_streams,
            PermitKind::Lookup => &self.lookups,
            PermitKind::Refusal => &self.refusals,
            PermitKind::Upload => &self.uploads,
        }
    }

    /// Acquires a permit for `count` requests.
    pub(crate) fn admit(
        self: &Arc<Self>,
        kind: PermitKind,
        count: usize,
        principal: Option<&Principal>,
        options: &HttpOptions,
    ) -> Result<Permit, Refusal> {
        let (most, most_of_one, all, one) = match kind {
            PermitKind::Request | PermitKind::Lookup | PermitKind::Refusal | PermitKind::Upload => (
                options.max_in_flight,
                options.max_in_flight_per_principal,
                "too many requests in flight: try again later",
                "too many of your requests are in flight: try again when one has finished",
            ),
            PermitKind::ListenStream => (
                options.max_listen_streams,
                options.max_listen_streams_per_principal,
                "too many listen streams are open: try again later",
                "too many of your listen streams are open: close one first",
            ),
        };
        let counter = self.counter(kind);
        if !take(&counter.all, count, most) {
            return Err(Refusal::busy(StatusCode::SERVICE_UNAVAILABLE, all, options.retry_after));
        }
        let mut permit = self.permit(kind, count);
        if let Some(principal) = principal {
            if !counter.by_principal().try_add(principal, count, most_of_one) {
                return Err(Refusal::busy(StatusCode::TOO_MANY_REQUESTS, one, options.retry_after));
            }
            permit.principal = Some(principal.clone());
        }
        Ok(permit)
    }

    /// Counts a refusal until it is sent. Beyond the limit its body is dropped, as a response without one cannot stay
    /// unsent: it needs no flow-control window.
    pub(crate) fn count_refusal(self: &Arc<Self>, response: &mut Response<ResponseBody>, options: &HttpOptions) {
        if !response.body().needs_permit() {
            return;
        }
        if take(&self.refusals.all, 1, options.max_in_flight.max(MIN_REFUSALS)) {
            response.body_mut().hold(self.permit(PermitKind::Refusal, 1));
            return;
        }
        *response.body_mut() = ResponseBody::empty();
        response.headers_mut().remove(CONTENT_TYPE);
    }

    /// Acquires a permit for a slow upload.
    pub(crate) fn admit_upload(self: &Arc<Self>, options: &HttpOptions) -> Result<Permit, Refusal> {
        if take(&self.uploads.all, 1, options.max_uploads) {
            return Ok(self.permit(PermitKind::Upload, 1));
        }
        let text = "too many slow uploads: send the body at once, or try again later";
        Err(Refusal::busy(StatusCode::SERVICE_UNAVAILABLE, text, options.retry_after))
    }
}

/// The minimum number of refusals that may be unsent, if `max_in_flight` is smaller.
const MIN_REFUSALS: usize = 64;

/// Adds `count` to the counter, unless that exceeds the maximum.
fn take(counter: &AtomicUsize, count: usize, most: usize) -> bool {
    let more = |taken: usize| taken.checked_add(count).filter(|taken| *taken <= most);
    counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
}

/// Counts requests until it is dropped.
pub(crate) struct Permit {
    admission: Arc<Admission>,
    kind: PermitKind,
    count: usize,
    principal: Option<Principal>,
}

impl Permit {
    /// Whether it is the permit of a stream that stays open.
    pub(crate) fn is_of_listen_stream(&self) -> bool {
        self.kind == PermitKind::ListenStream
    }

    /// Counts the request once more, even beyond the limit.
    pub(crate) fn additional(&self) -> Self {
        let Self { admission, kind, count, principal } = self;
        let counter = admission.counter(*kind);
        counter.all.fetch_add(*count, Ordering::Relaxed);
        if let Some(principal) = principal {
            counter.by_principal().try_add(principal, *count, usize::MAX);
        }
        Self { admission: Arc::clone(admission), kind: *kind, count: *count, principal: principal.clone() }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let counter = self.admission.counter(self.kind);
        counter.all.fetch_sub(self.count, Ordering::Relaxed);
        if let Some(principal) = self.principal.take() {
            counter.by_principal().subtract(&principal, self.count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Limits hold in total and per principal, and permits are returned.
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
        assert!(admission.requests.by_principal().is_empty());
        assert!(admission.admit_upload(&options).is_ok());
    }
}
