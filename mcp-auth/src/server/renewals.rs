//! The newest tokens of users.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use mcp_server::{AuthInfo, Principal, Renewal};

/// The renewals of users, by which streams learn whether the user has a newer token for the same client.
///
/// An entry stays as long as a token of the user is remembered or in use, so there are not many more than those.
#[derive(Default)]
pub(crate) struct Renewals(Mutex<Table>);

#[derive(Default)]
struct Table {
    by_user: HashMap<(Principal, Option<Box<str>>), Renewal>,
    /// The number of entries at which those that are not used are looked for.
    next_sweep: usize,
}

const MIN_SWEEP: usize = 64;

impl Renewals {
    /// Adds the renewal of the user to a token that was verified. The token itself counts once [`Renewal::renew`] is called.
    pub(crate) fn attach(&self, auth: AuthInfo) -> (AuthInfo, Renewal) {
        let user = (auth.principal().clone(), auth.client_id().map(Into::into));
        let renewal = {
            let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if table.by_user.len() >= table.next_sweep.max(MIN_SWEEP) {
                table.by_user.retain(|_, renewal| !renewal.is_unused());
                table.next_sweep = 2 * table.by_user.len();
            }
            table.by_user.entry(user).or_default().clone()
        };
        (auth.into_builder().renewal(renewal.clone()).build(), renewal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_without_tokens_are_forgotten() {
        let renewals = Renewals::default();
        let token = |user: &str| renewals.attach(AuthInfo::builder(Principal::new(None, user)).build()).0;
        let kept = token("kept");
        for index in 0..10_000 {
            token(&index.to_string());
            assert!(renewals.0.lock().unwrap().by_user.len() <= 128);
        }
        assert!(renewals.0.lock().unwrap().by_user.contains_key(&(kept.principal().clone(), None)));
    }
}
