//! Our own documentation of the protocol's types, from `docs.toml`.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Kind, Model, Shape};

/// The documentation, with links that resolve from any generated file.
pub(crate) struct Docs {
    tables: BTreeMap<String, BTreeMap<String, String>>,
    links: BTreeMap<String, String>,
}

impl Docs {
    /// Reads `docs.toml`; what it leaves out or has too much is an error that says where.
    pub(crate) fn read(text: &str, model: &Model) -> Result<Self, String> {
        let tables: BTreeMap<String, BTreeMap<String, String>> =
            toml::from_str(text).map_err(|fault| format!("docs.toml: {fault}"))?;
        let mut links: BTreeMap<String, String> = BY_HAND.iter().map(|name| link(name, "crate")).collect();
        for definition in model.types.values().filter(|definition| module_path(&definition.topic) == "crate") {
            links.extend([link(&definition.rust, "crate")]);
        }
        let docs = Self { tables, links };
        docs.check(model)?;
        Ok(docs)
    }

    /// The documentation of a type.
    pub(crate) fn type_doc(&self, name: &str) -> String {
        self.get(name, "_").unwrap_or_default()
    }

    /// The documentation of a member or a string value: the type's own, or what holds for that name everywhere.
    pub(crate) fn member_doc(&self, name: &str, member: &str) -> String {
        self.get(name, member).or_else(|| self.get("defaults", member)).unwrap_or_default()
    }

    /// The documentation of a method.
    pub(crate) fn method_doc(&self, method: &str) -> String {
        self.get("methods", method).unwrap_or_default()
    }

    /// The documentation of a generated file.
    pub(crate) fn topic_doc(&self, topic: &str) -> String {
        self.get("topics", topic).unwrap_or_default()
    }

    fn get(&self, table: &str, key: &str) -> Option<String> {
        let mut text = self.tables.get(table)?.get(key)?.clone();
        for (name, target) in &self.links {
            text = text.replace(&format!("[`{name}`]"), &format!("[`{name}`]({target})"));
        }
        Some(text)
    }

    /// Nothing may be undocumented, and nothing may be documented that does not exist.
    fn check(&self, model: &Model) -> Result<(), String> {
        let mut missing = Vec::new();
        let mut expected: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (name, definition) in &model.types {
            let keys = expected.entry(name).or_default();
            keys.insert("_");
            match &definition.shape {
                Shape::Struct { members } => {
                    keys.extend(
                        members
                            .iter()
                            .filter(|(_, m)| !matches!(m.kind, Kind::Const(_)))
                            .map(|(wire, _)| wire.as_str()),
                    );
                }
                Shape::Strings { values, .. } => keys.extend(values.iter().map(|value| value.wire.as_str())),
                Shape::Union { .. } | Shape::Alias(_) => {}
            }
            missing.extend(
                keys.iter().filter(|key| self.member_doc(name, key).is_empty()).map(|key| format!("[{name}] {key}")),
            );
        }
        let topics: BTreeSet<&str> = model.types.values().map(|definition| definition.topic.as_str()).collect();
        missing.extend(
            topics.iter().filter(|topic| self.topic_doc(topic).is_empty()).map(|topic| format!("[topics] {topic}")),
        );
        missing.extend(
            model
                .methods
                .keys()
                .filter(|method| self.method_doc(method).is_empty())
                .map(|method| format!("[methods] {method}")),
        );
        if !missing.is_empty() {
            return Err(format!("docs.toml has no entry for:\n  {}", missing.join("\n  ")));
        }
        expected.insert("topics", topics);
        expected.insert("methods", model.methods.keys().map(String::as_str).collect());
        for (table, entries) in &self.tables {
            let known = expected.get(table.as_str());
            if let Some(key) = entries
                .keys()
                .find(|key| table != "defaults" && !known.is_some_and(|known| known.contains(key.as_str())))
            {
                return Err(format!("docs.toml documents [{table}] {key}, which the model does not have"));
            }
        }
        Ok(())
    }
}

/// Hand-written types that the documentation links to.
const BY_HAND: [&str; 14] = [
    "ElicitValue",
    "ErrorCode",
    "ErrorObject",
    "LoggingLevel",
    "Meta",
    "Method",
    "Number",
    "OneOrMany",
    "OrderedMap",
    "ProgressToken",
    "ProtocolVersion",
    "RawJson",
    "RawObject",
    "RequestId",
];

/// The public module of a topic's types.
pub(crate) fn module_path(topic: &str) -> &'static str {
    match topic {
        "core_tasks" => "crate::core_tasks",
        "tasks" => "crate::tasks",
        _ => "crate",
    }
}

fn link(name: &str, module: &str) -> (String, String) {
    (name.to_owned(), format!("{module}::{name}"))
}

/// Writes documentation: the first sentence as a summary, the rest as a paragraph, wrapped as a person would.
pub(crate) fn doc_lines(text: &str, marker: &str) -> String {
    const WIDTH: usize = 100;
    let mut lines = Vec::new();
    for (index, paragraph) in text.trim().split("\n\n").enumerate() {
        let (summary, rest) = match paragraph.split_once(". ") {
            Some((summary, rest)) if index == 0 => (format!("{summary}."), Some(rest)),
            _ => (paragraph.to_owned(), None),
        };
        if index > 0 {
            lines.push(String::new());
        }
        wrap(&summary, WIDTH, &mut lines);
        if let Some(rest) = rest {
            lines.push(String::new());
            wrap(rest, WIDTH, &mut lines);
        }
    }
    lines.iter().map(|line| format!("{marker} {line}").trim_end().to_owned() + "\n").collect()
}

fn wrap(text: &str, width: usize, lines: &mut Vec<String>) {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && line.len() + 1 + word.len() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
}
