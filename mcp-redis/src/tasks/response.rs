//! The responses of the scripts.

use std::sync::Arc;

use bytes::Bytes;
use mcp_tasks::{StoredTask, TaskId, TaskLimit, TaskLimits, TaskOwner, TaskStoreError, VersionedTask};
use redis::Value;

use crate::connection::Failure;
use crate::record::invalid;

fn failed(failure: Failure) -> TaskStoreError {
    TaskStoreError::Failed(mcp_session::StoreError::from(failure).0)
}

pub(crate) fn nonsense(what: impl std::fmt::Display) -> TaskStoreError {
    TaskStoreError::Invalid(invalid(what).0)
}

pub(crate) fn array(response: Result<Value, Failure>) -> Result<Vec<Value>, TaskStoreError> {
    let Value::Array(parts) = response.map_err(failed)? else {
        return Err(nonsense("a response that is not an array"));
    };
    Ok(parts)
}

pub(crate) fn boolean(response: Result<Value, Failure>) -> Result<bool, TaskStoreError> {
    is_one(&response.map_err(failed)?).ok_or_else(|| nonsense("a response that is not a boolean"))
}

fn is_one(value: &Value) -> Option<bool> {
    if let Value::Int(number @ (0 | 1)) = value { Some(*number == 1) } else { None }
}

/// Decodes a task; `None` for an empty response.
pub(crate) fn task(parts: Vec<Value>) -> Result<Option<(TaskId, VersionedTask)>, TaskStoreError> {
    if parts.is_empty() {
        return Ok(None);
    }
    let parts = <[Value; 8]>::try_from(parts).map_err(|_| nonsense("a task that is not complete"))?;
    let [id, version, run, owner, tool, expires, is_finished, content] = parts;
    let id = text(&id)?.parse().map_err(|_| nonsense("a task with an invalid id"))?;
    let is_finished = is_one(&is_finished).ok_or_else(|| nonsense("a task with an invalid status"))?;
    let Value::BulkString(content) = content else { return Err(nonsense("a task without a content")) };
    let task = StoredTask {
        owner: decode_owner(text(&owner)?)?,
        tool: Arc::from(text(&tool)?),
        expires: number(&expires)?,
        is_finished,
        content: Bytes::from(content),
    };
    Ok(Some((id, VersionedTask { task, version: number(&version)?, run: number(&run)? })))
}

/// Decodes the error of a limit.
pub(crate) fn full(limits: &TaskLimits, name: Option<&Value>) -> TaskStoreError {
    let limit = match name.and_then(|name| text(name).ok()) {
        Some("UnfinishedPerOwner") => TaskLimit::UnfinishedPerOwner,
        Some("UnfinishedPerTool") => TaskLimit::UnfinishedPerTool,
        Some("Unfinished") => TaskLimit::Unfinished,
        Some("KeptPerOwner") => TaskLimit::KeptPerOwner,
        Some("Kept") => TaskLimit::Kept,
        Some("Bytes") => TaskLimit::Bytes,
        Some("BytesPerOwner") => TaskLimit::BytesPerOwner,
        _ => return nonsense("an unknown limit"),
    };
    TaskStoreError::Full { limit, max: limits.max(limit) }
}

pub(crate) fn text(value: &Value) -> Result<&str, TaskStoreError> {
    let Value::BulkString(text) = value else { return Err(nonsense("a value that is not a text")) };
    std::str::from_utf8(text).map_err(|_| nonsense("a text that is not UTF-8"))
}

pub(crate) fn number(value: &Value) -> Result<u64, TaskStoreError> {
    text(value)?.parse().map_err(|_| nonsense("a number that is none"))
}

pub(crate) fn encode_owner(owner: Option<TaskOwner>) -> String {
    owner.map_or_else(String::new, |owner| crate::keys::hex(&owner.0))
}

fn decode_owner(text: &str) -> Result<Option<TaskOwner>, TaskStoreError> {
    if text.is_empty() {
        return Ok(None);
    }
    let digits = text.as_bytes();
    let mut owner = [0; 32];
    if digits.len() != 2 * owner.len() {
        return Err(nonsense("an invalid owner"));
    }
    for (byte, pair) in owner.iter_mut().zip(digits.chunks_exact(2)) {
        let pair = std::str::from_utf8(pair).ok();
        *byte = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()).ok_or_else(|| nonsense("an invalid owner"))?;
    }
    Ok(Some(TaskOwner(owner)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    #[test]
    fn tasks_are_decoded() {
        let (id, owner) = (TaskId::random().unwrap(), TaskOwner([0xab; 32]));
        let encoded = encode_owner(Some(owner));
        let response = |owner: &str, version: &str, finished: Value| {
            let id = bulk(&id.to_string());
            vec![id, bulk(version), bulk("2"), bulk(owner), bulk("tool ü"), bulk("99"), finished, bulk("content")]
        };
        let stored = StoredTask {
            owner: Some(owner),
            tool: "tool ü".into(),
            expires: 99,
            is_finished: true,
            content: "content".into(),
        };
        let expected = VersionedTask { task: stored.clone(), version: 7, run: 2 };
        assert_eq!(task(response(&encoded, "7", Value::Int(1))), Ok(Some((id, expected))));
        let expected =
            VersionedTask { task: StoredTask { owner: None, is_finished: false, ..stored }, version: 7, run: 2 };
        assert_eq!(task(response("", "7", Value::Int(0))), Ok(Some((id, expected))));
        assert_eq!(task(Vec::new()), Ok(None));
        for nonsense in [
            response("ab", "7", Value::Int(1)),
            response(&encoded.replace('a', "x"), "7", Value::Int(1)),
            response("", "x", Value::Int(1)),
            response("", "7", Value::Int(2)),
            response("", "7", bulk("1")),
            response("", "7", Value::Int(1)).split_off(1),
            vec![Value::Nil],
        ] {
            assert!(matches!(task(nonsense.clone()), Err(TaskStoreError::Invalid(_))), "{nonsense:?}");
        }
    }
}
