//! Records of any length in entries of a limited one.

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::Secret;
use crate::store::StoreError;

/// The size of an entry. Windows stores up to 2,560 bytes.
const ENTRY_BYTES: usize = 2_000;
/// Far above the size of a login. A head that claims more is damaged.
const MAX_PARTS: usize = 500;
/// How often a record is read that is replaced meanwhile.
const MAX_READS: usize = 20;

/// Named texts.
pub(super) trait Entries {
    fn get(&self, name: &str) -> Result<Option<Secret>, StoreError>;
    fn set(&self, name: &str, text: &str) -> Result<(), StoreError>;
    fn delete(&self, name: &str) -> Result<(), StoreError>;
}

/// Records in entries: one with the name of the key, and others if the record is too long for it.
pub(super) struct Records<E>(pub(super) E);

/// What the entry with the name of the key has instead of a long record: where its parts are.
///
/// Parts are written under names of their own before the head names them, so that the record changes as a whole. The names are
/// never used again: a reader that has an earlier head finds the parts of that record, or misses one.
#[derive(Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct Head {
    generation: u64,
    parts: usize,
}

impl<E: Entries> Records<E> {
    pub(super) fn load(&self, key: &str) -> Result<Option<Secret>, StoreError> {
        let mut incomplete = None;
        for _ in 0..MAX_READS {
            let Some(text) = self.0.get(key)? else { return Ok(None) };
            let Some(head) = head(&text) else { return Ok(Some(text)) };
            if incomplete.as_ref() == Some(&head) || head.parts > MAX_PARTS {
                let store = format!("the entry {key:?} of the keyring");
                return Err(StoreError::damaged(store, "a part is missing"));
            }
            if let Some(record) = self.load_parts(key, &head)? {
                return Ok(Some(record));
            }
            // Another process has replaced the record, unless it is the same the next time.
            incomplete = Some(head);
        }
        Err(StoreError::Locked { store: "the keyring".to_owned() })
    }

    /// Returns a long record, or `None` if a part is missing.
    fn load_parts(&self, key: &str, head: &Head) -> Result<Option<Secret>, StoreError> {
        let mut record = Zeroizing::new(String::with_capacity(head.parts * ENTRY_BYTES));
        for part in 0..head.parts {
            match self.0.get(&part_name(key, head.generation, part))? {
                Some(text) => record.push_str(text.expose()),
                None => return Ok(None),
            }
        }
        Ok(Some(Secret::new(record.as_str())))
    }

    /// Saves a record, while no other process does.
    pub(super) fn save(&self, key: &str, record: &Secret) -> Result<(), StoreError> {
        let earlier = self.0.get(key)?.as_ref().and_then(head);
        if record.expose().len() <= ENTRY_BYTES {
            self.0.set(key, record.expose())?;
        } else {
            self.save_parts(key, record)?;
        }
        // The record is saved, even if parts of the earlier one are left.
        if let Some(earlier) = earlier {
            let _ = self.remove_parts(key, &earlier);
        }
        Ok(())
    }

    /// Saves a long record. If that fails, the parts that were written are removed, as they contain secrets.
    fn save_parts(&self, key: &str, record: &Secret) -> Result<(), StoreError> {
        let generation = getrandom::u64().map_err(|error| StoreError::unavailable("the keyring", error))?;
        let parts = split(record.expose());
        let head = Head { generation, parts: parts.len() };
        let mut parts = parts.iter().enumerate();
        let saved = parts
            .try_for_each(|(index, part)| self.0.set(&part_name(key, generation, index), part))
            .and_then(|()| self.0.set(key, &serde_json::to_string(&head).expect("two numbers are valid JSON")));
        // A keyring can fail after it has set the entry, and then the parts are in use.
        if saved.is_err() && !self.may_have(key, &head) {
            let _ = self.remove_parts(key, &head);
        }
        saved
    }

    /// Removes a record, while no other process saves one.
    pub(super) fn remove(&self, key: &str) -> Result<(), StoreError> {
        let earlier = self.0.get(key)?.as_ref().and_then(head);
        self.0.delete(key)?;
        earlier.map_or(Ok(()), |earlier| self.remove_parts(key, &earlier))
    }

    /// Whether the record of a key has this head, as far as that can be found out.
    fn may_have(&self, key: &str, expected: &Head) -> bool {
        self.0.get(key).map_or(true, |text| text.as_ref().and_then(head).as_ref() == Some(expected))
    }

    /// Removes all parts that can be removed, and returns the first error.
    fn remove_parts(&self, key: &str, head: &Head) -> Result<(), StoreError> {
        let parts = 0..head.parts.min(MAX_PARTS);
        parts.map(|part| self.0.delete(&part_name(key, head.generation, part))).fold(Ok(()), Result::and)
    }
}

/// Reads a text as a head. A record is an object with other members.
fn head(text: &Secret) -> Option<Head> {
    serde_json::from_str(text.expose()).ok()
}

fn part_name(key: &str, generation: u64, part: usize) -> String {
    format!("{key} part {generation}.{part}")
}

/// Splits a text into parts that fit in an entry.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut end = rest.len().min(ENTRY_BYTES);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let (part, others) = rest.split_at(end);
        parts.push(part);
        rest = others;
    }
    parts
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeMap;

    use super::*;

    /// Entries as Windows has them, which fail after a number of writes.
    struct Limited {
        entries: RefCell<BTreeMap<String, String>>,
        writes_left: Cell<usize>,
        /// Whether entries can be deleted.
        can_delete: Cell<bool>,
        /// What another process does before one of the next reads.
        other: RefCell<Option<(usize, Other)>>,
    }

    type Other = Box<dyn FnMut(&Records<Limited>) -> bool>;

    impl Entries for Limited {
        fn get(&self, name: &str) -> Result<Option<Secret>, StoreError> {
            let other = self.other.take();
            match other {
                Some((0, mut other)) => {
                    let records = Records(Self {
                        entries: RefCell::new(self.entries.take()),
                        writes_left: Cell::new(usize::MAX),
                        can_delete: Cell::new(true),
                        other: RefCell::default(),
                    });
                    let goes_on = other(&records);
                    self.entries.replace(records.0.entries.take());
                    self.other.replace(goes_on.then_some((0, other)));
                }
                Some((reads, other)) => drop(self.other.replace(Some((reads - 1, other)))),
                None => {}
            }
            Ok(self.entries.borrow().get(name).map(|text| Secret::new(text.as_str())))
        }

        fn set(&self, name: &str, text: &str) -> Result<(), StoreError> {
            assert!(text.len() <= 2_560);
            let Some(left) = self.writes_left.get().checked_sub(1) else {
                return Err(StoreError::damaged("the test", "no more writes"));
            };
            self.writes_left.set(left);
            self.entries.borrow_mut().insert(name.to_owned(), text.to_owned());
            Ok(())
        }

        fn delete(&self, name: &str) -> Result<(), StoreError> {
            if !self.can_delete.get() {
                return Err(StoreError::damaged("the test", "no deletions"));
            }
            self.entries.borrow_mut().remove(name);
            Ok(())
        }
    }

    fn records() -> Records<Limited> {
        Records(Limited {
            entries: RefCell::default(),
            writes_left: Cell::new(usize::MAX),
            can_delete: Cell::new(true),
            other: RefCell::default(),
        })
    }

    fn record(text: &str) -> Secret {
        Secret::new(serde_json::json!({ "version": 1, "token": text }).to_string())
    }

    #[test]
    fn records_of_any_length_are_kept_and_replaced_without_a_rest() {
        let records = records();
        for length in [10, 10_000, 3_000, 2_000, 30_000, 5] {
            // With characters of two bytes, which must not be cut in half.
            let record = record(&"\u{fc}".repeat(length));
            records.save("key", &record).unwrap();
            assert_eq!(records.load("key").unwrap(), Some(record));
        }
        assert_eq!(records.0.entries.borrow().len(), 1, "no parts are left");
        records.save("key", &record(&"x".repeat(9_000))).unwrap();
        records.remove("key").unwrap();
        assert!(records.0.entries.borrow().is_empty());
        assert_eq!(records.load("key").unwrap(), None);
    }

    #[test]
    fn a_long_record_that_was_written_in_part_leaves_the_earlier_one() {
        for writes in 0..4 {
            let records = records();
            let earlier = record(&"a".repeat(7_000));
            records.save("key", &earlier).unwrap();
            let entries = records.0.entries.borrow().len();
            records.0.writes_left.set(writes);
            records.save("key", &record(&"b".repeat(7_000))).unwrap_err();
            assert_eq!(records.load("key").unwrap(), Some(earlier), "{writes}");
            assert_eq!(records.0.entries.borrow().len(), entries, "the parts that were written are removed");
        }
    }

    #[test]
    fn a_record_is_saved_even_if_the_parts_of_the_earlier_one_cannot_be_removed() {
        let records = records();
        records.save("key", &record(&"a".repeat(7_000))).unwrap();
        records.0.can_delete.set(false);
        for length in [7_000, 10] {
            let later = record(&"b".repeat(length));
            records.save("key", &later).unwrap();
            assert_eq!(records.load("key").unwrap(), Some(later));
        }
        records.remove("key").unwrap_err();
    }

    #[test]
    fn a_record_that_is_replaced_while_it_is_read_is_the_earlier_or_the_later_one() {
        let (short, long) = (10, 9_000);
        for lengths in [vec![long], vec![short], vec![short, long], vec![long, long]] {
            for before in 0..12 {
                let records = records();
                let earlier = record(&"a".repeat(long));
                records.save("key", &earlier).unwrap();
                let later: Vec<_> =
                    lengths.iter().zip(["b", "c"]).map(|(length, text)| record(&text.repeat(*length))).collect();
                let saved = later.clone();
                let save_all = move |records: &Records<Limited>| {
                    saved.iter().for_each(|record| records.save("key", record).unwrap());
                    false
                };
                records.0.other.replace(Some((before, Box::new(save_all))));
                let read = records.load("key").unwrap().expect("there is a record at all times");
                assert!(read == earlier || Some(&read) == later.last(), "{before}");
            }
        }
    }

    #[test]
    fn a_record_that_is_replaced_all_the_time_is_not_damaged() {
        let records = records();
        records.save("key", &record(&"a".repeat(9_000))).unwrap();
        let replace = |records: &Records<Limited>| {
            records.save("key", &record(&"b".repeat(9_000))).unwrap();
            true
        };
        records.0.other.replace(Some((1, Box::new(replace))));
        let error = records.load("key").unwrap_err();
        assert!(matches!(error, StoreError::Locked { .. }), "{error:?}");
    }

    #[test]
    fn a_missing_part_is_an_error_without_the_secret() {
        let records = records();
        records.save("key", &record(&"hunter2".repeat(1_000))).unwrap();
        let part = records.0.entries.borrow().keys().find(|name| name.ends_with(".1")).unwrap().clone();
        records.0.delete(&part).unwrap();
        let error = records.load("key").unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
}
