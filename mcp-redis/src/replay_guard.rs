//! Request states that were used.

use std::fmt;
use std::sync::Arc;

use mcp_server::mrtr::{NONCE_BYTES, ReplayGuard, async_trait};

use crate::Shared;
use crate::used::{Claim, Use};

/// A [`ReplayGuard`] in Redis, so that a state or a sealed handle is good once at all instances; created by
/// [`Redis::replay_guard`](crate::Redis::replay_guard).
///
/// While Redis is unavailable, states are refused.
#[derive(Clone)]
pub struct RedisReplayGuard {
    pub(crate) shared: Arc<Shared>,
}

#[async_trait]
impl ReplayGuard for RedisReplayGuard {
    async fn claim(&self, now: u64, nonce: [u8; NONCE_BYTES], expires: u64) -> bool {
        let sets = [(self.shared.keys.states(), self.shared.options.max_used_states)];
        match self.shared.claim(Use { id: &nonce, now, expires, sets: &sets }).await {
            Ok(Claim::First) => true,
            Ok(Claim::UsedBefore) => false,
            Ok(Claim::Full) => {
                let limit = self.shared.options.max_used_states;
                tracing::warn!(limit, "a request state is refused: too many are recorded as used");
                false
            }
            Err(error) => {
                tracing::warn!(%error, "a request state is refused: it cannot be recorded as used");
                false
            }
        }
    }

    async fn is_claimed(&self, now: u64, nonce: [u8; NONCE_BYTES]) -> bool {
        self.shared.is_used(&self.shared.keys.states(), &nonce, now).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "a request state is refused: it is not known whether it was used");
            true
        })
    }
}

impl fmt::Debug for RedisReplayGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisReplayGuard").finish_non_exhaustive()
    }
}
