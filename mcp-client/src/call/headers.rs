//! What is repeated in headers, for those on the way who do not read bodies.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_types::{HeaderParam, ListToolsResult, Method, RawObject};
use serde::Deserialize;

use crate::call::telemetry::excerpt;

/// What the headers of a call say about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Headers {
    /// What the call is about: a tool, a prompt, a resource.
    pub name: Option<String>,
    /// Parameters by the names of their headers, without `Mcp-Param-`.
    pub params: Vec<(String, String)>,
}

impl Headers {
    pub(crate) fn is_empty(&self) -> bool {
        self.name.is_none() && self.params.is_empty()
    }
}

/// The tools of the server that want parameters in headers: those of the latest lists.
#[derive(Default)]
pub(crate) struct Tools {
    params: BTreeMap<String, Arc<[HeaderParam]>>,
    /// What all names have.
    bytes: usize,
}

/// How many tools are kept in mind, and how many bytes all names may have; tools beyond that have to do without headers.
const MOST_TOOLS: usize = 10_000;
const MOST_BYTES: usize = 4 * 1024 * 1024;

impl Tools {
    /// Takes note of tools, and drops those that break the rules for headers.
    // H-67, H-68
    pub(crate) fn learn(&mut self, result: &mut ListToolsResult) {
        result.tools.retain(|tool| match HeaderParam::find(&tool.input_schema) {
            Ok(params) => {
                self.remember(&tool.name, params);
                true
            }
            Err(why) => {
                tracing::warn!(target: "mcp", tool = excerpt(&tool.name), why, "a tool of the server is left out");
                self.remember(&tool.name, Vec::new());
                false
            }
        });
    }

    fn remember(&mut self, tool: &str, params: Vec<HeaderParam>) {
        if let Some(before) = self.params.remove(tool) {
            self.bytes -= size(tool, &before);
        }
        let size = size(tool, &params);
        if !params.is_empty() && self.params.len() < MOST_TOOLS && self.bytes + size <= MOST_BYTES {
            self.bytes += size;
            self.params.insert(tool.to_owned(), params.into());
        }
    }

    /// Forgets all tools, because they were listed for other credentials.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
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

fn size(tool: &str, params: &[HeaderParam]) -> usize {
    let path = |param: &HeaderParam| param.path.iter().map(|name| name.len() + size_of::<String>()).sum::<usize>();
    let param = |param: &HeaderParam| param.name.len() + size_of::<HeaderParam>() + path(param);
    tool.len() + params.iter().map(param).sum::<usize>()
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
