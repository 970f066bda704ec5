//! What is repeated in headers, for those on the way who do not read bodies.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_types::{HeaderParam, ListToolsResult, Method, RawObject};
use serde::Deserialize;

/// What the headers of a call say about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Headers {
    /// What the call is about: a tool, a prompt, a resource (H-47).
    pub name: Option<String>,
    /// Parameters by the names of their headers, without `Mcp-Param-` (H-61).
    pub params: Vec<(String, String)>,
}

impl Headers {
    pub(crate) fn is_empty(&self) -> bool {
        self.name.is_none() && self.params.is_empty()
    }
}

/// The tools of the server that want parameters in headers: those of the latest lists (H-81).
#[derive(Default)]
pub(crate) struct Tools {
    params: BTreeMap<String, Arc<[HeaderParam]>>,
}

/// How many tools are kept in mind; whoever offers more has to do without headers.
const MOST_TOOLS: usize = 10_000;

impl Tools {
    /// Takes note of tools, and drops those that break the rules for headers (H-67, H-68).
    pub(crate) fn learn(&mut self, result: &mut ListToolsResult) {
        result.tools.retain(|tool| match HeaderParam::find(&tool.input_schema) {
            Ok(params) if params.is_empty() => {
                self.params.remove(&tool.name);
                true
            }
            Ok(params) => {
                if self.params.len() < MOST_TOOLS || self.params.contains_key(&tool.name) {
                    self.params.insert(tool.name.clone(), params.into());
                }
                true
            }
            Err(why) => {
                tracing::warn!(target: "mcp", tool = tool.name, why, "a tool of the server is left out");
                self.params.remove(&tool.name);
                false
            }
        });
    }

    /// Forgets all tools, because they were listed for other credentials.
    pub(crate) fn clear(&mut self) {
        self.params.clear();
    }

    /// What the headers of a call have to say.
    pub(crate) fn headers(&self, method: &Method, params: &RawObject) -> Headers {
        let Some(member) = method.name_member() else { return Headers::default() };
        let Ok(named) = params.decode::<Named<'_>>() else { return Headers::default() };
        let name = match member {
            "name" => named.name,
            "uri" => named.uri,
            _ => named.task_id,
        };
        let Some(name) = name else { return Headers::default() };
        let mut params = Vec::new();
        if *method == Method::TOOLS_CALL
            && let (Some(known), Some(arguments)) = (self.params.get(name.as_ref()), &named.arguments)
        {
            let value = |param: &HeaderParam| Some((param.name.clone(), param.value(arguments)?));
            params = known.iter().filter_map(value).collect();
        }
        Headers { name: Some(name.into_owned()), params }
    }
}

/// The members that headers are made of.
#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    uri: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "taskId")]
    task_id: Option<Cow<'a, str>>,
    #[serde(default)]
    arguments: Option<RawObject>,
}
