//! Nonces for DPoP proofs.

/// The nonce that a server wants in DPoP proofs (RFC 9449).
///
/// A server demands one by refusing a request, and can replace it with each response. The request is repeated for a nonce that
/// it was not sent with, so that a server that keeps refusing cannot keep a client busy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DpopNonce(Option<String>);

impl DpopNonce {
    /// The maximum length of a nonce. Longer ones are ignored.
    const MAX_BYTES: usize = 1024;

    /// Creates an unknown nonce.
    #[must_use]
    pub(crate) const fn new() -> Self {
        Self(None)
    }

    /// Returns the nonce for the next proof.
    #[must_use]
    pub(crate) fn current(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// Remembers the nonce of a response, and returns whether it is another one than the request was sent with.
    pub(crate) fn update(&mut self, sent: Option<&str>, received: Option<&str>) -> bool {
        let Some(received) = received.filter(|nonce| is_valid(nonce)) else { return false };
        if self.0.as_deref() != Some(received) {
            self.0 = Some(received.to_owned());
        }
        sent != Some(received)
    }
}

fn is_valid(nonce: &str) -> bool {
    !nonce.is_empty() && nonce.len() <= DpopNonce::MAX_BYTES && nonce.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonces_that_cannot_be_sent_are_ignored() {
        let mut known = DpopNonce::new();
        for invalid in ["", "two words", "line\r\nbreak", "ü", &"x".repeat(DpopNonce::MAX_BYTES + 1)] {
            assert!(!known.update(None, Some(invalid)));
            assert_eq!(known.current(), None);
        }
        assert!(!known.update(None, None));
        assert!(known.update(None, Some("n-1")));
        assert!(!known.update(Some("n-1"), Some("n-1")));
        assert!(known.update(Some("n-1"), Some("n-2")));
        assert_eq!(known.current(), Some("n-2"));
    }
}
