//! Encoding: from results to bytes.
//!
//! Both sides write the same message: theirs is read from what ours wrote.

use std::hint::black_box;

use mcp_types::jsonrpc::write_result;
use mcp_types::{CallToolResult, RequestId};
use peers::measure;
use peers::report::{Aim, Table};
use peers::versions;
use rmcp::model::{JsonRpcMessage, ServerJsonRpcMessage, ServerResult};
use serde::Serialize;
use serde_json::Value;

use crate::decoding::our_tools;
use crate::workload;

/// Compares writing results.
pub(crate) fn compare() -> Table {
    let mut table = Table::new(format!("Encoding against {}", versions::named("rmcp")));
    let answer = CallToolResult::text(workload::answer());
    let is_answer = |result: &ServerResult| matches!(result, ServerResult::CallToolResult(_));
    compare_result(&mut table, "tools/call result", &answer, is_answer);
    let page = our_tools(&workload::tools_page());
    let is_page = |result: &ServerResult| matches!(result, ServerResult::ListToolsResult(_));
    compare_result(&mut table, "tools/list of 100 tools", &page, is_page);
    table
}

/// Writes a result into a new buffer, and into one that is used again and again.
fn compare_result(table: &mut Table, work: &str, ours: &impl Serialize, is_same: impl Fn(&ServerResult) -> bool) {
    // That is what `to_vec` starts with.
    const START: usize = 128;
    let id = RequestId::from(17_u32);
    let ours_in = |mut out: Vec<u8>| {
        write_result(&mut out, &id, black_box(ours)).expect("a result can be written");
        out
    };
    let message = ours_in(Vec::new());
    let theirs: ServerJsonRpcMessage = serde_json::from_slice(&message).expect("a message of a server");
    let theirs_in = |mut out: Vec<u8>| {
        serde_json::to_writer(&mut out, black_box(&theirs)).expect("a result can be written");
        out
    };
    let JsonRpcMessage::Response(response) = &theirs else { panic!("not a response") };
    assert!(is_same(&response.result), "theirs reads another type of result");
    assert_eq!(tree(&message), tree(&theirs_in(Vec::new())), "both write the same");

    let comparison = measure::compare(
        || ours_in(Vec::with_capacity(START)),
        || serde_json::to_vec(black_box(&theirs)).expect("a result can be written"),
    );
    table.add(format!("{work}: new buffer"), message.len(), Aim::None, comparison);

    let (mut our_buffer, mut their_buffer) = (Vec::new(), Vec::new());
    let comparison = measure::compare(
        || {
            our_buffer.clear();
            our_buffer = ours_in(std::mem::take(&mut our_buffer));
        },
        || {
            their_buffer.clear();
            their_buffer = theirs_in(std::mem::take(&mut their_buffer));
        },
    );
    table.add(format!("{work}: used buffer"), message.len(), Aim::None, comparison);
}

fn tree(message: &[u8]) -> Value {
    serde_json::from_slice(message).expect("JSON")
}
