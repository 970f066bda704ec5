//! Answers that a server allows to be used again.
//!
//! Each client has its own, so nothing gets from one to another; what is private belongs to the credentials that it was
//! given for, and is forgotten when they change.

use std::collections::BTreeMap;
use std::time::Duration;

use mcp_kernel::{Change, Time};
use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::{Method, RawObject};

use crate::transport::CredentialFingerprint;

/// How many bytes all answers may have together, with the parameters of what was asked.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// How long an answer is kept at most, whatever the server says.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Answers by what was asked: the method, and the parameters that the answer depends on.
pub(crate) struct Cache {
    entries: BTreeMap<Key, Entry>,
    most: usize,
    bytes: usize,
    /// What changed how often: an answer to what was asked before a change may be older than it.
    changes: BTreeMap<Kind, u64>,
    /// The credentials that all private answers were given for, where they may change. Each request tells its own before
    /// it is sent, and a change counts as one of everything: so what is kept was asked for, sent and answered without
    /// there being another owner.
    owner: Option<CredentialFingerprint>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    kind: Kind,
    /// The parameters, without metadata.
    params: String,
}

/// What can be kept.
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
    until: Time,
    is_private: bool,
}

/// The state of things when something was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    key: Key,
    changes: u64,
}

/// What there is for something that is asked.
pub(crate) enum Found {
    Answer(PayloadBuf),
    /// An answer that is for its owner alone: who asks has to be found out first.
    Private,
    Nothing,
}

impl Cache {
    pub(crate) fn new(most: usize) -> Self {
        Self { entries: BTreeMap::new(), most, bytes: 0, changes: BTreeMap::new(), owner: None }
    }

    /// What a request is kept under; nothing, if its answer must not be kept.
    pub(crate) fn asked(&self, method: &Method, params: &RawObject) -> Option<Asked> {
        let kind = match method.as_str() {
            "server/discover" => Kind::Discover,
            "tools/list" => Kind::Tools,
            "prompts/list" => Kind::Prompts,
            "resources/list" => Kind::Resources,
            "resources/templates/list" => Kind::Templates,
            "resources/read" => Kind::Read,
            _ => return None,
        };
        // C-6: an answer that depends on input is good for that input alone.
        let text = params.as_str();
        if self.most == 0 || ["_meta", "inputResponses", "requestState"].iter().any(|member| text.contains(member)) {
            return None;
        }
        let changes = self.changes.get(&kind).copied().unwrap_or_default();
        Some(Asked { key: Key { kind, params: text.to_owned() }, changes })
    }

    /// Looks for an answer; one that is for its owner alone is found only if it is known who asks.
    pub(crate) fn get(&mut self, asked: &Asked, knows_who_asks: bool, now: Time) -> Found {
        match self.entries.get(&asked.key) {
            None => Found::Nothing,
            Some(entry) if entry.until <= now => {
                self.remove(&asked.key);
                Found::Nothing
            }
            Some(entry) if entry.is_private && !knows_who_asks => Found::Private,
            Some(entry) => Found::Answer(entry.result.clone()),
        }
    }

    /// Keeps an answer for as long as the server says, unless something changed since it was asked for.
    // C-7
    pub(crate) fn keep(&mut self, asked: Asked, result: &PayloadBuf, now: Time) {
        // Whatever it says, it is newer than what was kept.
        self.remove(&asked.key);
        let number = |raw: &serde_json::value::RawValue| serde_json::from_str::<i64>(raw.get()).ok();
        let ttl = result.get("ttlMs").and_then(number).and_then(|ttl| u64::try_from(ttl).ok()).unwrap_or_default();
        if ttl == 0 {
            return;
        }
        let until = now + Duration::from_millis(ttl).min(LONGEST);
        let size = size(&asked.key, result);
        let changes = self.changes.get(&asked.key.kind).copied().unwrap_or_default();
        if changes != asked.changes || size > MOST_BYTES / 4 {
            return;
        }
        // C-19: what does not say that it is public is private.
        let is_private = result.get("cacheScope").is_none_or(|scope| scope.get() != r#""public""#);
        self.make_room(size);
        self.bytes += size;
        self.entries.insert(asked.key, Entry { result: result.clone(), until, is_private });
    }

    /// Forgets what is not so any more, or may not be.
    // C-14, C-20
    pub(crate) fn invalidate(&mut self, change: &Change) {
        let kinds: &[Kind] = match change {
            Change::Tools => &[Kind::Tools],
            Change::Prompts => &[Kind::Prompts],
            Change::Resources => &[Kind::Resources, Kind::Templates],
            // What changed may lie below what was read, or above.
            Change::Resource(_) => &[Kind::Read],
            _ => return,
        };
        for kind in kinds {
            *self.changes.entry(*kind).or_default() += 1;
        }
        self.retain(|key, _| !kinds.contains(&key.kind));
    }

    /// Forgets all pages of a list, because one of its cursors does not work any more.
    // C-17
    pub(crate) fn forget_pages(&mut self, asked: &Asked) {
        if asked.key.kind != Kind::Read {
            self.retain(|key, _| key.kind != asked.key.kind);
        }
    }

    /// Takes note of the credentials that requests are sent with; if there were others before, what was meant for those is
    /// forgotten. Returns whether there were.
    pub(crate) fn set_owner(&mut self, owner: CredentialFingerprint) -> bool {
        let is_other = self.owner.replace(owner).is_some_and(|before| before != owner);
        if is_other {
            self.forget_private();
        }
        is_other
    }

    fn forget_private(&mut self) {
        for kind in [Kind::Discover, Kind::Tools, Kind::Prompts, Kind::Resources, Kind::Templates, Kind::Read] {
            *self.changes.entry(kind).or_default() += 1;
        }
        self.retain(|_, entry| !entry.is_private);
    }

    fn make_room(&mut self, size: usize) {
        while self.entries.len() >= self.most || self.bytes + size > MOST_BYTES {
            let soonest = self.entries.iter().min_by_key(|(_, entry)| entry.until).map(|(key, _)| key.clone());
            let Some(soonest) = soonest else { break };
            self.remove(&soonest);
        }
    }

    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= size(key, &entry.result);
        }
    }

    fn retain(&mut self, keep: impl Fn(&Key, &Entry) -> bool) {
        self.entries.retain(|key, entry| keep(key, entry));
        self.bytes = self.entries.iter().map(|(key, entry)| size(key, &entry.result)).sum();
    }
}

/// What an entry takes: cursors are the server's, and can be as long as it likes.
fn size(key: &Key, result: &PayloadBuf) -> usize {
    key.params.len() + result.as_str().len()
}

#[cfg(test)]
mod tests {
    use mcp_types::jsonrpc::Limits;

    use super::*;

    /// What is private is not given away before it is known who asks, and not asked about when its time is over.
    // covers: SEC-8, C-12
    #[test]
    fn sec_8_private_answers_are_for_those_who_are_known() {
        let now = Time::EPOCH;
        let mut cache = Cache::new(256);
        let params = serde_json::from_str("{}").unwrap();
        for (scope, is_private) in [("private", true), ("public", false)] {
            let asked = cache.asked(&Method::TOOLS_LIST, &params).unwrap();
            let text = format!(r#"{{"ttlMs":1000,"cacheScope":"{scope}","tools":[]}}"#);
            cache.keep(asked.clone(), &PayloadBuf::parse(&text, &Limits::default()).unwrap(), now);
            assert_eq!(matches!(cache.get(&asked, false, now), Found::Private), is_private);
            assert!(matches!(cache.get(&asked, true, now), Found::Answer(_)));
            assert!(matches!(cache.get(&asked, false, now + Duration::from_secs(1)), Found::Nothing));
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
            let asked = cache.asked(&Method::TOOLS_LIST, &params).unwrap();
            cache.keep(asked, &result, now);
        }
        let kept: usize = cache.entries.iter().map(|(key, entry)| size(key, &entry.result)).sum();
        assert_eq!(kept, cache.bytes);
        assert!((1_000_000..=MOST_BYTES).contains(&kept), "{kept}");
    }
}
