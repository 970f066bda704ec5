//! A store whose records tests can look at, as a thief could.

use std::sync::{Arc, Mutex, PoisonError};

use mcp_auth::Secret;
use mcp_auth::authorizer::async_trait;
use mcp_auth::store::{MemoryStore, StoreError, StoreKey, StoreLock, TokenStore};
use serde_json::Value;

/// A store in memory. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct WatchedStore {
    store: MemoryStore,
    /// The records, in the order in which they were saved.
    saved: Arc<Mutex<Vec<Value>>>,
}

impl WatchedStore {
    /// All values that a member of the records had, such as `refresh_token`.
    pub(crate) fn values(&self, member: &str) -> Vec<String> {
        let saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        let mut values = Vec::new();
        saved.iter().for_each(|record| collect(record, member, &mut values));
        values.dedup();
        values
    }
}

fn collect(value: &Value, member: &str, values: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            values.extend(members.get(member).and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|value| collect(value, member, values));
        }
        Value::Array(items) => items.iter().for_each(|value| collect(value, member, values)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[async_trait]
impl TokenStore for WatchedStore {
    async fn load(&self, key: &StoreKey) -> Result<Option<Secret>, StoreError> {
        self.store.load(key).await
    }

    async fn save(&self, key: &StoreKey, record: &Secret) -> Result<(), StoreError> {
        let value = serde_json::from_str(record.expose()).expect("records are JSON");
        self.saved.lock().unwrap_or_else(PoisonError::into_inner).push(value);
        self.store.save(key, record).await
    }

    async fn remove(&self, key: &StoreKey) -> Result<(), StoreError> {
        self.store.remove(key).await
    }

    async fn lock(&self, key: &StoreKey) -> Result<StoreLock, StoreError> {
        self.store.lock(key).await
    }
}
