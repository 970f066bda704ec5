//! Cached results, for the time to live that the server sets.
//!
//! Each client has its own cache. Private results belong to the credentials that they were requested with, and are dropped
//! when the credentials change.

use std::collections::BTreeMap;
use std::time::Duration;

use mcp_kernel::{Change, Time};
use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::{Method, ObjectRef};

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
    /// The credentials of the client, which calls without their own are sent with. Each such request sets them before it
    /// is sent, and other credentials count as a change of every kind.
    client: Option<CredentialFingerprint>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntryKey {
    kind: Kind,
    /// The parameters, without metadata.
    params: String,
    /// The credentials that a private result was requested with, if they may change.
    owner: Option<CredentialFingerprint>,
}

/// The credentials of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    /// All requests have the same credentials.
    Fixed,
    /// The credentials are not known.
    Unknown,
    /// The request is, was or would be sent with these.
    Known(CredentialFingerprint),
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

impl EntryKey {
    fn is_for_same_request(&self, other: &Self) -> bool {
        (self.kind, &self.params) == (other.kind, &other.params)
    }
}

impl Cache {
    pub(crate) fn new(max_entries: usize) -> Self {
        Self { entries: BTreeMap::new(), max_entries, bytes: 0, changes: BTreeMap::new(), client: None }
    }

    /// Returns the key of a request; `None` if its result must not be cached.
    pub(crate) fn key(&self, method: &Method, params: ObjectRef<'_>) -> Option<CacheKey> {
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
        Some(CacheKey { entry: EntryKey { kind, params: text.to_owned(), owner: None }, changes })
    }

    /// Looks up a result; a private one is returned only for the credentials that it was requested with.
    pub(crate) fn get(&mut self, key: &CacheKey, owner: Owner, now: Time) -> Cached {
        if let Some(entry) = self.entries.get(&key.entry) {
            if entry.expires > now && (!entry.is_private || owner == Owner::Fixed) {
                return Cached::Hit(entry.result.clone());
            }
            self.remove(&key.entry);
        }
        match owner {
            Owner::Fixed => Cached::Miss,
            Owner::Unknown => {
                let of_owners = self.entries.range(&key.entry..).next();
                let is_private = of_owners.is_some_and(|(other, _)| other.is_for_same_request(&key.entry));
                if is_private { Cached::Private } else { Cached::Miss }
            }
            Owner::Known(owner) => {
                let key = EntryKey { owner: Some(owner), ..key.entry.clone() };
                match self.entries.get(&key) {
                    Some(entry) if entry.expires > now => Cached::Hit(entry.result.clone()),
                    Some(_) => {
                        self.remove(&key);
                        Cached::Miss
                    }
                    None => Cached::Miss,
                }
            }
        }
    }

    /// Caches a result for the time to live that the server sets, unless there was a change since the lookup. A private
    /// result is kept for the credentials that its request was sent with.
    // C-7
    pub(crate) fn insert(&mut self, key: CacheKey, result: &PayloadBuf, owner: Owner, now: Time) {
        // The result is newer than the cached one, even if it must not be cached itself.
        self.remove(&key.entry);
        let mut entry = key.entry;
        if let Owner::Known(owner) = owner {
            entry.owner = Some(owner);
            self.remove(&entry);
        }
        let number = |raw: &serde_json::value::RawValue| serde_json::from_str::<i64>(raw.get()).ok();
        let ttl = result.get("ttlMs").and_then(number).and_then(|ttl| u64::try_from(ttl).ok()).unwrap_or_default();
        if ttl == 0 {
            return;
        }
        let expires = now + Duration::from_millis(ttl).min(MAX_TTL);
        let size = size(&entry, result);
        let changes = self.changes.get(&entry.kind).copied().unwrap_or_default();
        if changes != key.changes || size > MAX_BYTES / 4 {
            return;
        }
        let is_private = !is_public(result);
        if is_private && owner == Owner::Unknown {
            return;
        }
        entry.owner = entry.owner.filter(|_| is_private);
        self.make_room(size);
        self.bytes += size;
        self.entries.insert(entry, Entry { result: result.clone(), expires, is_private });
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

    /// Returns the credentials of a call that has none of its own, among calls whose credentials may change.
    pub(crate) fn client(&self) -> Owner {
        self.client.map_or(Owner::Unknown, Owner::Known)
    }

    /// Sets the credentials of the client. Drops the private results of those before, and returns them if they differ.
    pub(crate) fn set_client(&mut self, credentials: CredentialFingerprint) -> Option<CredentialFingerprint> {
        let before = self.client.replace(credentials).filter(|before| *before != credentials)?;
        self.remove_private(before);
        Some(before)
    }

    fn remove_private(&mut self, before: CredentialFingerprint) {
        for kind in [Kind::Discover, Kind::Tools, Kind::Prompts, Kind::Resources, Kind::Templates, Kind::Read] {
            *self.changes.entry(kind).or_default() += 1;
        }
        self.retain(|key, entry| !entry.is_private || key.owner.is_some_and(|owner| owner != before));
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

/// Returns whether a result may be shared between users.
// C-19: private is the default scope.
pub(crate) fn is_public(result: &PayloadBuf) -> bool {
    result.get("cacheScope").is_some_and(|scope| scope.get() == r#""public""#)
}

/// The size of an entry. Parameters count because a cursor can be of any length.
fn size(key: &EntryKey, result: &PayloadBuf) -> usize {
    key.params.len() + result.as_str().len()
}

#[cfg(test)]
mod tests {
    use mcp_types::RawObject;
    use mcp_types::jsonrpc::Limits;

    use super::*;

    /// A private result is returned only to known credentials, and an expired one is a miss.
    // covers: SEC-8, C-12
    #[test]
    fn sec_8_private_answers_are_for_those_who_are_known() {
        let now = Time::EPOCH;
        let mut cache = Cache::new(256);
        let params: RawObject = serde_json::from_str("{}").unwrap();
        for (scope, is_private) in [("private", true), ("public", false)] {
            let key = cache.key(&Method::TOOLS_LIST, (&params).into()).unwrap();
            let text = format!(r#"{{"ttlMs":1000,"cacheScope":"{scope}","tools":[]}}"#);
            let result = PayloadBuf::parse(&text, &Limits::default()).unwrap();
            let [one, other] = [1, 2].map(|number| Owner::Known(CredentialFingerprint::new([0; 16], [number; 32])));
            cache.insert(key.clone(), &result, one, now);
            assert_eq!(matches!(cache.get(&key, Owner::Unknown, now), Cached::Private), is_private);
            assert!(matches!(cache.get(&key, one, now), Cached::Hit(_)));
            assert_eq!(matches!(cache.get(&key, other, now), Cached::Miss), is_private);
            assert!(matches!(cache.get(&key, one, now + Duration::from_secs(1)), Cached::Miss));
            assert!(cache.entries.is_empty() && cache.bytes == 0);
            cache.insert(key.clone(), &result, Owner::Unknown, now);
            assert_eq!(matches!(cache.get(&key, one, now), Cached::Miss), is_private);
        }
    }

    /// Users have private results beside each other; a newer public one takes their place, and a new user of the client
    /// only that of the one before.
    // covers: GW-6, SEC-8
    #[test]
    fn gw_6_private_results_are_kept_by_credential() {
        let now = Time::EPOCH;
        let mut cache = Cache::new(256);
        let params: RawObject = serde_json::from_str("{}").unwrap();
        let users = [1, 2, 3].map(|number| CredentialFingerprint::new([0; 16], [number; 32]));
        let result = |text: &str| PayloadBuf::parse(text, &Limits::default()).unwrap();
        assert_eq!(cache.set_client(users[0]), None);
        for (number, user) in users.into_iter().enumerate() {
            let key = cache.key(&Method::TOOLS_LIST, (&params).into()).unwrap();
            let own = result(&format!(r#"{{"ttlMs":1000,"tools":[],"number":{number}}}"#));
            cache.insert(key, &own, Owner::Known(user), now);
        }
        let found = |cache: &mut Cache| {
            let key = cache.key(&Method::TOOLS_LIST, (&params).into()).unwrap();
            users.map(|user| match cache.get(&key, Owner::Known(user), now) {
                Cached::Hit(result) => Some(result.get("number").unwrap().get().to_owned()),
                Cached::Private | Cached::Miss => None,
            })
        };
        assert_eq!(found(&mut cache), ["0", "1", "2"].map(|number| Some(number.to_owned())));
        assert_eq!(cache.set_client(users[1]), Some(users[0]));
        assert_eq!(found(&mut cache), [None, Some("1".to_owned()), Some("2".to_owned())]);
        let key = cache.key(&Method::TOOLS_LIST, (&params).into()).unwrap();
        let public = result(r#"{"ttlMs":1000,"cacheScope":"public","tools":[],"number":9}"#);
        cache.insert(key, &public, Owner::Known(users[2]), now);
        assert_eq!(found(&mut cache), [(); 3].map(|()| Some("9".to_owned())));
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
            let params: RawObject = serde_json::from_str(&cursor).unwrap();
            let key = cache.key(&Method::TOOLS_LIST, (&params).into()).unwrap();
            cache.insert(key, &result, Owner::Fixed, now);
        }
        let kept: usize = cache.entries.iter().map(|(key, entry)| size(key, &entry.result)).sum();
        assert_eq!(kept, cache.bytes);
        assert!((1_000_000..=MAX_BYTES).contains(&kept), "{kept}");
    }
}
