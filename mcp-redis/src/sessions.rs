//! The session store.

use std::sync::Arc;
use std::time::Duration;

use redis::Value;

use crate::connection::Failure;
use crate::record::{self, nonsense};
use crate::script::Script;
use crate::{Shared, milliseconds};
use mcp_session::{
    BoxFuture, RecordVersion, SaveOutcome, SessionId, SessionRecord, SessionStore, StoreError, VersionedRecord,
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

impl SessionStore for RedisSessionStore {
    fn load(&self, id: SessionId) -> BoxFuture<Result<Option<VersionedRecord>, StoreError>> {
        let shared = self.shared.clone();
        Box::pin(async move {
            let key = shared.keys.session(id);
            let get = |_: &_| redis::cmd("HMGET").arg(&key).arg("version").arg("record").to_owned();
            let Value::Array(fields) = shared.commands.repeat_one(get).await.map_err(StoreError::from)? else {
                return Err(nonsense("something that is no record"));
            };
            versioned(id, fields)
        })
    }

    fn save(
        &self,
        id: SessionId,
        record: SessionRecord,
        read: RecordVersion,
        time_to_live: Duration,
    ) -> BoxFuture<Result<SaveOutcome, StoreError>> {
        let shared = self.shared.clone();
        Box::pin(async move {
            let json = record::encode(id, record)?;
            let next = read.0.checked_add(1).ok_or_else(|| StoreError("there is no version after this".to_owned()))?;
            let key = shared.keys.session(id);
            let save = |scripts: &crate::script::Scripts| {
                let mut command = scripts.call(Script::Save, 1);
                command.arg(&key).arg(read.0).arg(next).arg(&json).arg(milliseconds(time_to_live));
                command
            };
            let Value::Array(mut answer) = shared.commands.one(save).await.map_err(StoreError::from)? else {
                return Err(nonsense("something that is no record"));
            };
            match answer.first() {
                Some(Value::Int(1)) => Ok(SaveOutcome::Saved(RecordVersion(next))),
                Some(Value::Int(0)) => {
                    let found = answer.split_off(1);
                    Ok(SaveOutcome::Conflict(versioned(id, found)?.map(Box::new)))
                }
                _ => Err(nonsense("something that is no record")),
            }
        })
    }

    fn touch(&self, id: SessionId, time_to_live: Duration) -> BoxFuture<Result<bool, StoreError>> {
        let shared = self.shared.clone();
        Box::pin(async move {
            let key = shared.keys.session(id);
            let touch = |_: &_| redis::cmd("PEXPIRE").arg(&key).arg(milliseconds(time_to_live)).to_owned();
            yes_or_no(shared.commands.repeat_one(touch).await)
        })
    }

    fn remove(&self, id: SessionId) -> BoxFuture<Result<bool, StoreError>> {
        let shared = self.shared.clone();
        Box::pin(async move {
            let key = shared.keys.session(id);
            // The second of two attempts would say that there was nothing.
            yes_or_no(shared.commands.one(|_| redis::cmd("DEL").arg(&key).to_owned()).await)
        })
    }
}

impl std::fmt::Debug for RedisSessionStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisSessionStore").finish_non_exhaustive()
    }
}

/// Reads the version and the record. A script's answer ends before the first that is missing.
fn versioned(id: SessionId, fields: Vec<Value>) -> Result<Option<VersionedRecord>, StoreError> {
    let mut fields = fields.into_iter();
    match (fields.next().unwrap_or(Value::Nil), fields.next().unwrap_or(Value::Nil)) {
        (Value::Nil, Value::Nil) => Ok(None),
        (Value::BulkString(version), Value::BulkString(json)) => {
            let number = std::str::from_utf8(&version).ok().and_then(|text| text.parse().ok());
            let version = number
                .filter(|number: &u64| *number > 0 && number.to_string().as_bytes() == version)
                .ok_or_else(|| nonsense("a version that is no number"))?;
            Ok(Some(VersionedRecord { record: record::decode(id, &json)?, version: RecordVersion(version) }))
        }
        _ => Err(nonsense("half a record")),
    }
}

fn yes_or_no(answer: Result<Value, Failure>) -> Result<bool, StoreError> {
    let Value::Int(number @ (0 | 1)) = answer? else {
        return Err(StoreError("Redis gives an answer that does not belong to the question".to_owned()));
    };
    Ok(number == 1)
}
