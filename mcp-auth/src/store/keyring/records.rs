//! Records of any length in entries of a limited one.

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::Secret;
use crate::store::StoreError;

/// The size of an entry. Windows stores up to 2,560 bytes.
const ENTRY_BYTES: usize = 2_000;
/// Far above the size of a login. A head that claims more is damaged.
const MAX_PARTS: usize = 500;

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
/// Parts are written under names of their own before the head names them, so that the record changes as a whole.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    generation: u64,
    parts: usize,
}

impl<E: Entries> Records<E> {
    pub(super) fn load(&self, key: &str) -> Result<Option<Secret>, StoreError> {
        let Some(text) = self.0.get(key)? else { return Ok(None) };
        let Some(head) = head(&text) else { return Ok(Some(text)) };
        let damaged = || StoreError::damaged(format!("the entry {key:?} of the keyring"), "a part is missing");
        if head.parts > MAX_PARTS {
            return Err(damaged());
        }
        let mut record = Zeroizing::new(String::with_capacity(head.parts * ENTRY_BYTES));
        for part in 0..head.parts {
            record.push_str(self.0.get(&part_name(key, head.generation, part))?.ok_or_else(damaged)?.expose());
        }
        Ok(Some(Secret::new(record.as_str())))
    }

    pub(super) fn save(&self, key: &str, record: &Secret) -> Result<(), StoreError> {
        let earlier = self.0.get(key)?.as_ref().and_then(head);
        if record.expose().len() <= ENTRY_BYTES {
            self.0.set(key, record.expose())?;
        } else {
            let generation = earlier.as_ref().map_or(0, |head| head.generation.wrapping_add(1));
            let parts = split(record.expose());
            for (index, part) in parts.iter().enumerate() {
                self.0.set(&part_name(key, generation, index), part)?;
            }
            let head = Head { generation, parts: parts.len() };
            self.0.set(key, &serde_json::to_string(&head).expect("two numbers are valid JSON"))?;
        }
        self.remove_parts(key, earlier)
    }

    pub(super) fn remove(&self, key: &str) -> Result<(), StoreError> {
        let earlier = self.0.get(key)?.as_ref().and_then(head);
        self.0.delete(key)?;
        self.remove_parts(key, earlier)
    }

    fn remove_parts(&self, key: &str, head: Option<Head>) -> Result<(), StoreError> {
        let Some(head) = head else { return Ok(()) };
        (0..head.parts.min(MAX_PARTS)).try_for_each(|part| self.0.delete(&part_name(key, head.generation, part)))
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
    }

    impl Entries for Limited {
        fn get(&self, name: &str) -> Result<Option<Secret>, StoreError> {
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
            self.entries.borrow_mut().remove(name);
            Ok(())
        }
    }

    fn records() -> Records<Limited> {
        Records(Limited { entries: RefCell::default(), writes_left: Cell::new(usize::MAX) })
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
            records.0.writes_left.set(writes);
            records.save("key", &record(&"b".repeat(7_000))).unwrap_err();
            assert_eq!(records.load("key").unwrap(), Some(earlier), "{writes}");
        }
    }

    #[test]
    fn a_missing_part_is_an_error_without_the_secret() {
        let records = records();
        records.save("key", &record(&"hunter2".repeat(1_000))).unwrap();
        records.0.delete("key part 0.1").unwrap();
        let error = records.load("key").unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
}
