//! Makes up values of any type, for properties that must hold for all of them.

use serde_json::{Map, Value, json};

use crate::model::{Facts, Model};

/// A small generator of random numbers (SplitMix64): the same seed gives the same values everywhere.
pub struct Random(u64);

impl Random {
    /// Starts at a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % bound
    }

    /// True `percent` times out of a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[usize::try_from(self.below(choices.len() as u64)).unwrap_or(0)]
    }
}

/// Which members and variants a made-up value may have.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope<'a> {
    /// What the revision has, and all that it demands.
    Exactly(&'a str),
    /// What any revision has, and all that this one demands.
    Anything(&'a str),
}

impl Scope<'_> {
    fn is_exact(&self) -> bool {
        matches!(self, Self::Exactly(_))
    }

    fn revision(&self) -> &str {
        match self {
            Self::Exactly(revision) | Self::Anything(revision) => revision,
        }
    }
}

/// Makes up values from the model of facts.
pub struct Sampler<'a> {
    model: &'a Model,
    scope: Scope<'a>,
    random: Random,
}

/// How deep optional members may nest before they are left out.
const DEPTH: usize = 7;

impl<'a> Sampler<'a> {
    /// Makes up values within a scope.
    #[must_use]
    pub fn new(model: &'a Model, scope: Scope<'a>, seed: u64) -> Self {
        Self { model, scope, random: Random::new(seed) }
    }

    /// A value of the named type.
    pub fn value(&mut self, name: &str) -> Value {
        self.named(name, 0)
    }

    fn named(&mut self, name: &str, depth: usize) -> Value {
        if name == "InputResponses" {
            // Raw in Rust, because only the question tells which of the three an answer is (CG-12).
            let answer = *self.random.pick(&["ElicitResult", "CreateMessageResult", "ListRootsResult"]);
            return json!({ "question": self.named(answer, depth + 1) });
        }
        let Some(facts) = self.model.facts(name) else { return self.by_hand(name) };
        if let Some(members) = facts.members() {
            return self.structure(name, facts, members, depth);
        }
        if let Some(set) = facts.get("strings") {
            let values = set["values"].as_array().expect("the values of a set");
            return self.random.pick(values)["wire"].clone();
        }
        if let Some(union) = facts.get("union") {
            let variants = union["variants"].as_array().expect("the variants of a union");
            let possible: Vec<&Value> = variants.iter().filter(|variant| self.allows(variant)).collect();
            let holds = self.random.pick(&possible)["holds"].as_str().expect("a variant holds a type");
            return self.named(holds, depth);
        }
        self.kind(facts.text("alias"), depth)
    }

    fn allows(&self, variant: &Value) -> bool {
        match self.scope {
            Scope::Anything(_) => true,
            Scope::Exactly(revision) => {
                variant["revisions"].as_array().is_some_and(|known| known.iter().any(|r| r == revision))
            }
        }
    }

    fn structure(&mut self, name: &str, facts: Facts<'_>, members: &Map<String, Value>, depth: usize) -> Value {
        let mut object = Map::new();
        for (wire, member) in members {
            let exists = match self.scope {
                Scope::Anything(_) => true,
                Scope::Exactly(revision) => facts.member_exists(member, revision),
            };
            // A member that Rust cannot leave out is there whatever the revision says.
            let required = facts.member_required(member, self.scope.revision())
                || (self.scope != Scope::Exactly(self.scope.revision())
                    && member.get("required") == Some(&json!("always")));
            if exists && (required || (depth < DEPTH && self.random.chance(50))) {
                let at = format!("{name}.{wire}");
                let value = self.member(&at, member, depth + 1);
                object.insert(wire.clone(), value);
            }
        }
        Value::Object(object)
    }

    fn member(&mut self, at: &str, member: &Value, depth: usize) -> Value {
        let narrow = self.scope.is_exact()
            && member["narrower"]["revisions"]
                .as_array()
                .is_some_and(|known| known.iter().any(|r| r == self.scope.revision()));
        match at {
            "Tool.inputSchema" => return self.schema("object"),
            "Tool.outputSchema" if narrow || self.random.chance(50) => return self.schema("object"),
            "Tool.outputSchema" => return self.schema("array"),
            // All results share one metadata type; only this one demands the id (L-7).
            "SubscriptionsListenResult._meta" => {
                let mut meta = self.named("ResultMetaObject", depth);
                meta["io.modelcontextprotocol/subscriptionId"] = self.by_hand("RequestId");
                return meta;
            }
            "ElicitRequestFormParams.mode" => return json!("form"),
            "ElicitRequestURLParams.mode" => return json!("url"),
            "Annotations.priority"
            | "ModelPreferences.costPriority"
            | "ModelPreferences.speedPriority"
            | "ModelPreferences.intelligencePriority" => {
                return self.random.pick(&[json!(0), json!(0.25), json!(1)]).clone();
            }
            _ => {}
        }
        let kind = member["kind"].as_str().expect("a member has a kind");
        match member["narrower"]["rule"].as_str() {
            Some("object") if narrow => self.object(depth),
            Some("one") if narrow => self.named("SamplingMessageContentBlock", depth),
            Some("no_lists") if narrow => json!({ "field": "text", "other": 1.5 }),
            _ => self.kind(kind, depth),
        }
    }

    fn kind(&mut self, kind: &str, depth: usize) -> Value {
        if let Some((outer, inner)) = kind.split_once('<') {
            let inner = inner.trim_end_matches('>');
            // What is deep already holds no more than it must.
            let count = if depth < DEPTH { self.random.below(4) } else { 0 };
            return match outer {
                "list" => (0..count).map(|_| self.kind(inner, depth + 1)).collect(),
                "map" => {
                    (0..count).map(|index| (self.key(index), self.kind(inner, depth + 1))).collect::<Map<_, _>>().into()
                }
                "nullable" if self.random.chance(30) => Value::Null,
                "one_or_many" if self.random.chance(50) => (0..count).map(|_| self.kind(inner, depth + 1)).collect(),
                _ => self.kind(inner, depth),
            };
        }
        if let Some(constant) = kind.strip_prefix('\'') {
            return json!(constant.trim_end_matches('\''));
        }
        match kind {
            "string" => self.text(),
            "integer" => json!(self.random.below(1 << 40)),
            "number" => {
                self.random.pick(&[json!(0), json!(17), json!(-3), json!(0.5), json!(-2.75e-3), json!(1e20)]).clone()
            }
            "boolean" => json!(self.random.chance(50)),
            "any" => self.any(depth),
            "object" => self.object(depth),
            name => self.named(name, depth),
        }
    }

    /// Values of the types that are written by hand.
    fn by_hand(&mut self, name: &str) -> Value {
        match name {
            "RequestId" | "ProgressToken" => self
                .random
                .pick(&[json!(0), json!(-1), json!(1_754_000_000_000_i64), json!("1"), json!(""), json!("ab\"c")])
                .clone(),
            "LoggingLevel" => self.random.pick(&[json!("debug"), json!("notice"), json!("emergency")]).clone(),
            "ProtocolVersion" => {
                self.random.pick(&[json!("2025-06-18"), json!("2026-07-28"), json!("2099-01-01")]).clone()
            }
            "ResultType" => self.random.pick(&[json!("complete"), json!("input_required"), json!("else")]).clone(),
            "ElicitValue" => self
                .random
                .pick(&[json!("text"), json!(7), json!(0.5), json!(true), json!(["a", "b"]), json!([])])
                .clone(),
            "ErrorObject" => json!({ "code": -32603, "message": self.text(), "data": self.any(DEPTH) }),
            "MetaObject" => json!({ "com.example/key": self.any(DEPTH) }),
            _ => panic!("no samples of {name}"),
        }
    }

    fn schema(&mut self, kind: &str) -> Value {
        let property = json!({ "type": "string", "description": self.text() });
        json!({ "type": kind, "properties": { "a": property }, "required": ["a"] })
    }

    fn text(&mut self) -> Value {
        json!(self.random.pick(&["", "plain", "two\nlines\t\"quoted\" \\", "Grüße, 世界 👋", "\u{0}\u{1f}\u{7f}", "/"]))
    }

    fn key(&mut self, index: u64) -> String {
        format!("{}{index}", self.random.pick(&["key", "com.example/k", "ü", "a b"]))
    }

    fn object(&mut self, depth: usize) -> Value {
        let count = if depth < DEPTH { self.random.below(3) } else { 0 };
        (0..count).map(|index| (self.key(index), self.any(depth + 1))).collect::<Map<_, _>>().into()
    }

    fn any(&mut self, depth: usize) -> Value {
        match self.random.below(8) {
            0 => Value::Null,
            1 => json!(self.random.chance(50)),
            2 => json!(self.random.below(1000)),
            3 => json!(-0.125),
            4 => self.text(),
            5 if depth < DEPTH => json!([self.any(depth + 1), 1.0]),
            _ => self.object(depth),
        }
    }
}
