//! Limiting how often more scopes are requested.

use std::time::Duration;

use mcp_transport_http::Credential;
use tokio::time::Instant;

use crate::Scopes;

/// How often more scopes are requested in vain if the server demands the same each time.
const MAX_ATTEMPTS: usize = 2;
/// How often more scopes are requested in vain, whatever the server demands: it can invent others each time.
const MAX_ATTEMPTS_IN_ALL: usize = 4;
/// How long after the last attempt all of them are forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(10 * 60);

/// The attempts to get more scopes since the last one that helped.
///
/// A server that refuses a request whatever the token can do would have a user agree over and over. So there are a few attempts,
/// and then the refusal is final, until a request is accepted that was repeated with new scopes, the user logs in again, or ten
/// minutes have passed.
#[derive(Debug, Default)]
pub(super) struct StepUps {
    /// The scopes that were needed last.
    needed: Scopes,
    /// How often these scopes were requested.
    count: usize,
    /// How often any scopes were requested.
    total: usize,
    /// When the last attempt was made.
    last: Option<Instant>,
    /// What the last attempt obtained.
    obtained: Option<Credential>,
}

impl StepUps {
    /// Records an attempt for a request that needs these scopes. Returns false if there were too many, so that it must not be made.
    ///
    /// `granted` are the scopes of the token that was refused. If they contain all that is needed, more scopes cannot help,
    /// and only one attempt is made, in case the token is out of date.
    #[must_use]
    pub(super) fn begin(&mut self, now: Instant, needed: &Scopes, granted: &Scopes) -> bool {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) >= FORGET_AFTER) {
            *self = Self::default();
        }
        let limit = if granted.contains_all(needed) { 1 } else { MAX_ATTEMPTS };
        if self.needed != *needed {
            (self.needed, self.count) = (needed.clone(), 0);
        }
        if self.count >= limit || self.total >= MAX_ATTEMPTS_IN_ALL {
            return false;
        }
        self.count += 1;
        self.total += 1;
        self.last = Some(now);
        true
    }

    /// Records what an attempt obtained.
    pub(super) fn finish(&mut self, obtained: &Credential) {
        self.obtained = Some(obtained.clone());
    }

    /// Forgets the attempts after a request was accepted that had been refused before, if it was repeated with what the last of
    /// them obtained. Other requests that are accepted say nothing about the one that was refused.
    pub(super) fn handle_accepted_retry(&mut self, credential: &Credential) {
        if self.obtained.as_ref() == Some(credential) {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes(scope: &str) -> Scopes {
        Scopes::from_iter([scope])
    }

    // covers: AU-44
    #[test]
    fn attempts_in_vain_are_limited() {
        let basic = scopes("basic");
        let mut step_ups = StepUps::default();
        assert!(step_ups.begin(Instant::now(), &scopes("write"), &basic));
        assert!(step_ups.begin(Instant::now(), &scopes("write"), &basic));
        assert!(!step_ups.begin(Instant::now(), &scopes("write"), &basic));
        assert!(step_ups.begin(Instant::now(), &scopes("other"), &basic), "other scopes may help");
        assert!(step_ups.begin(Instant::now(), &scopes("yet another"), &basic));
        assert!(!step_ups.begin(Instant::now(), &scopes("endless"), &basic), "a server can invent scopes for ever");

        let mut step_ups = StepUps::default();
        assert!(step_ups.begin(Instant::now(), &scopes("write"), &scopes("write")));
        assert!(!step_ups.begin(Instant::now(), &scopes("write"), &scopes("write")), "the token has what is demanded");
    }

    // covers: AU-44
    #[test]
    fn attempts_that_help_are_not_counted() {
        let mut step_ups = StepUps::default();
        for index in 0..20 {
            assert!(step_ups.begin(Instant::now(), &scopes(&index.to_string()), &Scopes::new()), "{index}");
            let credential = Credential::bearer(&index.to_string()).unwrap();
            step_ups.finish(&credential);
            step_ups.handle_accepted_retry(&credential);
        }
        let (obtained, other) = (Credential::bearer("obtained").unwrap(), Credential::bearer("other").unwrap());
        for _ in 0..MAX_ATTEMPTS {
            assert!(step_ups.begin(Instant::now(), &scopes("write"), &Scopes::new()));
            step_ups.finish(&obtained);
            step_ups.handle_accepted_retry(&other);
        }
        assert!(
            !step_ups.begin(Instant::now(), &scopes("write"), &Scopes::new()),
            "a refresh that helped is no step-up"
        );
    }

    // covers: AU-44
    #[test]
    fn attempts_are_forgotten_after_a_while() {
        let (start, basic) = (Instant::now(), scopes("basic"));
        let mut step_ups = StepUps::default();
        for index in 0..MAX_ATTEMPTS_IN_ALL {
            assert!(step_ups.begin(start, &scopes(&index.to_string()), &basic));
        }
        assert!(!step_ups.begin(start + FORGET_AFTER / 2, &scopes("write"), &basic));
        assert!(step_ups.begin(start + FORGET_AFTER, &scopes("write"), &basic), "refusals do not count as attempts");
    }
}
