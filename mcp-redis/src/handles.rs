//! The store of handles.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, Value};

use mcp_server::handles::{
    HandleKey, HandleOwner, HandleRecord, HandleStore, HandleStoreError, ReplaceOutcome, VersionedHandle, async_trait,
};
use mcp_session::StoreError;

use crate::connection::Failure;
use crate::keys::hex;
use crate::script::{Script, Scripts};
use crate::{Shared, milliseconds};

/// A [`HandleStore`] in Redis, so that all instances know the values of handles; created by
/// [`Redis::handles`](crate::Redis::handles).
///
/// Redis gets digests of handles and of principals, and the values as they are.
#[derive(Clone)]
pub struct RedisHandleStore {
    pub(crate) shared: Arc<Shared>,
}

impl RedisHandleStore {
    /// A call of a script that writes a record, with the arguments that these have.
    fn write(&self, scripts: &Scripts, call: &Write<'_>) -> Cmd {
        let Write { script, now, name, record, indexes } = call;
        let keys = &self.shared.keys;
        let mut command = scripts.call(*script, 1 + indexes.len());
        command.arg(keys.handle(name)).arg(*indexes);
        let time_to_live = Duration::from_secs(record.expires.saturating_sub(*now));
        command.arg(*now).arg(record.expires).arg(name).arg(milliseconds(time_to_live));
        command
    }
}

struct Write<'a> {
    script: Script,
    now: u64,
    name: &'a str,
    record: &'a HandleRecord,
    indexes: &'a [String],
}

#[async_trait]
impl HandleStore for RedisHandleStore {
    async fn insert(&self, now: u64, key: HandleKey, record: HandleRecord) -> Result<(), HandleStoreError> {
        let Shared { keys, options, .. } = &*self.shared;
        let (name, owner) = (hex(&key.0), record.owner.map(|owner| hex(&owner.0)));
        let mut indexes = vec![keys.handles()];
        indexes.extend(owner.as_ref().map(|owner| keys.handles_of(owner)));
        let insert = |scripts: &Scripts| {
            let call = Write { script: Script::InsertHandle, now, name: &name, record: &record, indexes: &indexes };
            let mut command = self.write(scripts, &call);
            command.arg(owner.as_deref().unwrap_or_default()).arg(&record.content);
            command.arg(options.max_handles).arg(options.max_handles_per_principal);
            command
        };
        let full = |setting, limit| HandleStoreError::Full(format!("`RedisOptions::{setting}` is {limit}"));
        let Value::Int(exceeded) = self.shared.commands.execute(insert).await.map_err(failed)? else {
            return Err(invalid("a response that is not a number"));
        };
        match exceeded {
            0 => Ok(()),
            1 => Err(full("max_handles", options.max_handles)),
            _ => Err(full("max_handles_per_principal", options.max_handles_per_principal)),
        }
    }

    async fn load(&self, now: u64, key: HandleKey) -> Result<Option<VersionedHandle>, HandleStoreError> {
        let key = self.shared.keys.handle(&hex(&key.0));
        let get = |_: &Scripts| redis::cmd("HMGET").arg(&key).arg(&FIELDS).to_owned();
        versioned(now, array(self.shared.commands.execute_idempotent(get).await)?)
    }

    async fn replace(
        &self,
        now: u64,
        key: HandleKey,
        record: HandleRecord,
        read: u64,
    ) -> Result<ReplaceOutcome, HandleStoreError> {
        let (name, keys) = (hex(&key.0), &self.shared.keys);
        let indexes = [keys.handles()];
        let replace = |scripts: &Scripts| {
            let call = Write { script: Script::ReplaceHandle, now, name: &name, record: &record, indexes: &indexes };
            let mut command = self.write(scripts, &call);
            command.arg(keys.handles_of("")).arg(&record.content).arg(read);
            command
        };
        let response = array(self.shared.commands.execute(replace).await)?;
        if let [Value::Int(version)] = response.as_slice() {
            let version = u64::try_from(*version).map_err(|_| invalid("a version that is not a number"))?;
            return Ok(ReplaceOutcome::Replaced(version));
        }
        Ok(ReplaceOutcome::Conflict(versioned(now, response)?))
    }

    async fn take(&self, now: u64, key: HandleKey) -> Result<Option<HandleRecord>, HandleStoreError> {
        let (name, keys) = (hex(&key.0), &self.shared.keys);
        // Not repeated: a second attempt would return that there was no record.
        let take = |scripts: &Scripts| {
            let mut command = scripts.call(Script::TakeHandle, 2);
            command.arg(keys.handle(&name)).arg(keys.handles()).arg(&name).arg(keys.handles_of(""));
            command
        };
        let taken = versioned(now, array(self.shared.commands.execute(take).await)?)?;
        Ok(taken.map(|taken| taken.record))
    }

    async fn list(&self, now: u64, owner: HandleOwner) -> Result<Vec<(HandleKey, VersionedHandle)>, HandleStoreError> {
        let keys = &self.shared.keys;
        let list = |scripts: &Scripts| {
            let mut command = scripts.call(Script::ListHandles, 1);
            command.arg(keys.handles_of(&hex(&owner.0))).arg(now).arg(keys.handle(""));
            command
        };
        let mut found = Vec::new();
        for record in array(self.shared.commands.execute_idempotent(list).await)? {
            let Value::Array(mut fields) = record else { return Err(invalid("a response that is not a record")) };
            let record = fields.split_off(fields.len().min(1));
            let Some(Value::BulkString(name)) = fields.pop() else { return Err(invalid("a record without a name")) };
            let key = HandleKey(digest(&name).ok_or_else(|| invalid("a name that is not a digest"))?);
            found.extend(versioned(now, record)?.map(|record| (key, record)));
        }
        Ok(found)
    }
}

impl fmt::Debug for RedisHandleStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisHandleStore").finish_non_exhaustive()
    }
}

const FIELDS: [&str; 4] = ["version", "owner", "content", "expires"];

/// Decodes a record; `None` if there is none, or if it has expired.
fn versioned(now: u64, fields: Vec<Value>) -> Result<Option<VersionedHandle>, HandleStoreError> {
    if fields.iter().all(|field| *field == Value::Nil) {
        return Ok(None);
    }
    let Ok(
        [Value::BulkString(version), Value::BulkString(owner), Value::BulkString(content), Value::BulkString(expires)],
    ) = <[Value; 4]>::try_from(fields)
    else {
        return Err(invalid("half a record"));
    };
    let number = |text: &[u8]| str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    let version = number(&version).ok_or_else(|| invalid("a version that is not a number"))?;
    let expires = number(&expires).ok_or_else(|| invalid("an expiry that is not a number"))?;
    let owner = match owner.as_slice() {
        [] => None,
        owner => Some(HandleOwner(digest(owner).ok_or_else(|| invalid("an owner that is not a digest"))?)),
    };
    Ok(Some(VersionedHandle { record: HandleRecord { owner, content, expires }, version }).filter(|_| expires > now))
}

/// Reads a digest in hexadecimal digits.
fn digest(text: &[u8]) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    if text.len() != 2 * digest.len() {
        return None;
    }
    for (byte, digits) in digest.iter_mut().zip(text.chunks(2)) {
        *byte = u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(digest)
}

fn array(response: Result<Value, Failure>) -> Result<Vec<Value>, HandleStoreError> {
    let Value::Array(fields) = response.map_err(failed)? else {
        return Err(invalid("a response that is not a record"));
    };
    Ok(fields)
}

fn failed(failure: Failure) -> HandleStoreError {
    HandleStoreError::Failed(StoreError::from(failure).0)
}

fn invalid(what: &str) -> HandleStoreError {
    HandleStoreError::Failed(crate::record::invalid(what).0)
}
