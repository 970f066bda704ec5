//! The format of the file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use crate::Secret;
use crate::store::StoreError;

/// The latest version of the format.
const VERSION: u64 = 1;

/// The content of the file: `{"version":1,"records":{KEY:RECORD}}`.
///
/// Records are kept as they are, so that one that cannot be read is not lost when another one is saved.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Document {
    version: u64,
    records: BTreeMap<String, Box<RawValue>>,
}

impl Document {
    pub(super) fn decode(content: Vec<u8>, name: impl Fn() -> String) -> Result<Self, StoreError> {
        /// Read first, as the rest of a newer version can be anything.
        #[derive(Deserialize)]
        struct Versioned {
            version: u64,
        }
        let content = Zeroizing::new(content);
        // Errors of the parser have a position, and can have a part of the text, too.
        let damaged = |error: serde_json::Error| {
            let (line, column) = (error.line(), error.column());
            StoreError::damaged(name(), format!("it is no valid JSON of this format at line {line}, column {column}"))
        };
        let Versioned { version } = serde_json::from_slice(&content).map_err(damaged)?;
        if version > VERSION {
            return Err(StoreError::Newer { store: name(), found: version, supported: VERSION });
        }
        serde_json::from_slice(&content).map_err(damaged)
    }

    pub(super) fn encode(&mut self) -> Secret {
        self.version = VERSION;
        Secret::new(serde_json::to_string(self).expect("texts and valid JSON are valid JSON"))
    }

    /// Checks that a record is a JSON object.
    pub(super) fn parse_record(record: &Secret) -> Result<Box<RawValue>, &'static str> {
        let value: Box<RawValue> = serde_json::from_str(record.expose()).map_err(|_| "it is no valid JSON")?;
        if value.get().starts_with('{') { Ok(value) } else { Err("it is no JSON object") }
    }

    pub(super) fn record(&self, key: &str) -> Option<Secret> {
        self.records.get(key).map(|record| Secret::new(record.get()))
    }

    pub(super) fn insert(&mut self, key: &str, record: Box<RawValue>) {
        self.records.insert(key.to_owned(), record);
    }

    pub(super) fn remove(&mut self, key: &str) {
        self.records.remove(key);
    }
}
