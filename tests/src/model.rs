//! The model of facts, as the tests see it: read from the file, not from the generated code.

use std::path::Path;

use serde_json::{Map, Value};

/// `mcp-types/schema/model.json`.
pub struct Model(Value);

impl Model {
    /// Reads the model that is part of this repository.
    ///
    /// # Panics
    ///
    /// Panics if the file is missing or is not JSON.
    #[must_use]
    pub fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mcp-types/schema/model.json");
        let text = std::fs::read_to_string(&path).expect("model.json can be read");
        Self(serde_json::from_str(&text).expect("model.json is JSON"))
    }

    /// The names of all types.
    pub fn types(&self) -> impl Iterator<Item = &str> {
        self.table("types").keys().map(String::as_str)
    }

    /// The facts about a type.
    #[must_use]
    pub fn facts(&self, name: &str) -> Option<Facts<'_>> {
        self.table("types").get(name).map(Facts)
    }

    /// The methods and what is known of them.
    pub fn methods(&self) -> impl Iterator<Item = (&str, Facts<'_>)> {
        self.table("methods").iter().map(|(name, facts)| (name.as_str(), Facts(facts)))
    }

    /// The known faults of the official files.
    pub fn errata(&self) -> impl Iterator<Item = Facts<'_>> {
        self.0.get("errata").and_then(Value::as_array).into_iter().flatten().map(Facts)
    }

    fn table(&self, name: &str) -> &Map<String, Value> {
        self.0.get(name).and_then(Value::as_object).expect("a table of the model")
    }
}

/// What the model says about one thing.
#[derive(Clone, Copy)]
pub struct Facts<'a>(&'a Value);

impl<'a> Facts<'a> {
    /// A fact.
    #[must_use]
    pub fn get(self, name: &str) -> Option<&'a Value> {
        self.0.get(name)
    }

    /// A fact that is a string.
    #[must_use]
    pub fn text(self, name: &str) -> &'a str {
        self.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether a list of revisions, such as `revisions` or `client`, has this one.
    #[must_use]
    pub fn has(self, list: &str, revision: &str) -> bool {
        self.get(list).and_then(Value::as_array).is_some_and(|known| known.iter().any(|known| known == revision))
    }

    /// The members of a struct.
    #[must_use]
    pub fn members(self) -> Option<&'a Map<String, Value>> {
        self.get("struct")?.get("members")?.as_object()
    }

    /// Whether a member of this type exists in a revision.
    #[must_use]
    pub fn member_exists(self, member: &Value, revision: &str) -> bool {
        let member = Facts(member);
        if member.get("revisions").is_some() {
            member.has("revisions", revision)
        } else {
            self.has("revisions", revision)
        }
    }

    /// Whether a member of this type must be present in a revision.
    #[must_use]
    pub fn member_required(self, member: &Value, revision: &str) -> bool {
        match member.get("required") {
            None => false,
            Some(Value::String(_)) => self.member_exists(member, revision),
            Some(some) => Facts(some).has("in", revision),
        }
    }
}
