//! The JSON Schemas that the types derive (feature `schemars`) accept what the types write.

use mcp_tests::{Model, REGISTRY, Sampler, Scope};
use mcp_types::Revision;

#[test]
fn derived_schemas_accept_what_is_encoded() {
    let model = Model::read();
    for (name, codec) in REGISTRY {
        let schema = codec.schema();
        let validator = jsonschema::validator_for(&schema).unwrap_or_else(|fault| panic!("{name}: {fault}\n{schema}"));
        let facts = model.facts(name).expect("a type of the model");
        for revision in Revision::ALL.iter().filter(|revision| facts.has("revisions", revision.as_str())) {
            for seed in 0..10 {
                let value = Sampler::new(&model, Scope::Exactly(revision.as_str()), seed).value(name);
                let encoded = codec.round_trip(&value.to_string()).unwrap_or_else(|fault| panic!("{name}: {fault}"));
                let encoded = serde_json::from_str(&encoded).expect("JSON");
                if let Err(fault) = validator.validate(&encoded) {
                    panic!(
                        "{name} in {revision}, seed {seed}: {fault} at {}\n{encoded}\n{schema}",
                        fault.instance_path()
                    );
                }
            }
        }
    }
}

/// A derived schema is not a rubber stamp.
#[test]
fn derived_schemas_refuse_what_is_wrong() {
    let tool = mcp_tests::codec("Tool").expect("a type").schema();
    let validator = jsonschema::validator_for(&tool).expect("a schema");
    for wrong in [r#"{"name":5,"inputSchema":{}}"#, r#"{"name":"x"}"#, r#"{"name":"x","inputSchema":[]}"#] {
        assert!(!validator.is_valid(&serde_json::from_str(wrong).expect("JSON")), "{wrong}");
    }
}
