//! Every type, in every revision that has it, survives being read and written.

use mcp_tests::{Model, REGISTRY, Random, Sampler, Scope, codec};
use mcp_types::Revision;
use serde_json::Value;

const ROUNDS: u64 = 60;

// covers: RS-13, IC-5, SA-5, SA-14, CG-18, CG-19
#[test]
fn every_type_survives_in_every_revision() {
    let model = Model::read();
    let mut checked = 0;
    for (name, codec) in REGISTRY {
        let facts = model.facts(name).expect("a type of the model");
        for revision in Revision::ALL.iter().filter(|revision| facts.has("revisions", revision.as_str())) {
            for seed in 0..ROUNDS {
                let value = Sampler::new(&model, Scope::Exactly(revision.as_str()), seed).value(name);
                let text = value.to_string();
                let encoded = codec
                    .round_trip(&text)
                    .unwrap_or_else(|fault| panic!("{name} in {revision}, seed {seed}: {fault}\n{text}"));
                let encoded: Value = serde_json::from_str(&encoded).expect("JSON");
                assert_eq!(encoded, value, "{name} in {revision}, seed {seed}");
                checked += 1;
            }
        }
    }
    assert!(checked > 20_000, "{checked}");
}

/// Members may come in any order, the tag last, and with numbers that no machine type holds: what is kept as text is
/// kept to the letter, and the rest means the same.
#[test]
fn the_order_of_members_does_not_matter() {
    let model = Model::read();
    for (name, codec) in REGISTRY {
        let facts = model.facts(name).expect("a type of the model");
        let revision = facts.get("revisions").and_then(|known| known[0].as_str()).expect("a revision");
        for seed in 0..ROUNDS {
            let value = Sampler::new(&model, Scope::Exactly(revision), seed).value(name);
            let sorted = codec.round_trip(&value.to_string()).expect("survives");
            let shuffled = shuffle(&value, &mut Random::new(seed));
            let encoded = codec
                .round_trip(&shuffled)
                .unwrap_or_else(|fault| panic!("{name} in {revision}, seed {seed}: {fault}\n{shuffled}"));
            assert_eq!(
                serde_json::from_str::<Value>(&encoded).expect("JSON"),
                serde_json::from_str::<Value>(&sorted).expect("JSON"),
                "{name} in {revision}, seed {seed}"
            );
        }
    }
}

/// Writes a value with the members of every object in random order.
fn shuffle(value: &Value, random: &mut Random) -> String {
    match value {
        Value::Object(members) => {
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            for last in (1..members.len()).rev() {
                let other = usize::try_from(random.below(last as u64 + 1)).expect("an index");
                members.swap(last, other);
            }
            let members: Vec<String> = members
                .iter()
                .map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), shuffle(value, random)))
                .collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(|item| shuffle(item, random)).collect::<Vec<_>>().join(","))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

/// The registry has every type of the model, so the property above speaks for all of them.
#[test]
fn no_type_is_left_out() {
    let model = Model::read();
    for name in model.types() {
        assert!(codec(name).is_some(), "{name}");
    }
    assert_eq!(model.types().count(), REGISTRY.len());
}

/// What a later revision adds to any object is kept to the letter, so that a gateway forwards it.
// covers: CG-10, M-19, EX-12, RB-19, GW-9
#[test]
fn gw_9_unknown_members_are_kept_everywhere() {
    const FUTURE: &str = r#""zFuture":{"z":[1.00,1e400,123456789012345678901234567890],"a":null},"aFuture":2.50"#;
    let model = Model::read();
    let mut kept = 0;
    for (name, codec) in REGISTRY {
        let facts = model.facts(name).expect("a type of the model");
        if facts.get("struct").is_none() && facts.get("union").is_none() {
            continue;
        }
        let revision = facts.get("revisions").and_then(|known| known[0].as_str()).expect("a revision");
        for seed in 0..ROUNDS {
            let value = Sampler::new(&model, Scope::Exactly(revision), seed).value(name);
            if !value.is_object() {
                continue;
            }
            let value = value.to_string();
            let known = codec.round_trip(&value).expect("survives");
            let text = format!("{{{FUTURE},{}", value.trim_start_matches('{')).replace(",}", "}");
            let encoded = codec.round_trip(&text).unwrap_or_else(|fault| panic!("{name}: {fault}"));
            let rest = encoded.replacen(FUTURE, "", 1);
            assert_ne!(rest, encoded, "{name}: {encoded}");
            // Without the commas around them, the known members are what they were.
            assert_eq!(rest.replace(",}", "}").replace("{,", "{"), known.replace(",}", "}"), "{name}: {encoded}");
            kept += 1;
        }
    }
    assert!(kept > 5000, "{kept}");
}

/// Values that a later revision adds to an open set, and blocks of a kind that nobody knows yet, survive: one of
/// them never spoils the result around it.
// covers: RB-19, CG-16
#[test]
fn unknown_values_and_variants_survive() {
    let text = r#"{"content":[{"annotations":{"audience":["user","robot"]},"text":"a","type":"text"},{"level":9,"type":"hologram"}],"isError":false,"tools":[]}"#;
    let encoded = codec("CallToolResult").expect("a type").round_trip(text).expect("survives");
    assert_eq!(serde_json::from_str::<Value>(&encoded).unwrap(), serde_json::from_str::<Value>(text).unwrap());
}
