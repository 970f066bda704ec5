//! Any bytes as the record of a session that a store holds.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Method as Verb, Request};
use mcp_redis::internals::{decode_record, encode_record};
use mcp_server::{NoArguments, Server, text_resource, tool};
use mcp_session::{
    RecordVersion, SaveOutcome, SessionId, SessionRecord, SessionStore, StoreError, VersionedRecord, async_trait,
};
use mcp_transport_http::{HttpOptions, HttpService, SessionMode};
use mcp_types::{RawObject, Revision};

use super::client::runtime;
use super::server_http::{BodyOf, exchange};

/// A record is refused with a short text, or read; what was read is written and read again as the same. A server goes on
/// with a session of which it finds a record, or refuses; what it saves then can be read.
///
/// A `$` stands for the hash of the session's id.
///
/// # Panics
///
/// Panics if one of these promises does not hold.
pub fn session_record(data: &[u8]) {
    let id = SessionId::parse(ID).expect("the id of a session");
    let stored = with_hash(id, data);
    let record = match decode_record(id, &stored) {
        Ok(record) => record,
        Err(StoreError(fault)) => {
            assert!(!fault.is_empty() && fault.chars().count() < 400, "a fault is short: {fault}");
            assert!(!fault.contains(char::is_control), "a fault carries no control characters: {fault:?}");
            return;
        }
    };
    let written = encode_record(id, record.clone()).expect("what was read can be written");
    assert_eq!(decode_record(id, written.as_bytes()).as_ref(), Ok(&record), "a record stays what it is");
    let other = SessionId::parse(ID.replace('1', "2")).expect("the id of another session");
    assert!(decode_record(other, &stored).is_err(), "a record is of one session");
    resume(id, record);
}

const ID: &str = "1111111111111111111111111111111111111111111111111111111111111111";

/// Puts the hash of a session's id where the input has a `$`: nobody else could make up one.
fn with_hash(id: SessionId, data: &[u8]) -> Vec<u8> {
    let empty = SessionRecord::new(RawObject::empty(), Revision::V2025_11_25, None);
    let known = encode_record(id, empty).expect("a record");
    let hash = known.split("\"session\":\"").nth(1).and_then(|rest| rest.split('"').next()).expect("the hash");
    let mut stored = Vec::new();
    for (index, part) in data.split(|byte| *byte == b'$').enumerate() {
        stored.extend_from_slice(if index > 0 { hash.as_bytes() } else { b"" });
        stored.extend_from_slice(part);
    }
    stored
}

/// A server finds the record, and a client goes on with the session.
fn resume(id: SessionId, record: SessionRecord) {
    let owner = record.principal.clone();
    let revision = record.revision;
    let store = Arc::new(OneRecord(Mutex::new((record, RecordVersion(1)))));
    let runtime = runtime();
    runtime.block_on(async {
        let server = Server::builder("server", "1.0")
            .tool(tool("echo", async |_, _: NoArguments| "hello"))
            .resource(text_resource("a:b", "resource", "text"))
            .resource_subscriptions()
            .build()
            .expect("a server");
        let options = HttpOptions::default()
            .sessions(SessionMode::Stateful)
            .session_store(Arc::clone(&store) as Arc<dyn SessionStore>, Duration::from_secs(60));
        let mut service = HttpService::with_options(server, options);
        for message in MESSAGES {
            let mut request = Request::builder()
                .method(Verb::POST)
                .uri("/mcp")
                .header("host", "localhost")
                .header("content-type", "application/json")
                .header("accept", "application/json, text/event-stream")
                .header("mcp-protocol-version", revision.as_str())
                .header("mcp-session-id", ID)
                .body(BodyOf(Some(message.into())))
                .expect("a request");
            if let Some(owner) = &owner {
                request.extensions_mut().insert(owner.clone());
            }
            let reply = exchange(&mut service, request).await;
            assert_ne!(reply.status.as_u16(), 500, "a record is not the server's fault: {:?}", reply.body);
        }
    });
    let (record, _) = &*store.0.lock().unwrap_or_else(PoisonError::into_inner);
    let written = encode_record(id, record.clone()).expect("what was saved can be written");
    assert_eq!(decode_record(id, written.as_bytes()).as_ref(), Ok(record), "what was saved can be read");
}

/// What a client does with the session.
const MESSAGES: [&str; 4] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{}}}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"error"}}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"a:b"}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
];

/// A store with one record, whichever is asked for.
struct OneRecord(Mutex<(SessionRecord, RecordVersion)>);

impl OneRecord {
    fn found(&self) -> VersionedRecord {
        let (record, version) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner);
        VersionedRecord { record: record.clone(), version: *version }
    }
}

#[async_trait]
impl SessionStore for OneRecord {
    async fn load(&self, _: SessionId) -> Result<Option<VersionedRecord>, StoreError> {
        Ok(Some(self.found()))
    }

    async fn save(
        &self,
        _: SessionId,
        record: SessionRecord,
        read: RecordVersion,
        _: Duration,
    ) -> Result<SaveOutcome, StoreError> {
        let found = self.found();
        let saved = if read == found.version {
            let version = RecordVersion(read.0.wrapping_add(1));
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (record, version);
            SaveOutcome::Saved(version)
        } else {
            SaveOutcome::Conflict(Some(Box::new(found)))
        };
        Ok(saved)
    }

    async fn touch(&self, _: SessionId, _: Duration) -> Result<bool, StoreError> {
        Ok(true)
    }

    async fn remove(&self, _: SessionId) -> Result<bool, StoreError> {
        Ok(true)
    }
}
