//! The JSON format of session records.

use std::str::FromStr;

use mcp_kernel::server::Principal;
use mcp_types::{LoggingLevel, RawObject, Revision};
use serde::{Deserialize, Serialize};

use crate::keys;
use mcp_session::{SessionId, SessionRecord, StoreError};

/// The only format that this version of the crate reads and writes.
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    format: u32,
    /// The hash of the session's id, to notice a record under the wrong key.
    session: String,
    initialize: RawObject,
    revision: String,
    ready: bool,
    log_level: LoggingLevel,
    subscriptions: Vec<String>,
    #[serde(deserialize_with = "Option::deserialize")]
    principal: Option<StoredPrincipal>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredPrincipal {
    #[serde(deserialize_with = "Option::deserialize")]
    issuer: Option<String>,
    subject: String,
}

#[derive(Deserialize)]
struct Format {
    format: u32,
}

pub(crate) fn encode(id: SessionId, record: SessionRecord) -> Result<String, StoreError> {
    let stored = Stored {
        format: FORMAT,
        session: keys::hash(id),
        initialize: record.initialize,
        revision: record.revision.as_str().to_owned(),
        ready: record.is_ready,
        log_level: record.log_level,
        subscriptions: record.subscriptions,
        principal: record.principal.map(|principal| StoredPrincipal {
            issuer: principal.issuer.as_deref().map(str::to_owned),
            subject: principal.subject.as_ref().to_owned(),
        }),
    };
    serde_json::to_string(&stored).map_err(|error| StoreError(format!("the record cannot be written: {error}")))
}

pub(crate) fn decode(id: SessionId, json: &[u8]) -> Result<SessionRecord, StoreError> {
    let text = str::from_utf8(json).map_err(|_| invalid("a record that is not UTF-8"))?;
    let stored: Stored = RawObject::parse(text).and_then(|text| text.decode()).map_err(|error| {
        // A record of another format has its own error.
        match serde_json::from_slice::<Format>(json) {
            Ok(Format { format }) if format != FORMAT => other_format(format),
            _ => invalid(format_args!("a record that cannot be decoded: {error}")),
        }
    })?;
    if stored.format != FORMAT {
        return Err(other_format(stored.format));
    }
    if stored.session != keys::hash(id) {
        return Err(invalid("the record of another session"));
    }
    let revision = Revision::from_str(&stored.revision)
        .map_err(|_| invalid(format_args!("a record of the unknown revision {:?}", stored.revision)))?;
    let principal = stored.principal.map(|principal| Principal::new(principal.issuer.as_deref(), &principal.subject));
    let mut record = SessionRecord::new(stored.initialize, revision, principal);
    record.is_ready = stored.ready;
    record.log_level = stored.log_level;
    record.subscriptions = stored.subscriptions;
    Ok(record)
}

fn other_format(format: u32) -> StoreError {
    invalid(format_args!("a record of format {format}, and this version reads format {FORMAT}"))
}

/// Returns the error of data that this crate did not write, or that was changed. `what` may repeat the data, so it is cut to
/// one short line.
pub(crate) fn invalid(what: impl std::fmt::Display) -> StoreError {
    let text = what.to_string();
    let shown: String =
        text.chars().take(MAX_SHOWN_CHARS).map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    let rest = if shown.len() < text.len() { "..." } else { "" };
    StoreError(format!("Redis holds {shown}{rest}"))
}

/// How many characters of a description are shown.
const MAX_SHOWN_CHARS: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> SessionRecord {
        let initialize = RawObject::parse(r#"{"capabilities":{ "x":1e400 },"clientInfo":{"name":"ü\u0000"}}"#).unwrap();
        let principal = Principal::new(Some("https://issuer.example"), "alice");
        let mut record = SessionRecord::new(initialize, Revision::V2025_11_25, Some(principal));
        record.is_ready = true;
        record.log_level = LoggingLevel::Alert;
        record.subscriptions = vec!["file:///a".to_owned(), String::new()];
        record
    }

    #[test]
    fn records_survive() {
        let id = SessionId::random().unwrap();
        for record in [record(), SessionRecord::new(RawObject::empty(), Revision::V2024_11_05, None)] {
            let json = encode(id, record.clone()).unwrap();
            assert_eq!(decode(id, json.as_bytes()).unwrap(), record);
            assert!(!json.contains(&id.to_string()), "an operator who reads it cannot take the session over");
        }
    }

    #[test]
    fn all_else_is_refused() {
        let id = SessionId::random().unwrap();
        let json = encode(id, record()).unwrap();
        let refused = |json: &str| decode(id, json.as_bytes()).unwrap_err().0;
        for end in (0..json.len()).filter(|end| json.is_char_boundary(*end)) {
            refused(&json[..end]);
        }
        for (from, to) in [
            ("\"format\":1", "\"format\":1,\"more\":1"),
            ("\"format\":1,", ""),
            ("\"ready\":true", "\"ready\":1"),
            ("\"ready\":true,", "\"ready\":true,\"ready\":true,"),
            ("\"alert\"", "\"loud\""),
            ("2025-11-25", "2025-11-26"),
            ("\"issuer\":\"https://issuer.example\",", ""),
            ("\"initialize\":{", "\"initialize\":[{"),
        ] {
            assert!(json.contains(from), "{from}");
            refused(&json.replace(from, to));
        }
        let newer = json.replace("\"format\":1", "\"format\":2,\"more\":1");
        assert!(refused(&newer).contains("format 2"), "{}", refused(&newer));
        assert!(decode(id, b"\xff").is_err());
        let other = SessionId::random().unwrap();
        assert!(decode(other, json.as_bytes()).unwrap_err().0.contains("another session"));
    }

    /// Errors repeat data of the store, and end up in logs: they are cut to one short line.
    #[test]
    fn errors_are_short_and_on_one_line() {
        let id = SessionId::random().unwrap();
        let json = encode(id, record()).unwrap();
        let long = format!("a\\n\\u0000{}", "x".repeat(10_000));
        for stored in [
            json.replace("\"format\":1", &format!("\"{long}\":1")),
            json.replace("2025-11-25", &long),
            json.replace("\"alert\"", &format!("\"{long}\"")),
        ] {
            let error = decode(id, stored.as_bytes()).unwrap_err().0;
            assert!(error.chars().count() < 400 && !error.contains(char::is_control), "{error:?}");
        }
    }
}
