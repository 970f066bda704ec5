//! Detected revisions, shared by the clients of a process.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp_kernel::Time;
use mcp_kernel::client::{DetectedRevision as KernelRevision, ServerFacts};
use mcp_types::Era;

use crate::detected_revision::DetectedRevision;

/// Shares the detected revisions of servers among clients, so that each server is probed once and not by every client, and
/// the descriptions of servers that are not private to a user.
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

#[derive(Clone, Debug)]
struct Entry {
    detected: KernelRevision,
    since: Time,
    /// Whether the server exits when it is probed.
    dies_of_probe: bool,
    /// The description of the server; empty if it is private or too long.
    server: ServerFacts,
}

impl Entry {
    fn new(detected: KernelRevision, dies_of_probe: bool, since: Time) -> Self {
        Self { detected, since, dies_of_probe, server: ServerFacts::default() }
    }
}

/// Maximum number of entries.
const MAX_ENTRIES: usize = 1024;

/// Maximum size of the description of a server, as JSON.
const MAX_SERVER_BYTES: usize = 16 * 1024;

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
        let entry = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(target)?.clone();
        let age = now.duration_since(entry.since);
        let detected = DetectedRevision::of_kernel(entry.detected, entry.server);
        if detected.revision.era() == Era::Modern {
            return Some(detected);
        }
        if entry.dies_of_probe {
            return Some(detected).filter(|_| age < DROP_AFTER);
        }
        Some(detected.probe_again(age >= PROBE_AGAIN_AFTER))
    }

    pub(crate) fn insert(&self, target: &str, detected: KernelRevision, dies_of_probe: bool, now: Time) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match entries.get_mut(target) {
            // A handshake that succeeds does not show what a probe would have found, so the age stays.
            Some(known) if known.detected == detected && !dies_of_probe => {}
            Some(known) => *known = Entry::new(detected, dies_of_probe, now),
            None => {
                if entries.len() >= MAX_ENTRIES {
                    let oldest = entries.iter().min_by_key(|(_, entry)| entry.since).map(|(target, _)| target.clone());
                    oldest.and_then(|oldest| entries.remove(&oldest));
                }
                entries.insert(target.to_owned(), Entry::new(detected, dies_of_probe, now));
            }
        }
    }

    /// Sets the description of a server, or removes it if it must not be shared.
    pub(crate) fn set_server(&self, target: &str, server: Option<&ServerFacts>) {
        let size = |server: &ServerFacts| serde_json::to_string(server).map_or(usize::MAX, |json| json.len());
        let server = server.filter(|server| size(server) <= MAX_SERVER_BYTES).cloned().unwrap_or_default();
        if let Some(known) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut(target) {
            known.server = server;
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
        cache.insert("my-server --token=secret", legacy(), false, Time::EPOCH);
        let shown = format!("{cache:?}");
        assert!(shown.contains('1') && !shown.contains("secret"), "{shown}");
    }

    fn legacy() -> KernelRevision {
        KernelRevision::new(Revision::V2025_11_25)
    }

    /// The description of a server is shared with its revision, up to a limit, and not with that of another revision.
    // covers: GW-10
    #[test]
    fn gw_10_descriptions_are_bounded() {
        let cache = RevisionCache::default();
        let (one, other) = (KernelRevision::new(Revision::V2026_07_28), legacy());
        let instructions = |length| {
            let mut facts = ServerFacts::default();
            facts.instructions = Some("x".repeat(length));
            facts
        };
        let known = || cache.get("server", Time::EPOCH).unwrap().server.instructions.map(|text| text.len());
        cache.insert("server", one, false, Time::EPOCH);
        cache.set_server("server", Some(&instructions(1000)));
        cache.insert("server", one, false, Time::EPOCH);
        assert_eq!(known(), Some(1000));
        cache.insert("server", other, false, Time::EPOCH);
        assert_eq!(known(), None);
        for (server, expected) in
            [(Some(1000), Some(1000)), (Some(MAX_SERVER_BYTES), None), (Some(7), Some(7)), (None, None)]
        {
            cache.set_server("server", server.map(instructions).as_ref());
            assert_eq!(known(), expected);
        }
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
        let kept = cache.get("server", start + DROP_AFTER - Duration::from_secs(1));
        assert_eq!(kept, Some(DetectedRevision::new(Revision::V2025_11_25)));
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
