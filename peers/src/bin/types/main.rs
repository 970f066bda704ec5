//! Compares `mcp-types` with `rmcp`'s model types, and its envelope with bare `serde_json`.

mod decoding;
mod encoding;
mod envelope;
mod workload;

use peers::measure::ROUNDS;
use peers::versions;

#[expect(clippy::print_stdout, reason = "the report is what this is for")]
fn main() {
    println!("ours: {}", versions::named("mcp-types"));
    println!("theirs: {}, {}", versions::named("rmcp"), versions::named("serde_json"));
    println!("{ROUNDS} rounds each, in turns; the time is that of the median round, ratio = ours / theirs\n");
    for table in [envelope::compare, decoding::compare, encoding::compare] {
        println!("{}", table());
    }
}
