//! `RULES.md` says which tests hold which row.

#[path = "../../tests/shared/rules.rs"]
mod shared;

#[test]
fn every_row_names_a_test_or_a_reason() {
    let rows = [
        // The checklist.
        ("S0.", 5, 5),
        ("S0.", 24, 28),
        ("S4.", 34, 47),
        ("S4.", 69, 72),
        ("S4.", 98, 98),
        ("S4.", 115, 119),
        // Robustness.
        ("RB-", 53, 55),
        ("RB-", 64, 64),
        ("RB-", 31, 33),
        ("RB-", 35, 35),
    ];
    shared::check(env!("CARGO_MANIFEST_DIR"), &["mcp-kernel"], &rows);
}
