//! What clients of one process found out about servers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mcp_kernel::client::Verdict;
use mcp_types::Era;

/// Shares what clients find out about servers, so that each server is probed once and not by every client.
///
/// Clones share their contents. A verdict that turns out wrong is corrected by the client that notices, and a legacy
/// verdict is checked again after a while: over a pipe beside the handshake, which does not wait for that, and over HTTP
/// before it.
///
/// ```
/// use mcp_client::{Client, VerdictCache};
///
/// let verdicts = VerdictCache::default();
/// let client = Client::builder("example", "1.0").verdict_cache(&verdicts, "my-server --stdio");
/// ```
#[derive(Clone, Default)]
pub struct VerdictCache(Arc<Mutex<BTreeMap<String, Entry>>>);

#[derive(Clone, Copy, Debug)]
struct Entry {
    verdict: Verdict,
    since: Instant,
    /// Whether the server ends when it is probed.
    dies_of_probe: bool,
}

/// How many servers are kept in mind.
const MOST: usize = 1024;

/// How long a legacy verdict is gone by without a doubt.
const DOUBT_AFTER: Duration = Duration::from_secs(10 * 60);

/// How long it is gone by if the server cannot be probed without starting it twice.
const FORGET_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// Says how many servers there are, and not which: a command line may hold a secret.
impl fmt::Debug for VerdictCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.lock().unwrap_or_else(PoisonError::into_inner).len();
        f.debug_struct("VerdictCache").field("servers", &count).finish_non_exhaustive()
    }
}

impl VerdictCache {
    pub(crate) fn get(&self, target: &str, now: Instant) -> Option<Verdict> {
        let entry = *self.0.lock().unwrap_or_else(PoisonError::into_inner).get(target)?;
        let age = now.saturating_duration_since(entry.since);
        if entry.verdict.revision.era() == Era::Modern {
            return Some(entry.verdict);
        }
        if entry.dies_of_probe {
            return Some(entry.verdict).filter(|_| age < FORGET_AFTER);
        }
        Some(entry.verdict.with_doubt(age >= DOUBT_AFTER))
    }

    pub(crate) fn put(&self, target: &str, verdict: Verdict, dies_of_probe: bool, now: Instant) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match entries.get_mut(target) {
            // That it was confirmed by a handshake says nothing about what a probe would have found.
            Some(known) if known.verdict == verdict && !dies_of_probe => {}
            Some(known) => *known = Entry { verdict, since: now, dies_of_probe },
            None => {
                if entries.len() >= MOST {
                    let oldest = entries.iter().min_by_key(|(_, entry)| entry.since).map(|(target, _)| target.clone());
                    oldest.and_then(|oldest| entries.remove(&oldest));
                }
                entries.insert(target.to_owned(), Entry { verdict, since: now, dies_of_probe });
            }
        }
    }

    /// A probe confirmed the verdict, so that there is no doubt for a while.
    pub(crate) fn confirm(&self, target: &str, now: Instant) {
        if let Some(known) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut(target) {
            known.since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use mcp_types::Revision;

    use super::*;

    #[test]
    fn targets_are_not_shown() {
        let cache = VerdictCache::default();
        #[expect(clippy::disallowed_methods, reason = "any moment will do")]
        cache.put("my-server --token=secret", Verdict::new(Revision::V2025_11_25), false, Instant::now());
        let shown = format!("{cache:?}");
        assert!(shown.contains('1') && !shown.contains("secret"), "{shown}");
    }
}
