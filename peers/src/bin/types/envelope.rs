//! The envelope: what it costs to know what a message is, and where its members are.

use std::hint::black_box;

use mcp_types::jsonrpc::{Limits, Message};
use peers::measure;
use peers::report::{Aim, Table};
use serde_json::value::RawValue;

use crate::workload;

/// Compares reading the envelope with passing over the text as one raw value, which is the least
/// that `serde_json` can do to check it.
pub(crate) fn compare() -> Table {
    let mut table = Table::new("Envelope: Message::parse against serde_json::from_slice::<&RawValue>");
    for (work, message, aim) in [
        ("tools/call, small", workload::modern_search_call(), 2.0),
        ("tools/call, one long string with escapes", workload::write_call(100_000), 1.2),
        ("tools/call, one long string of base64", workload::upload_call(100_000), 1.2),
        ("tools/call, many small values", workload::insert_call(100_000), 1.2),
    ] {
        let limits = Limits::default();
        let comparison = measure::compare(
            || Message::parse(black_box(&message), &limits).expect("a message"),
            || serde_json::from_slice::<&RawValue>(black_box(&message)).expect("JSON"),
        );
        table.add(work, message.len(), Aim::Ratio(aim), comparison);
    }
    table
}
