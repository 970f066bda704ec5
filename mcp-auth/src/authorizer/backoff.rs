//! Pauses after failures.

use std::time::Duration;

use tokio::time::Instant;

use super::error::OAuthError;

/// The longest pause after the first failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause after many failures.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How long to leave an authorization server alone after it failed: twice as long after each failure, up to a minute, and up to a
/// half less at random, so that programs that failed together do not return together.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    last: Option<Failure>,
}

#[derive(Debug)]
struct Failure {
    error: OAuthError,
    retry_at: Instant,
}

impl Backoff {
    pub(super) fn fail(&mut self, now: Instant, error: OAuthError, random: u32) {
        let retry_at = now + pause(self.failures, random);
        self.failures = self.failures.saturating_add(1);
        self.last = Some(Failure { error, retry_at });
    }

    /// Returns an error if it is too early to try again.
    pub(super) fn check(&self, now: Instant) -> Result<(), OAuthError> {
        match &self.last {
            Some(Failure { error, retry_at }) if *retry_at > now => {
                Err(OAuthError::RetryLater { error: Box::new(error.clone()), retry_after: *retry_at - now })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
}

fn pause(failures: u32, random: u32) -> Duration {
    let longest = LONGEST_PAUSE.min(FIRST_PAUSE * 2_u32.saturating_pow(failures.min(10)));
    longest - longest.mul_f64(f64::from(random) / f64::from(u32::MAX) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute_and_differ() {
        let seconds = Duration::from_secs;
        for (failures, longest) in
            [(0, seconds(1)), (1, seconds(2)), (5, seconds(32)), (6, seconds(60)), (u32::MAX, seconds(60))]
        {
            assert_eq!(pause(failures, 0), longest);
            assert_eq!(pause(failures, u32::MAX), longest / 2);
        }
    }

    #[test]
    fn the_error_says_when_it_is_tried_again_until_a_success() {
        let (now, failure) = (Instant::now(), OAuthError::Shutdown);
        let mut backoff = Backoff::default();
        backoff.check(now).unwrap();
        backoff.fail(now, failure.clone(), 0);
        backoff.fail(now, failure, 0);
        let error = backoff.check(now + Duration::from_millis(500)).unwrap_err();
        assert_eq!(error.to_string(), "the runtime shuts down; logging in is tried again in 1.5s");
        backoff.check(now + Duration::from_secs(2)).unwrap();
        backoff.reset();
        backoff.check(now).unwrap();
    }
}
