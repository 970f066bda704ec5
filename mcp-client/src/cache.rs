//! Cached results, for the time to live that the server sets.
//!
//! Each client has its own cache. Private results belong to the credentials that they were requested with, and are dropped
//! when the credentials change.

use std::collections::BTreeMap;
use std::time::Duration;

use mcp_kernel::{Change, Time};
use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::{Method, RawObject};

use crate::transport::CredentialFingerprint;

/// Maximum size of all entries: results, and the parameters of their requests.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Maximum time to live, whatever the server sets.
const MAX_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// Results by method and parameters.
pub(crate) struct Cache {
    entries: BTreeMap<EntryKey, Entry>,
    max_entries: usize,
    bytes: usize,
    /// Number of changes per kind: the result of a request from before a change may be older than the change.
    changes: BTreeMap<Kind, u64>,
    /// The credentials that all private results were requested with, if they may change. Each request sets its own before
    /// it is sent, and other credentials count as a change of every kind. So a result is inserted only if the credentials
    /// were the same from the lookup to the response.
    owner: Option<CredentialFingerprint>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntryKey {
    kind: Kind,
    /// The parameters, without metadata.
    params: String,
}

/// The kinds of results that can be cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Discover,
    Tools,
    Prompts,
    Resources,
    Templates,
    Read,
}

struct Entry {
    result: PayloadBuf,
    expires: Time,
    is_private: bool,
}

/// The key of a request, and the number of changes at the time of the lookup.
#[derive(Clone, Debug)]
pub(crate) struct CacheKey {
    entry: EntryKey,
    changes: u64,
}

/// The outcome of a lookup.
pub(crate) enum Cached {
    Hit(PayloadBuf),
    /// There is a private result, and the current credentials have to be determined first.
    Private,
    Miss,
}

impl Cache {
    pub(crate) fn new(max_entries: usize) -> Self {
        Self { entries: BTreeMap::new(), max_entries, bytes: 0, changes: BTreeMap::new(), owner: None }
    }

    /// Returns the key of a request; `None` if its result must not be cached.
    pub(crate) fn key(&self, method: &Method, params: &RawObject) -> Option<CacheKey> {
        let kind = match method.as_str() {
            "server/discover" => Kind::Discover,
            "tools/list" => Kind::Tools,
            "prompts/list" => Kind::Prompts,
            "resources/list" => Kind::Resources,
            "resources/templates/list" => Kind::Templates,
            "resources/read" => Kind::Read,
            _ => return None,
        };
        // C-6: a result that depends on input is not reused.
        let text = params.as_str();
        if self.max_entries == 0
            || ["_meta", "inputResponses", "requestState"].iter().any(|member| text.contains(member))
        {
            return None;
        }
        let changes = self.changes.get(&kind).copied().unwrap_or_default();
        Some(CacheKey { entry: EntryKey { kind, params: text.to_owned() }, changes })
    }

    /// Looks up a result; a private one is returned only if the current credentials are known to be those of the owner.
    pub(crate) fn get(&mut self, key: &CacheKey, is_owner_known: bool, now: Time) -> Cached {
        match self.entries.get(&key.entry) {
            None => Cached::Miss,
            Some(entry) if entry.expires <= now => {
                self.remove(&key.entry);
                Cached::Miss
            }
            Some(entry) if entry.is_private && !is_owner_known => Cached::Private,
            Some(entry) => Cached::Hit(entry.result.clone()),
        }
    }

    /// Caches a result for the time to live that the server sets, unless there was a change since the lookup.
    // C-7
    pub(crate) fn insert(&mut self, key: CacheKey, result: &PayloadBuf, now: Time) {
        // The result is newer than the cached one, even if it must not be cached itself.
        self.remove(&key.entry);
        let number = |raw: &serde_json::value::RawValue| serde_json::from_str::<i64>(raw.get()).ok();
        let ttl = result.get("ttlMs").and_then(number).and_then(|ttl| u64::try_from(ttl).ok()).unwrap_or_default();
        if ttl == 0 {
            return;
        }
        let expires = now + Duration::from_millis(ttl).min(MAX_TTL);
        let size = size(&key.entry, result);
        let changes = self.changes.get(&key.entry.kind).copied().unwrap_or_default();
        if changes != key.changes || size > MAX_BYTES / 4 {
            return;
        }
        // C-19: private is the default scope.
        let is_private = result.get("cacheScope").is_none_or(|scope| scope.get() != r#""public""#);
        self.make_room(size);
        self.bytes += size;
        self.entries.insert(key.entry, Entry { result: result.clone(), expires, is_private });
    }

    /// Drops the results that a change may affect.
    // C-14, C-20
    pub(crate) fn invalidate(&mut self, change: &Change) {
        let kinds: &[Kind] = match change {
            Change::Tools => &[Kind::Tools],
            Change::Prompts => &[Kind::Prompts],
            Change::Resources => &[Kind::Resources, Kind::Templates],
            // The change may affect resources below or above the URI, too.
            Change::Resource(_) => &[Kind::Read],
            _ => return,
        };
        for kind in kinds {
            *self.changes.entry(*kind).or_default() += 1;
        }
        self.retain(|key, _| !kinds.contains(&key.kind));
    }

    /// Drops all pages of a list, because one of its cursors became invalid.
    // C-17
    pub(crate) fn remove_list(&mut self, list: &CacheKey) {
        if list.entry.kind != Kind::Read {
            self.retain(|key, _| key.kind != list.entry.kind);
        }
    }

    /// Sets the credentials that requests are sent with. Drops the private results of other credentials; returns whether
    /// the credentials changed.
    pub(crate) fn set_owner(&mut self, owner: CredentialFingerprint) -> bool {
        let has_changed = self.owner.replace(owner).is_some_and(|before| before != owner);
        if has_changed {
            self.remove_private();
        }
        has_changed
    }

    fn remove_private(&mut self) {
        for kind in [Kind::Discover, Kind::Tools, Kind::Prompts, Kind::Resources, Kind::Templates, Kind::Read] {
            *self.changes.entry(kind).or_default() += 1;
        }
        self.retain(|_, entry| !entry.is_private);
    }

    fn make_room(&mut self, size: usize) {
        while self.entries.len() >= self.max_entries || self.bytes + size > MAX_BYTES {
            let soonest = self.entries.iter().min_by_key(|(_, entry)| entry.expires).map(|(key, _)| key.clone());
            let Some(soonest) = soonest else { break };
            self.remove(&soonest);
        }
    }

    fn remove(&mut self, key: &EntryKey) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= size(key, &entry.result);
        }
    }

    fn retain(&mut self, keep: impl Fn(&EntryKey, &Entry) -> bool) {
        self.entries.retain(|key, entry| keep(key, entry));
        self.bytes = self.entries.iter().map(|(key, entry)| size(key, &entry.result)).sum();
    }
}

/// The size of an entry. Parameters count because a cursor can be of any length.
fn size(key: &EntryKey, result: &PayloadBuf) -> usize {
    key.params.len() + result.as_str().len()
}

#[cfg(test)]
mod tests {
    use mcp_types::jsonrpc::Limits;

    use super::*;

    /// A private result is returned only to known credentials, and an expired one is a miss.
    // covers: SEC-8, C-12
    #[test]
    fn sec_8_private_answers_are_for_those_who_are_known() {
        let now = Time::EPOCH;
        let mut cache = Cache::new(256);
        let params = serde_json::from_str("{}").unwrap();
        for (scope, is_private) in [("private", true), ("public", false)] {
            let key = cache.key(&Method::TOOLS_LIST, &params).unwrap();
            let text = format!(r#"{{"ttlMs":1000,"cacheScope":"{scope}","tools":[]}}"#);
            cache.insert(key.clone(), &PayloadBuf::parse(&text, &Limits::default()).unwrap(), now);
            assert_eq!(matches!(cache.get(&key, false, now), Cached::Private), is_private);
            assert!(matches!(cache.get(&key, true, now), Cached::Hit(_)));
            assert!(matches!(cache.get(&key, false, now + Duration::from_secs(1)), Cached::Miss));
        }
    }

    /// A cursor is the server's, and part of what the next page is kept under.
    // covers: SEC-7
    #[test]
    fn sec_7_what_was_asked_counts() {
        let now = Time::EPOCH;
        let mut cache = Cache::new(256);
        let result = PayloadBuf::parse(r#"{"ttlMs":60000,"tools":[]}"#, &Limits::default()).unwrap();
        for number in 0..100 {
            let cursor = format!("{{\"cursor\":\"{number}{}\"}}", "x".repeat(100_000));
            let params = serde_json::from_str(&cursor).unwrap();
            let key = cache.key(&Method::TOOLS_LIST, &params).unwrap();
            cache.insert(key, &result, now);
        }
        let kept: usize = cache.entries.iter().map(|(key, entry)| size(key, &entry.result)).sum();
        assert_eq!(kept, cache.bytes);
        assert!((1_000_000..=MAX_BYTES).contains(&kept), "{kept}");
    }
}
