//! Records of what may be used once.

use std::time::Duration;

use redis::Value;

use crate::record::invalid;
use crate::script::{Script, Scripts};
use crate::{Shared, milliseconds};
use mcp_session::StoreError;

/// The use of something.
pub(crate) struct Use<'a> {
    /// What is used.
    pub(crate) id: &'a [u8],
    /// The time, and the end of its validity, in seconds since the Unix epoch.
    pub(crate) now: u64,
    pub(crate) expires: u64,
    /// The set with all that was used; then, if there are any, the parts of it that have a limit of their own.
    pub(crate) sets: &'a [(String, usize)],
}

/// The outcome of a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    First,
    UsedBefore,
    /// A limit is reached, so that the use was not recorded.
    Full,
}

impl Shared {
    /// Records a use, unless it is not the first. After an error it may have been recorded.
    pub(crate) async fn claim(&self, used: Use<'_>) -> Result<Claim, StoreError> {
        // The clock of the server decides what has expired; Redis forgets all of it a minute after the last one.
        let time_to_live = Duration::from_secs(used.expires.saturating_sub(used.now).saturating_add(60));
        let claim = |scripts: &Scripts| {
            let mut command = scripts.call(Script::Claim, used.sets.len());
            used.sets.iter().for_each(|(key, _)| {
                command.arg(key);
            });
            command.arg(used.now).arg(used.expires).arg(used.id).arg(milliseconds(time_to_live));
            used.sets.iter().for_each(|(_, limit)| {
                command.arg(*limit);
            });
            command
        };
        let Value::Int(outcome) = self.commands.execute(claim).await.map_err(StoreError::from)? else {
            return Err(invalid("a response that is not a claim"));
        };
        Ok(match outcome {
            1 => Claim::First,
            0 => Claim::UsedBefore,
            _ => Claim::Full,
        })
    }

    /// Whether a use is recorded.
    #[cfg(feature = "server")]
    pub(crate) async fn is_used(&self, set: &str, id: &[u8], now: u64) -> Result<bool, StoreError> {
        let score = |_: &Scripts| redis::cmd("ZSCORE").arg(set).arg(id).to_owned();
        let found = self.commands.execute_idempotent(score).await.map_err(StoreError::from)?;
        if found == Value::Nil {
            return Ok(false);
        }
        let Value::Double(expires) = found else { return Err(invalid("a score that is not a number")) };
        Ok(expires > now as f64)
    }
}
