//! Limiting how often more scopes are requested.

use std::collections::VecDeque;

use crate::Scopes;

/// The attempts to get more scopes for operations that a server refused for lack of them.
///
/// A server that refuses an operation whatever the token can do would have a person agree over and over. So each operation is
/// given a few attempts until it succeeds, and then its refusal is final.
#[derive(Debug, Default)]
pub struct StepUps {
    attempts: VecDeque<Attempt>,
}

#[derive(Debug)]
struct Attempt {
    operation: String,
    /// The scopes that were needed last.
    scopes: Scopes,
    /// How often these scopes were requested.
    count: usize,
    /// How often any scopes were requested.
    total: usize,
}

impl StepUps {
    /// How often more scopes are requested for one operation that needs the same scopes each time.
    pub const MAX_ATTEMPTS: usize = 2;
    /// How often more scopes are requested for one operation, whatever it needs: a server can demand others each time.
    pub const MAX_ATTEMPTS_IN_ALL: usize = 4;
    /// How many operations are remembered. The oldest is forgotten first.
    pub const MAX_OPERATIONS: usize = 256;

    /// Creates an empty record.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records an attempt for an operation that needs these scopes. Returns false if there were too many, so that it must not be made.
    ///
    /// `granted` are the scopes of the token that was refused. If they contain all that is needed, more scopes cannot help,
    /// and only one attempt is made, in case the token is out of date.
    #[must_use]
    pub fn begin(&mut self, operation: &str, needed: &Scopes, granted: &Scopes) -> bool {
        let limit = if granted.contains_all(needed) { 1 } else { Self::MAX_ATTEMPTS };
        if let Some(attempt) = self.attempts.iter_mut().find(|attempt| attempt.operation == operation) {
            if attempt.scopes != *needed {
                (attempt.scopes, attempt.count) = (needed.clone(), 0);
            }
            if attempt.count >= limit || attempt.total >= Self::MAX_ATTEMPTS_IN_ALL {
                return false;
            }
            attempt.count += 1;
            attempt.total += 1;
            return true;
        }
        if self.attempts.len() == Self::MAX_OPERATIONS {
            self.attempts.pop_front();
        }
        let (operation, scopes) = (operation.to_owned(), needed.clone());
        self.attempts.push_back(Attempt { operation, scopes, count: 1, total: 1 });
        true
    }

    /// Forgets the attempts for an operation that succeeded.
    pub fn succeed(&mut self, operation: &str) {
        self.attempts.retain(|attempt| attempt.operation != operation);
    }
}
