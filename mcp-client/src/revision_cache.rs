//! Detected revisions, shared by the clients of a process.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp_kernel::Time;
use mcp_kernel::client::DetectedRevision;
use mcp_types::Era;

/// Shares the detected revisions of servers among clients, so that each server is probed once and not by every client.
///
/// Clones share their contents. The client that finds an entry wrong corrects it. A legacy entry is checked again after ten
/// minutes: over a pipe the probe is sent together with the handshake, over HTTP before it.
///
/// ```
/// use mcp_client::{Client, RevisionCache};
///
/// let cache = RevisionCache::default();
/// let client = Client::builder("example", "1.0").revision_cache(&cache, "my-server --stdio");
/// ```
#[derive(Clone, Default)]
pub struct RevisionCache(Arc<Mutex<BTreeMap<String, Entry>>>);

#[derive(Clone, Copy, Debug)]
struct Entry {
    detected: DetectedRevision,
    since: Time,
    /// Whether the server exits when it is probed.
    dies_of_probe: bool,
}

/// Maximum number of entries.
const MAX_ENTRIES: usize = 1024;

/// Age from which a legacy entry is probed again.
const PROBE_AGAIN_AFTER: Duration = Duration::from_secs(10 * 60);

/// Age from which a legacy entry is dropped, if the server exits when it is probed and would have to be started twice.
const DROP_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// Shows the number of entries only: a command line may contain a secret.
impl fmt::Debug for RevisionCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.lock().unwrap_or_else(PoisonError::into_inner).len();
        f.debug_struct("RevisionCache").field("servers", &count).finish_non_exhaustive()
    }
}

impl RevisionCache {
    pub(crate) fn get(&self, target: &str, now: Time) -> Option<DetectedRevision> {
        let entry = *self.0.lock().unwrap_or_else(PoisonError::into_inner).get(target)?;
        let age = now.duration_since(entry.since);
        if entry.detected.revision.era() == Era::Modern {
            return Some(entry.detected);
        }
        if entry.dies_of_probe {
            return Some(entry.detected).filter(|_| age < DROP_AFTER);
        }
        Some(entry.detected.probe_again(age >= PROBE_AGAIN_AFTER))
    }

    pub(crate) fn insert(&self, target: &str, detected: DetectedRevision, dies_of_probe: bool, now: Time) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match entries.get_mut(target) {
            // A handshake that succeeds does not show what a probe would have found, so the age stays.
            Some(known) if known.detected == detected && !dies_of_probe => {}
            Some(known) => *known = Entry { detected, since: now, dies_of_probe },
            None => {
                if entries.len() >= MAX_ENTRIES {
                    let oldest = entries.iter().min_by_key(|(_, entry)| entry.since).map(|(target, _)| target.clone());
                    oldest.and_then(|oldest| entries.remove(&oldest));
                }
                entries.insert(target.to_owned(), Entry { detected, since: now, dies_of_probe });
            }
        }
    }

    /// Resets the age of an entry, because a probe confirmed it.
    pub(crate) fn confirm(&self, target: &str, now: Time) {
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
        let cache = RevisionCache::default();
        cache.insert("my-server --token=secret", DetectedRevision::new(Revision::V2025_11_25), false, Time::EPOCH);
        let shown = format!("{cache:?}");
        assert!(shown.contains('1') && !shown.contains("secret"), "{shown}");
    }

    fn legacy() -> DetectedRevision {
        DetectedRevision::new(Revision::V2025_11_25)
    }

    /// A legacy entry is probed again after a while, and after a probe that confirmed it not before as much time has
    /// passed. A handshake confirms nothing.
    // covers: INT-7
    #[test]
    fn int_7_entries_are_probed_again() {
        let (cache, start) = (RevisionCache::default(), Time::EPOCH);
        let is_probed = |at: Time| cache.get("server", at).unwrap().probe_again;
        cache.insert("server", legacy(), false, start);
        let late = start + PROBE_AGAIN_AFTER;
        assert!(!is_probed(late - Duration::from_secs(1)) && is_probed(late));
        cache.insert("server", legacy(), false, late);
        assert!(is_probed(late));
        cache.confirm("server", late);
        assert!(!is_probed(late) && is_probed(late + PROBE_AGAIN_AFTER));
    }

    /// A server that exits when it is probed is not probed beside the handshake; its entry is dropped in the end.
    // covers: INT-7
    #[test]
    fn int_7_servers_that_die_of_the_probe_are_spared() {
        let (cache, start) = (RevisionCache::default(), Time::EPOCH);
        cache.insert("server", legacy(), true, start);
        assert_eq!(cache.get("server", start + DROP_AFTER - Duration::from_secs(1)), Some(legacy()));
        assert_eq!(cache.get("server", start + DROP_AFTER), None);
    }

    /// The oldest entry makes room for a new one.
    // covers: INT-7
    #[test]
    fn int_7_entries_are_bounded() {
        let (cache, start) = (RevisionCache::default(), Time::EPOCH);
        for number in 0..=MAX_ENTRIES as u64 {
            cache.insert(&number.to_string(), legacy(), false, start + Duration::from_secs(number));
        }
        assert_eq!(cache.0.lock().unwrap().len(), MAX_ENTRIES);
        assert!(cache.get("0", start).is_none() && cache.get("1", start).is_some());
    }
}
