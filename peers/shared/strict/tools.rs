//! The tools, all of which return their text.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::message::Params;
use super::reply::CallResult;

pub(crate) struct Tools {
    names: BTreeSet<String>,
    list: Box<RawValue>,
}

impl Tools {
    pub(crate) fn new(number: usize) -> serde_json::Result<Self> {
        let others = (1..=number.saturating_sub(3)).map(|index| format!("tool_{index:02}"));
        let names: Vec<String> = ["echo", "progress", "change"].map(str::to_owned).into_iter().chain(others).collect();
        let schema: &RawValue = serde_json::from_str(SCHEMA)?;
        let tool = |name| Tool { name, description: "Returns the text.", schema };
        let list = to_raw_value(&names.iter().map(String::as_str).map(tool).collect::<Vec<_>>())?;
        Ok(Self { list, names: names.into_iter().collect() })
    }

    pub(crate) fn list(&self) -> &RawValue {
        &self.list
    }

    pub(crate) fn call<'a>(&self, params: &'a Params<'_>) -> Option<CallResult<'a>> {
        self.names.contains(params.name?).then_some(())?;
        let is_modern = params.meta.as_ref().is_some_and(|meta| meta.version.is_some());
        Some(CallResult::new(&params.arguments.as_ref()?.text, is_modern))
    }
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'static str,
    #[serde(rename = "inputSchema")]
    schema: &'a RawValue,
}

const SCHEMA: &str = r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#;
