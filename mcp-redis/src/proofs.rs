//! DPoP proofs that were used.

use std::fmt;
use std::sync::Arc;

use mcp_auth::server::{ProofLedger, UsedProof, async_trait};
use mcp_kernel::server::Principal;
use sha2::{Digest as _, Sha256};

use crate::Shared;
use crate::keys::hex;
use crate::used::{Claim, Use};

/// The part of the proofs that one key can have.
const KEY_SHARE: usize = 32;
/// The part of the proofs that one user can have, with all keys.
const PRINCIPAL_SHARE: usize = 8;

/// A [`ProofLedger`] in Redis, so that a proof is good once at all instances; created by
/// [`Redis::proof_ledger`](crate::Redis::proof_ledger).
///
/// While Redis is unavailable, proofs are refused.
#[derive(Clone)]
pub struct RedisProofLedger {
    pub(crate) shared: Arc<Shared>,
}

#[async_trait]
impl ProofLedger for RedisProofLedger {
    async fn claim(&self, proof: UsedProof<'_>) -> bool {
        let limit = self.shared.options.max_used_proofs;
        // Hashed, so that whatever the text is, the name of the key is short.
        let keys = &self.shared.keys;
        let of_key = keys.proofs_of(&hex(&Sha256::digest(proof.key)));
        let of_user = keys.proofs_of(&hex(&digest_of(proof.principal)));
        let share = |part: usize| (limit / part).max(1);
        let sets = [(keys.proofs(), limit), (of_key, share(KEY_SHARE)), (of_user, share(PRINCIPAL_SHARE))];
        let (now, expires) = (proof.now.as_secs(), proof.expires.as_secs());
        match self.shared.claim(Use { id: &proof.id, now, expires, sets: &sets }).await {
            Ok(Claim::First) => true,
            Ok(Claim::UsedBefore) => false,
            Ok(Claim::Full) => {
                tracing::debug!(limit, key = proof.key, "a DPoP proof is refused: too many are recorded as used");
                false
            }
            Err(error) => {
                tracing::warn!(%error, "a DPoP proof is refused: it cannot be recorded as used");
                false
            }
        }
    }
}

/// Identifies a user. No issuer and no subject contains the character between them, and no key the one before.
fn digest_of(principal: &Principal) -> [u8; 32] {
    let mut digest = Sha256::new_with_prefix(b"\0user\0");
    digest.update(principal.issuer.as_deref().unwrap_or_default());
    digest.update(b"\0");
    digest.update(&*principal.subject);
    digest.finalize().into()
}

impl fmt::Debug for RedisProofLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisProofLedger").finish_non_exhaustive()
    }
}
