//! A value that is cut down to a revision has nothing that the revision lacks.

use mcp_tests::{Model, REGISTRY, Sampler, Scope};
use mcp_types::{
    CallToolRequestParams, CancelledNotificationParams, ContentBlock, DiscoverResult, ElicitRequestUrlParams, Revision,
    ServerCapabilities, restrict_to,
};
use serde_json::Value;

const ROUNDS: u64 = 40;

#[test]
fn nothing_foreign_remains() {
    let model = Model::read();
    let (mut checked, mut refused) = (0, 0);
    for (name, codec) in REGISTRY {
        let facts = model.facts(name).expect("a type of the model");
        for revision in Revision::ALL {
            for seed in 0..ROUNDS {
                let value = Sampler::new(&model, Scope::Anything(revision.as_str()), seed).value(name);
                let Some(outcome) = codec.restrict(&value.to_string(), revision) else { continue };
                let (encoded, restriction) =
                    outcome.unwrap_or_else(|fault| panic!("{name} in {revision}, seed {seed}: {fault}\n{value}"));
                if !restriction.may_be_sent() {
                    refused += 1;
                    continue;
                }
                // A part that only other revisions have may stay whole: whatever holds it is dropped or refused.
                if !facts.has("revisions", revision.as_str()) {
                    assert!(!is_message_part(name), "{name} in {revision}, seed {seed}: nothing refuses it");
                    continue;
                }
                let encoded: Value = serde_json::from_str(&encoded).expect("JSON");
                if let Some(foreign) = foreign_member(&model, name, &encoded, revision.as_str()) {
                    panic!("{name} in {revision}, seed {seed}: {foreign} remains in {encoded}");
                }
                checked += 1;
            }
        }
    }
    assert!(checked > 10_000 && refused > 1_000, "{checked} checked, {refused} refused");
}

/// Whether a type travels by itself, as the params or the result of a method.
fn is_message_part(name: &str) -> bool {
    name.ends_with("Params") || name.ends_with("Result")
}

/// The innermost name of a kind such as `list<map<Tool>>`.
fn held(kind: &str) -> &str {
    kind.trim_end_matches('>').rsplit('<').next().unwrap_or(kind)
}

/// The first known member that the revision lacks.
fn foreign_member(model: &Model, name: &str, value: &Value, revision: &str) -> Option<String> {
    let facts = model.facts(name)?;
    if let Some(members) = facts.members() {
        for (wire, value) in value.as_object()? {
            let Some(member) = members.get(wire) else { continue };
            if !facts.member_exists(member, revision) {
                return Some(format!("{name}.{wire}"));
            }
            let kind = member["kind"].as_str()?;
            if let Some(foreign) = foreign_below(model, held(kind), kind, value, revision) {
                return Some(foreign);
            }
        }
        return None;
    }
    if let Some(alias) = facts.get("alias") {
        let kind = alias.as_str()?;
        return foreign_below(model, held(kind), kind, value, revision);
    }
    let union = facts.get("union")?;
    let tag = union["by"]["tag"].as_str()?;
    let variants = union["variants"].as_array()?;
    let variant = variants.iter().find(|variant| variant["tag"] == value[tag])?;
    if !variant["revisions"].as_array()?.iter().any(|known| known == revision) {
        return Some(format!("{name} as {}", value[tag]));
    }
    foreign_member(model, variant["holds"].as_str()?, value, revision)
}

/// Looks through lists and maps for values of the type: an object is one of them, or a map of them.
fn foreign_below(model: &Model, name: &str, kind: &str, value: &Value, revision: &str) -> Option<String> {
    if let Some(items) = value.as_array() {
        return items.iter().find_map(|item| foreign_below(model, name, kind, item, revision));
    }
    if kind.starts_with("map<") {
        return value.as_object()?.values().find_map(|value| foreign_member(model, name, value, revision));
    }
    foreign_member(model, name, value, revision)
}

/// E3: what a revision cannot say is refused, not garbled.
#[test]
fn what_cannot_be_said_is_refused() {
    let mut content =
        vec![ContentBlock::text("a"), ContentBlock::audio([0], "audio/wav"), ContentBlock::resource_link("n", "a:b")];
    let restriction = restrict_to(&mut content, Revision::V2024_11_05);
    assert_eq!(restriction.refused(), ["ContentBlock::Audio", "ContentBlock::ResourceLink"]);
    let restriction = restrict_to(&mut content, Revision::V2025_03_26);
    assert_eq!(restriction.refused(), ["ContentBlock::ResourceLink"]);
    let restriction = restrict_to(&mut content, Revision::LATEST);
    assert!(restriction.refused().is_empty() && restriction.dropped().is_empty());
}

/// What belongs to another revision as a whole is refused, and so is what means nothing without a foreign member.
#[test]
fn what_would_mean_something_else_is_refused() {
    let mut result = DiscoverResult::new(Vec::new(), ServerCapabilities::default());
    assert_eq!(restrict_to(&mut result, Revision::V2025_11_25).refused(), ["DiscoverResult"]);
    let mut retry = CallToolRequestParams::new("x").request_state("opaque");
    assert_eq!(restrict_to(&mut retry, Revision::V2025_11_25).refused(), ["CallToolRequestParams.requestState"]);
    assert!(restrict_to(&mut retry, Revision::V2026_07_28).may_be_sent());
}

/// Members that one revision demands and another does not have.
// covers: B-38, B-57
#[test]
fn what_a_revision_demands_on_top_is_missed() {
    let mut cancelled = CancelledNotificationParams::default();
    assert_eq!(restrict_to(&mut cancelled, Revision::V2025_06_18).missing(), ["CancelledNotificationParams.requestId"]);
    assert!(restrict_to(&mut cancelled, Revision::V2025_11_25).may_be_sent());
    let mut question = ElicitRequestUrlParams::new("m", "https://example.com");
    assert_eq!(restrict_to(&mut question, Revision::V2025_11_25).missing(), ["ElicitRequestUrlParams.elicitationId"]);
    assert!(restrict_to(&mut question, Revision::V2026_07_28).may_be_sent());
}
