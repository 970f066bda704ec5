//! `RULES.md` says which tests hold which row.

#[path = "../../tests/shared/rules.rs"]
mod shared;

#[test]
fn every_row_names_a_test_or_a_reason() {
    let rows = [("S0.", 1, 28), ("S1.", 1, 39), ("S2.", 1, 41), ("S4.", 48, 49), ("S4.", 73, 91), ("S4.", 102, 108)];
    shared::check(env!("CARGO_MANIFEST_DIR"), &["mcp-kernel"], &rows);
}
