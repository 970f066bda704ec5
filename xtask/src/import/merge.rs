//! Merges the normalised revisions into one model.

use std::collections::{BTreeMap, BTreeSet};

use super::curation::Curation;
use super::extension;
use super::official::{Definition, Field, MethodUse, Revision};
use crate::model::{
    Discriminator, Kind, Member, Method, Model, Narrower, REVISIONS, Required, Shape, StringValue, Type, Variant,
};
use crate::names;

/// The revisions by name, oldest first.
pub(crate) type Revisions = BTreeMap<&'static str, Revision>;

/// Merges all revisions; a disagreement that no curation settles is an error that names the place.
pub(crate) fn merge(revisions: &Revisions, curation: &Curation) -> Result<Model, String> {
    let names: BTreeSet<&str> =
        revisions.values().flat_map(|revision| revision.types.keys().map(String::as_str)).collect();
    let mut types = BTreeMap::new();
    for name in names {
        types.insert(name.to_owned(), merge_type(name, revisions, curation)?);
    }
    for (name, set) in &curation.strings {
        if let Some(since) = &set.since {
            let shape = Shape::Strings {
                open: set.open,
                values: set.order.iter().map(|wire| string_value(wire, set.open)).collect(),
            };
            let since =
                REVISIONS.iter().filter(|revision| **revision >= since.as_str()).map(|revision| (*revision).to_owned());
            types.insert(name.clone(), finish(name, since.collect(), shape, curation)?);
        }
    }
    for name in curation.types_with_topic() {
        if !types.contains_key(name) {
            return Err(format!("[topics] in curation.toml names `{name}`, which no revision has"));
        }
    }
    extension::add_types(&mut types, curation)?;
    check_references(&types, curation)?;
    let mut methods = merge_methods(revisions, curation, &types)?;
    extension::add_methods(&mut methods, curation);
    let revisions = REVISIONS.iter().map(|revision| (*revision).to_owned()).collect();
    Ok(Model { revisions, sources: BTreeMap::new(), types, methods, errata: curation.errata.clone() })
}

fn merge_type(name: &str, revisions: &Revisions, curation: &Curation) -> Result<Type, String> {
    let uses: Vec<(&str, &Definition)> =
        revisions.iter().filter_map(|(revision, read)| Some((*revision, read.types.get(name)?))).collect();
    let present: Vec<String> = uses.iter().map(|(revision, _)| (*revision).to_owned()).collect();
    let shape = match uses.first().map(|(_, definition)| *definition) {
        Some(Definition::Struct(_)) => {
            let mut fields = Vec::new();
            for (revision, definition) in &uses {
                let Definition::Struct(members) = definition else { return Err(changed_shape(name, &uses)) };
                fields.push((*revision, members));
            }
            Shape::Struct { members: merge_members(name, &fields, curation)? }
        }
        Some(Definition::Strings(_)) => {
            let mut values = BTreeSet::new();
            for (_, definition) in &uses {
                let Definition::Strings(more) = definition else { return Err(changed_shape(name, &uses)) };
                values.extend(more.iter().cloned());
            }
            merge_strings(name, &values, curation)?
        }
        Some(Definition::Union(_)) => {
            let mut variants = Vec::new();
            for (revision, definition) in &uses {
                let Definition::Union(holds) = definition else { return Err(changed_shape(name, &uses)) };
                variants.push((*revision, holds));
            }
            merge_union(name, &variants, revisions, curation)?
        }
        Some(Definition::Alias(kind)) => {
            if uses.iter().any(|(_, other)| *other != uses[0].1) {
                return Err(changed_shape(name, &uses));
            }
            Shape::Alias(kind.clone())
        }
        None => return Err(format!("{name} is in no revision")),
    };
    finish(name, present, shape, curation)
}

fn finish(name: &str, revisions: Vec<String>, shape: Shape, curation: &Curation) -> Result<Type, String> {
    let topic =
        curation.topic(name).ok_or_else(|| format!("{name} has no topic: add it to [topics] in curation.toml"))?;
    Ok(Type { rust: curation.rust_name(name), topic: topic.to_owned(), revisions, shape })
}

fn changed_shape(name: &str, uses: &[(&str, &Definition)]) -> String {
    let revisions: Vec<&str> = uses.iter().map(|(revision, _)| *revision).collect();
    format!("{name} changes its shape within {}: decide in curation.toml", revisions.join(", "))
}

fn merge_members(
    name: &str,
    uses: &[(&str, &BTreeMap<String, Field>)],
    curation: &Curation,
) -> Result<BTreeMap<String, Member>, String> {
    let wire_names: BTreeSet<&String> = uses.iter().flat_map(|(_, members)| members.keys()).collect();
    let mut merged = BTreeMap::new();
    for wire in wire_names {
        let at = format!("{name}.{wire}");
        let with: Vec<(&str, &Field)> =
            uses.iter().filter_map(|(revision, members)| Some((*revision, members.get(wire)?))).collect();
        let mut kind: Option<(&str, Kind)> = None;
        for (revision, field) in &with {
            kind = Some(match kind {
                None => (revision, field.kind.clone()),
                Some((first, known)) => {
                    let wider = widen(&known, &field.kind).ok_or_else(|| {
                        format!(
                            "{at} is `{known}` in {first} and `{}` in {revision}: decide in [kind] of curation.toml",
                            field.kind
                        )
                    })?;
                    (first, wider)
                }
            });
        }
        let Some((_, kind)) = kind else { continue };
        let demanded: Vec<String> =
            with.iter().filter(|(_, field)| field.required).map(|(revision, _)| (*revision).to_owned()).collect();
        let required = match demanded.len() {
            0 => Required::Never,
            count if count == with.len() => Required::Always,
            _ => Required::In(demanded),
        };
        let revisions =
            (with.len() < uses.len()).then(|| with.iter().map(|(revision, _)| (*revision).to_owned()).collect());
        let narrower = curation.narrower(&at).map(|narrowing| Narrower {
            rule: narrowing.rule.clone(),
            revisions: with
                .iter()
                .map(|(revision, _)| *revision)
                .filter(|r| *r <= narrowing.until.as_str())
                .map(str::to_owned)
                .collect(),
        });
        let (essential, boxed, rust) = (curation.is_essential(&at), curation.is_boxed(&at, &kind), names::member(wire));
        merged.insert(wire.clone(), Member { rust, kind, revisions, required, narrower, essential, boxed });
    }
    Ok(merged)
}

/// The kind that holds the values of both, where one contains the other.
fn widen(one: &Kind, other: &Kind) -> Option<Kind> {
    match (one, other) {
        (one, other) if one == other => Some(one.clone()),
        (Kind::Any, Kind::Object) | (Kind::Object, Kind::Any) => Some(Kind::Any),
        _ => None,
    }
}

fn merge_strings(name: &str, values: &BTreeSet<String>, curation: &Curation) -> Result<Shape, String> {
    let set = curation
        .strings
        .get(name)
        .ok_or_else(|| format!("{name} is a set of strings: add [strings.{name}] to curation.toml"))?;
    if *values != set.order.iter().cloned().collect() {
        return Err(format!(
            "{name} has the values {values:?}, but [strings.{name}] in curation.toml orders {:?}",
            set.order
        ));
    }
    Ok(Shape::Strings { open: set.open, values: set.order.iter().map(|wire| string_value(wire, set.open)).collect() })
}

fn string_value(wire: &str, open: bool) -> StringValue {
    let rust = if open { names::constant(wire) } else { names::variant(wire) };
    StringValue { wire: wire.to_owned(), rust }
}

fn merge_union(
    name: &str,
    uses: &[(&str, &BTreeSet<String>)],
    revisions: &Revisions,
    curation: &Curation,
) -> Result<Shape, String> {
    let union =
        curation.union.get(name).ok_or_else(|| format!("{name} is a union: add [union.{name}] to curation.toml"))?;
    let holds: BTreeSet<&String> = uses.iter().flat_map(|(_, variants)| variants.iter()).collect();
    if let Some(unnamed) = holds.iter().find(|held| !union.variants.iter().any(|(known, _)| known == **held)) {
        return Err(format!("{name} has a variant `{unnamed}`: name it in [union.{name}] of curation.toml"));
    }
    let mut variants = Vec::new();
    for (held, rust) in &union.variants {
        let tag = match &union.tag {
            Some(tag) => {
                Some(tag_value(held, tag, revisions).ok_or_else(|| format!("{held} has no constant `{tag}`"))?)
            }
            None => None,
        };
        let present =
            uses.iter().filter(|(_, variants)| variants.contains(held)).map(|(revision, _)| (*revision).to_owned());
        variants.push(Variant { rust: rust.clone(), holds: held.clone(), tag, revisions: present.collect() });
    }
    let by = union.tag.clone().map_or(Discriminator::Members, Discriminator::Tag);
    Ok(Shape::Union { by, variants })
}

fn tag_value(held: &str, tag: &str, revisions: &Revisions) -> Option<String> {
    revisions.values().rev().find_map(|revision| {
        let Definition::Struct(members) = revision.types.get(held)? else { return None };
        if let Kind::Const(text) = &members.get(tag)?.kind { Some(text.clone()) } else { None }
    })
}

/// Every named kind must be a type of the model or one that is written by hand.
fn check_references(types: &BTreeMap<String, Type>, curation: &Curation) -> Result<(), String> {
    for (name, definition) in types {
        let kinds: Vec<(String, &Kind)> = match &definition.shape {
            Shape::Struct { members } => {
                members.iter().map(|(wire, member)| (format!("{name}.{wire}"), &member.kind)).collect()
            }
            Shape::Alias(kind) => vec![(name.clone(), kind)],
            Shape::Strings { .. } | Shape::Union { .. } => Vec::new(),
        };
        for (at, kind) in kinds {
            if let Some(target) = kind.named()
                && !types.contains_key(target)
                && !curation.is_by_hand(target)
            {
                return Err(format!("{at} refers to `{target}`, which is not a type of the model"));
            }
        }
    }
    Ok(())
}

fn merge_methods(
    revisions: &Revisions,
    curation: &Curation,
    types: &BTreeMap<String, Type>,
) -> Result<BTreeMap<String, Method>, String> {
    let names: BTreeSet<&String> = revisions.values().flat_map(|revision| revision.methods.keys()).collect();
    let mut methods = BTreeMap::new();
    for name in names {
        let uses: Vec<(&str, &MethodUse)> =
            revisions.iter().filter_map(|(revision, read)| Some((*revision, read.methods.get(name)?))).collect();
        let Some((_, newest)) = uses.last() else { continue };
        if uses.iter().any(|(_, method)| method.kind != newest.kind) {
            return Err(format!("`{name}` is a request in one revision and a notification in another"));
        }
        let select = |test: fn(&MethodUse) -> bool| -> Vec<String> {
            uses.iter().filter(|(_, method)| test(method)).map(|(revision, _)| (*revision).to_owned()).collect()
        };
        // The result of a method that later travels without an envelope keeps its name, so the newest one that has any wins.
        let result = uses.iter().rev().find_map(|(_, method)| method.result.clone());
        let cacheable = result.as_ref().map_or_else(Vec::new, |result| hint_revisions(types, result));
        methods.insert(
            name.clone(),
            Method {
                rust: names::constant(name),
                kind: newest.kind,
                params: newest.params.clone(),
                result,
                client: select(|method| method.client),
                server: select(|method| method.server),
                embedded: select(|method| method.embedded),
                name_source: curation.name_source.get(name).cloned(),
                cacheable,
                may_ask: select(|method| method.may_ask),
                listen: if curation.listen.methods.contains(name) {
                    uses.iter()
                        .map(|(revision, _)| (*revision).to_owned())
                        .filter(|r| *r >= curation.listen.since)
                        .collect()
                } else {
                    Vec::new()
                },
                extension: None,
            },
        );
    }
    Ok(methods)
}

/// The revisions in which a result carries cache hints.
fn hint_revisions(types: &BTreeMap<String, Type>, result: &str) -> Vec<String> {
    match types.get(result).map(|definition| (&definition.shape, &definition.revisions)) {
        Some((Shape::Struct { members }, revisions)) => members
            .get("ttlMs")
            .map_or_else(Vec::new, |member| member.revisions.clone().unwrap_or_else(|| revisions.clone())),
        _ => Vec::new(),
    }
}
