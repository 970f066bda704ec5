//! Headers that repeat parameters of a call, for intermediaries that do not read bodies.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_kernel::client::CallHeaders;
use mcp_types::{HeaderParam, ListToolsResult, Method, RawObject};
use serde::Deserialize;

use crate::call::telemetry::excerpt;

/// The tools whose schema requests parameters in headers, from the latest lists.
#[derive(Default)]
pub(crate) struct ToolHeaders {
    params: BTreeMap<String, Arc<[HeaderParam]>>,
    /// The size of all names.
    bytes: usize,
}

/// Maximum number of tools, and maximum size of all names; further tools are called without these headers.
const MAX_TOOLS: usize = 10_000;
const MAX_BYTES: usize = 4 * 1024 * 1024;

impl ToolHeaders {
    /// Records the tools of a page, and removes those with invalid header annotations from it.
    // H-67, H-68
    pub(crate) fn record(&mut self, result: &mut ListToolsResult) {
        result.tools.retain(|tool| match HeaderParam::from_schema(&tool.input_schema) {
            Ok(params) => {
                self.insert(&tool.name, params);
                true
            }
            Err(why) => {
                tracing::warn!(target: "mcp", tool = excerpt(&tool.name), why, "a tool with invalid header annotations is left out");
                self.insert(&tool.name, Vec::new());
                false
            }
        });
    }

    fn insert(&mut self, tool: &str, params: Vec<HeaderParam>) {
        if let Some(before) = self.params.remove(tool) {
            self.bytes -= size(tool, &before);
        }
        let size = size(tool, &params);
        if !params.is_empty() && self.params.len() < MAX_TOOLS && self.bytes + size <= MAX_BYTES {
            self.bytes += size;
            self.params.insert(tool.to_owned(), params.into());
        }
    }

    /// Removes all tools, because they were listed for other credentials.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the headers of a call.
    pub(crate) fn get(&self, method: &Method, params: &RawObject) -> CallHeaders {
        let Some(member) = method.name_member() else { return CallHeaders::default() };
        let Ok(named) = params.decode::<Named<'_>>() else { return CallHeaders::default() };
        let name = match member {
            "name" => named.name,
            "uri" => named.uri,
            _ => named.task_id,
        };
        let Some(name) = name else { return CallHeaders::default() };
        let mut params = Vec::new();
        if *method == Method::TOOLS_CALL
            && let (Some(known), Some(arguments)) = (self.params.get(name.as_ref()), &named.arguments)
        {
            let value = |param: &HeaderParam| Some((param.name.clone(), param.value(arguments)?));
            params = known.iter().filter_map(value).collect();
        }
        CallHeaders::new(Some(name.into_owned()), params)
    }
}

fn size(tool: &str, params: &[HeaderParam]) -> usize {
    let path = |param: &HeaderParam| param.path.iter().map(|name| name.len() + size_of::<String>()).sum::<usize>();
    let param = |param: &HeaderParam| param.name.len() + size_of::<HeaderParam>() + path(param);
    tool.len() + params.iter().map(param).sum::<usize>()
}

/// The parameters that are repeated in headers.
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
