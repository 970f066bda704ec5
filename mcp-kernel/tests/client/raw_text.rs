//! Raw JSON of the application: however it is written, what is sent is one line.

use mcp_kernel::CallOptions;
use mcp_kernel::client::Transmit;
use mcp_types::{ClientCapabilities, ErrorObject, Method, RawJson, RawObject, Revision};
use serde_json::{Value, json};

use crate::{Script, roots};

const ERAS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

/// A whole message between the lines of an object.
const SMUGGLED: &str = "{\"text\":\"ok\",\"b\":\n{\"jsonrpc\":\"2.0\",\"id\":902,\"method\":\"tools/call\"}\r}";

fn smuggled() -> RawObject {
    RawObject::parse(SMUGGLED).expect("an object")
}

impl Script {
    /// The next message, which must be one line, and which means what was written.
    fn line(&mut self) -> Value {
        let Some(Transmit::Send { message, .. }) = self.client.poll_transmit() else { panic!("a message") };
        assert!(!message.contains(&b'\n') && !message.contains(&b'\r'), "{message:?}");
        serde_json::from_slice(&message).expect("JSON")
    }
}

/// The short way of parameters without metadata, the long way of those with, and notifications.
// covers: SEC-1
#[test]
fn sec_1_parameters_are_sent_on_one_line() {
    let meant: Value = smuggled().decode().expect("JSON");
    for revision in ERAS {
        let mut script = Script::ready(revision);
        let with_meta = RawObject::parse(&format!("{{\"_meta\":\n{SMUGGLED},\n\"arguments\":{SMUGGLED}\n}}"));
        for idle in [None, CallOptions::default().idle_timeout] {
            let options = CallOptions::default().idle_timeout(idle);
            script.client.call(script.now, &Method::TOOLS_CALL, &smuggled(), options).expect("a call");
            assert_eq!(script.line()["params"]["b"], meant["b"]);
            let params = with_meta.as_ref().expect("an object");
            script.client.call(script.now, &Method::TOOLS_CALL, params, options).expect("a call");
            let sent = script.line();
            assert_eq!((&sent["params"]["arguments"], &sent["params"]["_meta"]["b"]), (&meant, &meant["b"]));
        }
        script.client.notify(&Method::from("notifications/own"), &smuggled()).expect("a notification");
        assert_eq!(script.line()["params"], meant);
    }
}

/// Answers to a server: results, and the data of errors.
// covers: SEC-1
#[test]
fn sec_1_answers_are_sent_on_one_line() {
    let mut script = Script::ready(Revision::V2025_11_25);
    let meant: Value = smuggled().decode().expect("JSON");
    let error = ErrorObject::internal_error("no").raw_data(smuggled().into());
    for (outcome, place) in [(Ok(&smuggled()), "/result"), (Err(error), "/error/data")] {
        script.say(&roots(1));
        let responder = script.asked();
        assert!(script.client.respond(script.now, responder, outcome));
        assert_eq!(script.line().pointer(place), Some(&meant));
    }
}

/// What the client says about itself, with every request or in the handshake.
// covers: SEC-1
#[test]
fn sec_1_capabilities_are_sent_on_one_line() {
    let mut capabilities = ClientCapabilities::default();
    capabilities.experimental.get_or_insert_default().insert("own", smuggled());
    capabilities.extra.insert("other", RawJson::parse("[1,\n2]").expect("JSON"));
    for revision in ERAS {
        let mut script = Script::ready_with(revision, capabilities.clone());
        script.client.call(script.now, &Method::TOOLS_LIST, &RawObject::empty(), CallOptions::default()).expect("sent");
        let sent = script.line();
        let declared = &sent["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        let expected = if revision == Revision::V2026_07_28 { json!([1, 2]) } else { Value::Null };
        assert_eq!(declared["other"], expected);
    }
}
