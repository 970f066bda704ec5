//! Decoding: from bytes to typed parameters and results.
//!
//! What was decoded is looked at before the clock runs, so that both sides are known to end in
//! the type that the message is about, and in the same values.

use std::hint::black_box;

use mcp_types::jsonrpc::{Limits, Message, Payload};
use peers::measure;
use peers::report::{Aim, Table};
use peers::versions;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, ServerJsonRpcMessage, ServerResult};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::workload::{self, InsertArguments, SearchArguments, WriteArguments};

/// Compares decoding down to the parameters, to the arguments of the handler, and to the result.
pub(crate) fn compare() -> Table {
    let mut table = Table::new(format!("Decoding against {}", versions::named("rmcp")));
    compare_call::<SearchArguments>(&mut table, "tools/call, small", &workload::search_call());
    compare_tools(&mut table, &workload::tools_page());
    compare_call::<WriteArguments>(&mut table, "tools/call, one long string", &workload::write_call(1_000_000));
    compare_call::<InsertArguments>(&mut table, "tools/call, many small values", &workload::insert_call(1_000_000));
    table
}

/// Reads a call as parameters, and with the arguments of type `A` as the tool's handler wants them.
fn compare_call<A: DeserializeOwned + PartialEq>(table: &mut Table, work: &str, message: &[u8]) {
    assert_eq!(our_params(message).name, their_params(message).name);
    let comparison = measure::compare(|| our_params(black_box(message)), || their_params(black_box(message)));
    table.add(format!("{work}: params"), message.len(), Aim::Ahead, comparison);

    assert!(our_call::<A>(message) == their_call::<A>(message), "both read the same arguments");
    let comparison = measure::compare(|| our_call::<A>(black_box(message)), || their_call::<A>(black_box(message)));
    table.add(format!("{work}: typed arguments"), message.len(), Aim::Ahead, comparison);
}

/// Reads a page of tools, with the schemas as text and as trees.
fn compare_tools(table: &mut Table, message: &[u8]) {
    let (ours, theirs) = (our_tools(message), their_tools(message));
    assert!(ours.tools.iter().map(|tool| &*tool.name).eq(theirs.tools.iter().map(|tool| &*tool.name)));
    let comparison = measure::compare(|| our_tools(black_box(message)), || their_tools(black_box(message)));
    table.add("tools/list of 100 tools", message.len(), Aim::Ahead, comparison);

    // Ours keeps schemas as text; a client that looks into them pays here.
    assert!(our_tools_and_schemas(message).1.iter().eq(theirs.tools.iter().map(|tool| &*tool.input_schema)));
    let comparison = measure::compare(|| our_tools_and_schemas(black_box(message)), || their_tools(black_box(message)));
    table.add("tools/list of 100 tools: schemas as trees", message.len(), Aim::Ahead, comparison);
}

fn our_params(message: &[u8]) -> mcp_types::CallToolRequestParams {
    our_payload(message).decode().expect("the parameters of a call")
}

/// Returns the name of the tool with its arguments, which is what a handler is found and called by.
fn our_call<A: DeserializeOwned>(message: &[u8]) -> (String, A) {
    let payload = our_payload(message);
    let name = payload.get("name").expect("a name").get();
    let arguments = payload.get("arguments").expect("arguments").get();
    (serde_json::from_str(name).expect("a string"), serde_json::from_str(arguments).expect("arguments of the tool"))
}

fn our_payload(message: &[u8]) -> Payload<'_> {
    match Message::parse(message, &Limits::default()) {
        Ok(Message::Request(request)) => request.params.expect("parameters"),
        other => panic!("not a request: {other:?}"),
    }
}

pub(crate) fn our_tools(message: &[u8]) -> mcp_types::ListToolsResult {
    match Message::parse(message, &Limits::default()) {
        Ok(Message::Response(response)) => response.outcome.expect("a result").decode().expect("a page of tools"),
        other => panic!("not a response: {other:?}"),
    }
}

fn our_tools_and_schemas(message: &[u8]) -> (mcp_types::ListToolsResult, Vec<Map<String, Value>>) {
    let page = our_tools(message);
    let schemas = page.tools.iter().map(|tool| tool.input_schema.decode().expect("a tree")).collect();
    (page, schemas)
}

fn their_params(message: &[u8]) -> rmcp::model::CallToolRequestParams {
    let message: ClientJsonRpcMessage = serde_json::from_slice(message).expect("a message of a client");
    let JsonRpcMessage::Request(request) = message else { panic!("not a request") };
    let ClientRequest::CallToolRequest(request) = request.request else { panic!("not a call of a tool") };
    request.params
}

fn their_call<A: DeserializeOwned>(message: &[u8]) -> (String, A) {
    let params = their_params(message);
    let arguments = Value::Object(params.arguments.expect("arguments"));
    (params.name.into_owned(), serde_json::from_value(arguments).expect("arguments of the tool"))
}

fn their_tools(message: &[u8]) -> rmcp::model::ListToolsResult {
    let message: ServerJsonRpcMessage = serde_json::from_slice(message).expect("a message of a server");
    let JsonRpcMessage::Response(response) = message else { panic!("not a response") };
    let ServerResult::ListToolsResult(page) = response.result else { panic!("not a page of tools") };
    page
}
