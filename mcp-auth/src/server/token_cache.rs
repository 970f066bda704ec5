//! Tokens that were seen before.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

use super::token_digest::TokenDigest;
use crate::UnixTime;

/// What is known of tokens, by their digest, with a limit for their number and for the memory that they take.
///
/// When it is full, tokens that were not used lately are forgotten first, which costs their next request a verification.
pub(crate) struct TokenCache<V> {
    entries: RwLock<Entries<V>>,
    max_tokens: usize,
}

struct Entries<V> {
    by_digest: HashMap<TokenDigest, Entry<V>, BuildHasherDefault<DigestHasher>>,
    /// In the order in which they were added or last spared.
    order: VecDeque<TokenDigest>,
    bytes: usize,
}

struct Entry<V> {
    value: V,
    until: UnixTime,
    bytes: usize,
    /// Whether it was used since it was added or last spared.
    is_used: AtomicBool,
}

/// The maximum estimated memory of all tokens, in bytes.
const MAX_BYTES: usize = 32 * 1024 * 1024;

impl<V> TokenCache<V> {
    pub(crate) fn new(max_tokens: usize) -> Self {
        let entries = Entries { by_digest: HashMap::default(), order: VecDeque::new(), bytes: 0 };
        Self { entries: RwLock::new(entries), max_tokens }
    }

    /// Reads what is known of a token, under the lock.
    pub(crate) fn read<R>(&self, token: &TokenDigest, now: UnixTime, read: impl FnOnce(&V) -> R) -> Option<R> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.by_digest.get(token).filter(|entry| now < entry.until)?;
        // Writing only once keeps the line of memory shared between processors.
        if !entry.is_used.load(Ordering::Relaxed) {
            entry.is_used.store(true, Ordering::Relaxed);
        }
        Some(read(&entry.value))
    }

    pub(crate) fn contains(&self, token: &TokenDigest, now: UnixTime) -> bool {
        self.read(token, now, |_| ()).is_some()
    }

    /// Remembers a token until a time.
    pub(crate) fn insert(&self, token: TokenDigest, length: usize, value: V, until: UnixTime, now: UnixTime) {
        if self.max_tokens == 0 || until <= now {
            return;
        }
        // The claims take a multiple of their text.
        let bytes = 512 + 8 * length;
        let mut dropped = Vec::new();
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.by_digest.get_mut(&token) {
            dropped.push(std::mem::replace(&mut entry.value, value));
            entry.until = until;
            return;
        }
        while entries.by_digest.len() >= self.max_tokens || entries.bytes.saturating_add(bytes) > MAX_BYTES {
            let Some(evicted) = entries.evict(now) else { return };
            dropped.push(evicted.value);
        }
        entries.bytes += bytes;
        entries.order.push_back(token);
        entries.by_digest.insert(token, Entry { value, until, bytes, is_used: AtomicBool::new(false) });
        // Large claims are dropped without the lock.
        drop(entries);
        drop(dropped);
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.entries.read().unwrap().by_digest.len()
    }
}

impl<V> Entries<V> {
    /// Removes the next token that has expired or was not used since it was looked at last.
    fn evict(&mut self, now: UnixTime) -> Option<Entry<V>> {
        // Each token is spared at most once, so this ends.
        loop {
            let digest = self.order.pop_front()?;
            let Some(entry) = self.by_digest.get_mut(&digest) else { continue };
            if now < entry.until && std::mem::take(entry.is_used.get_mut()) {
                self.order.push_back(digest);
                continue;
            }
            let entry = self.by_digest.remove(&digest)?;
            self.bytes = self.bytes.saturating_sub(entry.bytes);
            return Some(entry);
        }
    }
}

/// Takes a part of a digest as the hash, which clients can neither know nor choose.
#[derive(Default)]
struct DigestHasher(u64);

impl Hasher for DigestHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Digests are hashed as a number.
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, part: u64) {
        self.0 = part;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixTime = UnixTime::from_secs(1000);
    const LATER: UnixTime = UnixTime::from_secs(2000);

    fn digest_of(token: &[u8]) -> TokenDigest {
        TokenDigest::of(token).expect("a key")
    }

    fn add(cache: &TokenCache<String>, token: &str, until: UnixTime) {
        cache.insert(digest_of(token.as_bytes()), token.len(), token.to_owned(), until, NOW);
    }

    fn find(cache: &TokenCache<String>, token: &str, now: UnixTime) -> Option<String> {
        cache.read(&digest_of(token.as_bytes()), now, String::clone)
    }

    #[test]
    fn tokens_are_remembered_until_they_expire() {
        let cache = TokenCache::new(10);
        add(&cache, "a", LATER);
        add(&cache, "expired", NOW);
        assert_eq!(find(&cache, "a", NOW).as_deref(), Some("a"));
        assert_eq!(find(&cache, "b", NOW), None);
        assert_eq!(find(&cache, "expired", NOW), None);
        assert_eq!(find(&cache, "a", LATER), None);
    }

    #[test]
    fn the_number_is_limited_and_tokens_in_use_stay() {
        let cache = TokenCache::new(3);
        for token in ["a", "b", "c"] {
            add(&cache, token, LATER);
        }
        assert!(find(&cache, "a", NOW).is_some());
        for index in 0..100 {
            add(&cache, &index.to_string(), LATER);
            assert!(find(&cache, "a", NOW).is_some(), "it is in use");
            assert!(cache.len() <= 3);
        }
        assert!(find(&cache, "b", NOW).is_none());
    }

    #[test]
    fn the_memory_is_limited() {
        let cache = TokenCache::new(usize::MAX);
        for index in 0_u32..4000 {
            cache.insert(digest_of(&index.to_ne_bytes()), 8192, (), LATER, NOW);
        }
        assert_eq!(cache.len(), MAX_BYTES / (512 + 8 * 8192));
    }
}
