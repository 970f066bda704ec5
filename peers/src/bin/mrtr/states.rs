//! What it takes to ask: states that are sealed and opened, questions and their answers.

use std::hint::black_box;

use mcp_mrtr::{Binding, Journal, Key, KeyRing, NONCE_BYTES, Round, Sealer};
use mcp_server::{Connection, HandlerError, NoArguments, RequestContext, Server, Time, tool};
use mcp_types::jsonrpc::{Limits, PayloadBuf};
use mcp_types::{
    ElicitRequestFormParams, InputRequest, InputResponses, OrderedMap, RawJson, RawObject, RequestedSchema,
    StringSchema,
};
use peers::operations::Operation;
use serde_json::Value;

use crate::calls::{self, TIMES};

const NOW: u64 = 1_800_000_000;
const NONCE: [u8; NONCE_BYTES] = [3; NONCE_BYTES];
const ANSWER: &str = r#"{"action":"accept","content":{"name":"ann"}}"#;

fn ring() -> KeyRing {
    KeyRing::new(Key::new(1, [7; 32]))
}

fn form() -> ElicitRequestFormParams {
    let schema = RequestedSchema::new(OrderedMap::new()).required_field("name", StringSchema::default());
    ElicitRequestFormParams::new("Who?", schema)
}

fn responses() -> InputResponses {
    [("who".to_owned(), RawObject::parse(ANSWER).expect("an answer"))].into_iter().collect()
}

/// A journal that is written as 1 KB: a question, its answer, and a step with a long result.
fn journal() -> Journal {
    let mut size = 700;
    loop {
        let mut round = Round::new(Journal::default(), responses());
        assert_ne!(round.request_input("who", &form().into()), Ok(None));
        round.complete_step("step", RawJson::new(&"x".repeat(size)).expect("JSON"));
        assert_eq!(round.request_input("next", &form().into()), Ok(None));
        let (_, journal) = round.finish().expect("a question");
        match 1024_usize.checked_sub(journal.to_bytes().len()) {
            Some(0) => return journal,
            Some(more) => size += more,
            None => unreachable!("the step alone is smaller than the journal"),
        }
    }
}

fn params() -> PayloadBuf {
    let call: Value = serde_json::from_str(&calls::call("ask", "")).expect("a call");
    PayloadBuf::parse(&call["params"].to_string(), &Limits::default()).expect("parameters")
}

fn binding(params: &PayloadBuf) -> Binding {
    Binding::new(Some((Some("https://example.org"), "ann")), "bench", "tools/call", params)
}

/// A server with a tool that asks one question.
fn server() -> Server {
    let ask = tool("ask", async |ctx: RequestContext, _: NoArguments| {
        let content = ctx.elicit_form("who", form()).await?.accepted()?;
        Ok::<_, HandlerError>(format!("{} fields", content.len()))
    });
    Server::builder("bench", "1.0").key_ring(ring()).tool(ask).build().expect("a server")
}

pub(crate) fn operations() -> Vec<Operation> {
    vec![
        Operation::new("seal a journal of 1 KB", TIMES, || {
            let (sealer, binding, content) = (Sealer::new(ring()), binding(&params()), journal().to_bytes());
            move || drop(black_box(sealer.seal(NOW, NONCE, &binding, black_box(&content)).expect("a state")))
        }),
        Operation::new("open it", TIMES, || {
            let (sealer, binding) = (Sealer::new(ring()), binding(&params()));
            let state = sealer.seal(NOW, NONCE, &binding, &journal().to_bytes()).expect("a state");
            move || drop(black_box(sealer.open(NOW, &binding, black_box(&state)).expect("the journal")))
        }),
        Operation::new("write the journal", TIMES, || {
            let journal = journal();
            move || drop(black_box(black_box(&journal).to_bytes()))
        }),
        Operation::new("read the journal", TIMES, || {
            let content = journal().to_bytes();
            move || drop(black_box(Journal::from_bytes(black_box(&content)).expect("a journal")))
        }),
        Operation::new("Binding of a tools/call", TIMES, || {
            let params = params();
            move || {
                black_box(binding(black_box(&params)));
            }
        }),
        Operation::new("Round::ask, answered in this round", TIMES, || {
            let (question, responses) = (InputRequest::from(form()), responses());
            move || {
                let mut round = Round::new(Journal::default(), black_box(&responses).clone());
                assert_ne!(round.request_input("who", black_box(&question)), Ok(None));
                drop(black_box(round));
            }
        }),
        Operation::new("Round::ask, answered in an earlier one", TIMES, || {
            let (question, mut round) = (InputRequest::from(form()), Round::new(journal(), InputResponses::new()));
            move || assert_ne!(round.request_input("who", black_box(&question)), Ok(None))
        }),
        Operation::new("modern tools/call that ends with a question", TIMES, || {
            let (mut connection, now, request) =
                (Connection::long_lived(&server()), Time::EPOCH, calls::call("ask", ""));
            move || drop(black_box(calls::serve(&mut connection, now, black_box(request.as_bytes()))))
        }),
        Operation::new("its retry, with the answer", TIMES, || {
            let (mut connection, now) = (Connection::long_lived(&server()), Time::EPOCH);
            let asked = calls::serve(&mut connection, now, calls::call("ask", "").as_bytes());
            let asked: Value = serde_json::from_slice(&asked).expect("JSON");
            let state = &asked["result"]["requestState"];
            let more = format!(r#","inputResponses":{{"who":{ANSWER}}},"requestState":{state}"#);
            let request = calls::call("ask", &more);
            let done = calls::serve(&mut connection, now, request.as_bytes());
            assert!(String::from_utf8_lossy(&done).contains("1 fields"), "{}", String::from_utf8_lossy(&done));
            move || drop(black_box(calls::serve(&mut connection, now, black_box(request.as_bytes()))))
        }),
    ]
}
