//! The session store.

use std::sync::Arc;
use std::time::Duration;

use redis::Value;

use crate::connection::Failure;
use crate::record::{self, invalid};
use crate::script::{Script, Scripts};
use crate::{Shared, milliseconds};
use mcp_session::{
    RecordVersion, SaveOutcome, SessionId, SessionRecord, SessionStore, StoreError, VersionedRecord, async_trait,
};

/// A [`SessionStore`] in Redis, so that all instances can resume sessions; created by
/// [`Redis::sessions`](crate::Redis::sessions).
///
/// Idempotent commands are retried once if the connection breaks. Saving and removing are not: after an error, use
/// [`load`](SessionStore::load) to find out whether they took effect.
#[derive(Clone)]
pub struct RedisSessionStore {
    pub(crate) shared: Arc<Shared>,
}

#[async_trait]
impl SessionStore for RedisSessionStore {
    async fn load(&self, id: SessionId) -> Result<Option<VersionedRecord>, StoreError> {
        let key = self.shared.keys.session(id);
        let get = |_: &Scripts| redis::cmd("HMGET").arg(&key).arg("version").arg("record").to_owned();
        versioned(id, array(self.shared.commands.execute_idempotent(get).await)?)
    }

    async fn save(
        &self,
        id: SessionId,
        record: SessionRecord,
        read: RecordVersion,
        time_to_live: Duration,
    ) -> Result<SaveOutcome, StoreError> {
        let json = record::encode(id, record)?;
        let next = read.0.checked_add(1).ok_or_else(|| StoreError("there is no version after this".to_owned()))?;
        let key = self.shared.keys.session(id);
        let save = |scripts: &Scripts| {
            let mut command = scripts.call(Script::Save, 1);
            command.arg(&key).arg(read.0).arg(next).arg(&json).arg(milliseconds(time_to_live));
            command
        };
        let mut response = array(self.shared.commands.execute(save).await)?;
        match response.first() {
            Some(Value::Int(1)) => Ok(SaveOutcome::Saved(RecordVersion(next))),
            Some(Value::Int(0)) => Ok(SaveOutcome::Conflict(versioned(id, response.split_off(1))?.map(Box::new))),
            _ => Err(invalid("a response that is not a record")),
        }
    }

    async fn touch(&self, id: SessionId, time_to_live: Duration) -> Result<bool, StoreError> {
        let key = self.shared.keys.session(id);
        let touch = |scripts: &Scripts| {
            let mut command = scripts.call(Script::Touch, 1);
            command.arg(&key).arg(milliseconds(time_to_live));
            command
        };
        boolean(self.shared.commands.execute_idempotent(touch).await)
    }

    async fn remove(&self, id: SessionId) -> Result<bool, StoreError> {
        let key = self.shared.keys.session(id);
        // Not repeated: a second attempt would return that there was no record.
        boolean(self.shared.commands.execute(|_| redis::cmd("DEL").arg(&key).to_owned()).await)
    }
}

impl std::fmt::Debug for RedisSessionStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisSessionStore").finish_non_exhaustive()
    }
}

/// Decodes the version and the record. The response of a script ends before the first missing field.
fn versioned(id: SessionId, fields: Vec<Value>) -> Result<Option<VersionedRecord>, StoreError> {
    let mut fields = fields.into_iter();
    match (fields.next().unwrap_or(Value::Nil), fields.next().unwrap_or(Value::Nil)) {
        (Value::Nil, Value::Nil) => Ok(None),
        (Value::BulkString(version), Value::BulkString(json)) => {
            let number = std::str::from_utf8(&version).ok().and_then(|text| text.parse().ok());
            let version = number
                .filter(|number: &u64| *number > 0 && number.to_string().as_bytes() == version)
                .ok_or_else(|| invalid("a version that is not a number"))?;
            Ok(Some(VersionedRecord { record: record::decode(id, &json)?, version: RecordVersion(version) }))
        }
        _ => Err(invalid("half a record")),
    }
}

fn array(response: Result<Value, Failure>) -> Result<Vec<Value>, StoreError> {
    if let Value::Array(fields) = response? { Ok(fields) } else { Err(invalid("a response that is not a record")) }
}

fn boolean(response: Result<Value, Failure>) -> Result<bool, StoreError> {
    let Value::Int(number @ (0 | 1)) = response? else { return Err(invalid("a response that is not a boolean")) };
    Ok(number == 1)
}
