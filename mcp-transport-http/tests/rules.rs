//! `RULES.md` says which tests hold which row.

#[path = "../../tests/shared/rules.rs"]
mod shared;

#[test]
fn every_row_names_a_test_or_a_reason() {
    let rows = [
        // The checklist.
        ("S3.", 1, 73),
        ("S3.F", 1, 18),
        ("S4.", 1, 47),
        ("S4.", 50, 62),
        ("S4.", 63, 72),
        ("S4.", 77, 84),
        ("S4.", 92, 101),
        ("S4.", 104, 105),
        ("S4.", 109, 114),
        ("S4.", 117, 118),
        // The register.
        ("H-", 1, 34),
        ("H-", 40, 58),
        ("H-", 60, 84),
        ("B-", 100, 112),
        ("DU-", 10, 26),
        ("L-", 1, 20),
        // Robustness.
        ("RB-", 52, 53),
        ("RB-", 55, 55),
        ("RB-", 58, 64),
        ("RB-", 67, 67),
        ("RB-", 68, 68),
        ("RB-", 70, 71),
        ("RB-", 31, 42),
        ("RB-", 1, 6),
        ("RB-", 10, 18),
        ("RB-", 22, 22),
        ("RB-", 24, 24),
    ];
    let others = ["mcp-kernel", "mcp-server", "mcp-mrtr", "mcp-client", "mcp-transport-stdio", "mcp-types"];
    shared::check(env!("CARGO_MANIFEST_DIR"), &others, &rows);
}
