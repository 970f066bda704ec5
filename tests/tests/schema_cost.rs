//! What a hostile schema costs a client that reads it.

use std::alloc::System;

use cap::Cap;
use mcp_types::{HeaderParam, RawObject};

/// Knows how many bytes were ever allocated.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// A schema of about half a megabyte: properties in properties, each with much to say beside.
fn deep(levels: usize) -> RawObject {
    let filler = format!(r#""enum":[{}0]"#, "{\"a\":1},".repeat(500_000 / levels / 8));
    let innermost = r#"{"type":"string","x-mcp-header":"Deep"}"#.to_owned();
    let text =
        (0..levels).fold(innermost, |inner, _| format!(r#"{{"type":"object",{filler},"properties":{{"p":{inner}}}}}"#));
    RawObject::parse(&text).expect("a schema")
}

/// Everything that is allocated on the way counts, also what is given back at once: that grows with what is found, and not
/// with the schema.
// covers: SEC-7
#[test]
fn sec_7_a_deep_schema_costs_no_copies() {
    for levels in [1, 10, 55] {
        let schema = deep(levels);
        assert!(schema.as_str().len() > 450_000);
        let before = ALLOCATOR.total_allocated();
        let found = HeaderParam::from_schema(&schema).expect("an annotation");
        let cost = ALLOCATOR.total_allocated() - before;
        assert_eq!(found.first().map(|param| param.path.len()), Some(levels));
        assert!(cost < 64 * 1024, "{levels} levels cost {cost} bytes");
        let arguments = (0..levels).fold("\"x\"".to_owned(), |inner, _| format!(r#"{{"p":{inner}}}"#));
        let arguments = RawObject::parse(&arguments).expect("arguments");
        assert_eq!(found.first().and_then(|param| param.value(&arguments)).as_deref(), Some("x"));
    }
}
