//! The types and methods of an extension, which `curation.toml` states.

use std::collections::BTreeMap;

use super::curation::{Curation, ExtensionMethod, Sender};
use crate::model::{ExtensionUse, Kind, Member, Method, MethodKind, REVISIONS, Required, Shape, Type};
use crate::names;

/// Adds the extension's types, under `topic.Name` so that they never meet a core type of the same name.
pub(crate) fn add_types(types: &mut BTreeMap<String, Type>, curation: &Curation) -> Result<(), String> {
    let extension = &curation.extension;
    for name in extension.types.keys() {
        let members = members(name, curation)?;
        let definition = Type {
            rust: name.clone(),
            topic: extension.topic.clone(),
            revisions: since(&extension.since),
            shape: Shape::Struct { members },
        };
        types.insert(format!("{}.{name}", extension.topic), definition);
    }
    Ok(())
}

fn members(name: &str, curation: &Curation) -> Result<BTreeMap<String, Member>, String> {
    let definition =
        curation.extension.types.get(name).ok_or_else(|| format!("[extension.types] has no `{name}` to extend"))?;
    let mut all = match &definition.extends {
        Some(base) => members(base, curation)?,
        None => BTreeMap::new(),
    };
    for (wire, kind) in &definition.members {
        let (kind, required) = match kind.strip_suffix('!') {
            Some(kind) => (kind, Required::Always),
            None => (kind.as_str(), Required::Never),
        };
        let kind: Kind = kind.parse().map_err(|fault| format!("[extension.types.{name}] {wire}: {fault}"))?;
        let rust = names::member(wire);
        let (narrower, essential) = (None, false);
        let boxed = curation.is_boxed(&format!("{name}.{wire}"), &kind);
        all.insert(wire.clone(), Member { rust, kind, revisions: None, required, narrower, essential, boxed });
    }
    Ok(all)
}

/// Adds the extension's methods; one that an older core had as well keeps what the core says of it.
pub(crate) fn add_methods(methods: &mut BTreeMap<String, Method>, curation: &Curation) {
    let extension = &curation.extension;
    for (name, method) in &extension.methods {
        let ExtensionMethod { kind, params, result, by } = method;
        let revisions = since(&extension.since);
        let (client, server) = match by {
            Sender::Client => (revisions, Vec::new()),
            Sender::Server => (Vec::new(), revisions),
        };
        let listen = if *kind == MethodKind::Notification { server.clone() } else { Vec::new() };
        let extended = ExtensionUse { id: extension.id.clone(), client, server };
        methods
            .entry(name.clone())
            .or_insert_with(|| Method {
                rust: names::constant(name),
                kind: *kind,
                params: params.clone(),
                result: result.clone(),
                client: Vec::new(),
                server: Vec::new(),
                embedded: Vec::new(),
                name_source: curation.name_source.get(name).cloned(),
                cacheable: Vec::new(),
                may_ask: Vec::new(),
                listen,
                extension: None,
            })
            .extension = Some(extended);
    }
}

fn since(first: &str) -> Vec<String> {
    REVISIONS.iter().filter(|revision| **revision >= first).map(|revision| (*revision).to_owned()).collect()
}
