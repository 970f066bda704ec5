//! Headers that repeat parameters of a call, for intermediaries that do not read bodies.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_kernel::client::CallHeaders;
use mcp_types::{HeaderParam, ListToolsResult, Method, ObjectRef, RawObject};
use serde::Deserialize;

use crate::AuthorizationError;
use crate::cache::Owner;
use crate::call::telemetry::excerpt;
use crate::context::CallExtensions;
use crate::state::Shared;
use crate::transport::CredentialFingerprint;

/// The tools whose schema requests parameters in headers, from the latest lists.
///
/// A server may list other tools for each user, so that a list says nothing about the calls of other users, unless it is
/// public.
#[derive(Default)]
pub(crate) struct ToolHeaders {
    /// From lists that are public, and from all lists if the credentials never change.
    shared: ToolTable,
    /// From private lists, by the credentials that they were requested with.
    private: BTreeMap<CredentialFingerprint, ToolTable>,
    /// The number and size of the tools in all tables.
    tools: usize,
    bytes: usize,
    /// Counts the uses of tables, to find the one that was not used for the longest time.
    uses: u64,
}

#[derive(Default)]
struct ToolTable {
    params: BTreeMap<String, Arc<[HeaderParam]>>,
    bytes: usize,
    last_use: u64,
}

/// What determines the headers of a call.
#[derive(Debug)]
pub(crate) struct HeadersOf {
    /// The credentials whose list of tools counts; if they are not known, only a public one. `None` is the client: the call
    /// has no credentials of its own.
    pub(crate) owner: Option<Owner>,
    /// The name of the tool, if it is known without a look at the parameters.
    pub(crate) tool: Option<String>,
}

impl HeadersOf {
    /// Determines it for a call with these values.
    pub(crate) async fn call(
        shared: &Shared,
        method: &Method,
        tool: Option<String>,
        extensions: &CallExtensions,
    ) -> Result<Self, AuthorizationError> {
        if extensions.is_empty() {
            return Ok(Self { owner: None, tool });
        }
        let depends_on_credentials = *method == Method::TOOLS_CALL
            && shared.settings.credentials.is_some()
            && shared.read(|core| core.tool_headers.has_private());
        let owner = if depends_on_credentials { shared.owner_of(extensions).await? } else { Owner::Unknown };
        Ok(Self { owner: Some(owner), tool })
    }

    /// Takes the name of the tool. A call that is not sent with it gets the name from its parameters later.
    pub(crate) fn take(&mut self) -> Self {
        Self { owner: self.owner, tool: self.tool.take() }
    }
}

/// Maximum number of tools, and maximum size of all names; further tools are called without these headers.
const MAX_TOOLS: usize = 10_000;
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Maximum number of users with tools of their own.
const MAX_PRIVATE: usize = 1024;

impl ToolHeaders {
    /// Records the tools of a page that was requested with the credentials of `owner`, and removes those with invalid header
    /// annotations from it.
    // H-67, H-68
    pub(crate) fn record(&mut self, owner: Owner, is_public: bool, result: &mut ListToolsResult) {
        let is_recorded = is_public || owner != Owner::Unknown;
        let private = match owner {
            Owner::Known(owner) if is_public => {
                // The latest list counts.
                self.remove(owner);
                None
            }
            Owner::Known(owner) => {
                // An empty table counts, too: its user has no tools with headers.
                self.private_table(owner);
                Some(owner)
            }
            Owner::Fixed | Owner::Unknown => None,
        };
        result.tools.retain(|tool| {
            let params = HeaderParam::from_schema(&tool.input_schema);
            if let Err(why) = &params {
                tracing::warn!(target: "mcp", tool = excerpt(&tool.name), why, "a tool with invalid header annotations is left out");
            }
            let is_valid = params.is_ok();
            if is_recorded {
                self.insert(private, &tool.name, params.unwrap_or_default());
            }
            is_valid
        });
    }

    /// Returns the private table of a user, which is created if there is none.
    fn private_table(&mut self, owner: CredentialFingerprint) -> &mut ToolTable {
        if !self.private.contains_key(&owner) && self.private.len() >= MAX_PRIVATE {
            self.remove_least_recently_used(None);
        }
        self.uses += 1;
        let table = self.private.entry(owner).or_default();
        table.last_use = self.uses;
        table
    }

    fn insert(&mut self, owner: Option<CredentialFingerprint>, tool: &str, params: Vec<HeaderParam>) {
        let table = match owner {
            Some(owner) => self.private_table(owner),
            None => &mut self.shared,
        };
        if let Some(before) = table.params.remove(tool) {
            let size = size(tool, &before);
            table.bytes -= size;
            (self.tools, self.bytes) = (self.tools - 1, self.bytes - size);
        }
        if params.is_empty() {
            return;
        }
        let size = size(tool, &params);
        let is_full = |this: &Self| this.tools >= MAX_TOOLS || this.bytes + size > MAX_BYTES;
        while is_full(self) && self.remove_least_recently_used(owner) {}
        if is_full(self) {
            return;
        }
        (self.tools, self.bytes) = (self.tools + 1, self.bytes + size);
        let table = match owner {
            Some(owner) => self.private_table(owner),
            None => &mut self.shared,
        };
        table.bytes += size;
        table.params.insert(tool.to_owned(), params.into());
    }

    /// Removes the private table that was not used for the longest time, unless it is that of `except`; returns whether there
    /// was one.
    fn remove_least_recently_used(&mut self, except: Option<CredentialFingerprint>) -> bool {
        let others = self.private.iter().filter(|(owner, _)| Some(**owner) != except);
        let oldest = others.min_by_key(|(_, table)| table.last_use).map(|(owner, _)| *owner);
        oldest.is_some_and(|oldest| self.remove(oldest))
    }

    /// Removes the private tools of a user; returns whether there was a table.
    pub(crate) fn remove(&mut self, owner: CredentialFingerprint) -> bool {
        let Some(table) = self.private.remove(&owner) else { return false };
        self.tools -= table.params.len();
        self.bytes -= table.bytes;
        true
    }

    /// Returns whether the headers of a call depend on its credentials.
    pub(crate) fn has_private(&self) -> bool {
        !self.private.is_empty()
    }

    /// Returns the headers of a call with the credentials of `owner`. `tool` is the name of the tool, if the caller has it.
    pub(crate) fn get(
        &mut self,
        owner: Owner,
        method: &Method,
        params: ObjectRef<'_>,
        tool: Option<String>,
    ) -> CallHeaders {
        let Some(name) = tool.or_else(|| name_of(method, params)) else { return CallHeaders::default() };
        let mut headers = Vec::new();
        if *method == Method::TOOLS_CALL
            && let Some(known) = self.table(owner).params.get(&name)
            && let Ok(ToolArguments { arguments: Some(arguments) }) = params.decode()
        {
            let value = |param: &HeaderParam| Some((param.name.clone(), param.value(&arguments)?));
            headers = known.iter().filter_map(value).collect();
        }
        CallHeaders::new(Some(name), headers)
    }

    /// Returns the table that counts for a user: the private one, if there is one.
    fn table(&mut self, owner: Owner) -> &ToolTable {
        if let Owner::Known(owner) = owner
            && let Some(table) = self.private.get_mut(&owner)
        {
            self.uses += 1;
            table.last_use = self.uses;
            return table;
        }
        &self.shared
    }
}

fn size(tool: &str, params: &[HeaderParam]) -> usize {
    let path = |param: &HeaderParam| param.path.iter().map(|name| name.len() + size_of::<String>()).sum::<usize>();
    let param = |param: &HeaderParam| param.name.len() + size_of::<HeaderParam>() + path(param);
    tool.len() + params.iter().map(param).sum::<usize>()
}

/// Returns the parameter that names what is called.
fn name_of(method: &Method, params: ObjectRef<'_>) -> Option<String> {
    let member = method.name_member()?;
    let named: Named<'_> = params.decode().ok()?;
    let name = match member {
        "name" => named.name,
        "uri" => named.uri,
        _ => named.task_id,
    };
    name.map(Cow::into_owned)
}

/// The parameters that name what is called.
#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    uri: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "taskId")]
    task_id: Option<Cow<'a, str>>,
}

/// The arguments of a tool call.
#[derive(Deserialize)]
struct ToolArguments {
    #[serde(default)]
    arguments: Option<RawObject>,
}

#[cfg(test)]
mod tests {
    use mcp_types::Tool;
    use serde_json::json;

    use super::*;

    fn user(number: u16) -> Owner {
        let [high, low] = number.to_be_bytes();
        let mut digest = [0; 32];
        (digest[0], digest[1]) = (high, low);
        Owner::Known(CredentialFingerprint::new([0; 16], digest))
    }

    /// A list of the tool `t`, which has its parameter in this header.
    fn list(header: Option<&str>) -> ListToolsResult {
        let mut property = json!({ "type": "string" });
        if let Some(header) = header {
            property["x-mcp-header"] = json!(header);
        }
        let schema = RawObject::new(&json!({ "type": "object", "properties": { "p": property } })).unwrap();
        ListToolsResult::new(vec![Tool::new("t").input_schema(schema)])
    }

    fn header(headers: &mut ToolHeaders, owner: Owner) -> Option<String> {
        let params = RawObject::new(&json!({ "name": "t", "arguments": { "p": "x" } })).unwrap();
        let [headers, named] =
            [None, Some("t".to_owned())].map(|tool| headers.get(owner, &Method::TOOLS_CALL, (&params).into(), tool));
        assert_eq!(headers, named);
        assert_eq!(headers.name.as_deref(), Some("t"));
        headers.params.into_iter().next().map(|(name, _)| name)
    }

    /// A private list determines the headers of its user only, and a public one those of users without a list of their own.
    // covers: GW-6, SEC-8
    #[test]
    fn gw_6_tool_headers_are_those_of_the_user() {
        let mut headers = ToolHeaders::default();
        headers.record(user(1), false, &mut list(Some("One")));
        assert_eq!(header(&mut headers, user(1)).as_deref(), Some("One"));
        for other in [user(2), Owner::Unknown, Owner::Fixed] {
            assert_eq!(header(&mut headers, other), None);
        }
        // Of whom nothing is known, nothing is recorded.
        headers.record(Owner::Unknown, false, &mut list(Some("Unknown")));
        assert_eq!(header(&mut headers, Owner::Unknown), None);
        headers.record(user(2), true, &mut list(Some("Public")));
        for (owner, expected) in [(user(1), "One"), (user(2), "Public"), (Owner::Unknown, "Public")] {
            assert_eq!(header(&mut headers, owner).as_deref(), Some(expected));
        }
        // The latest list of a user counts, also if it asks for no headers.
        headers.record(user(2), false, &mut list(None));
        assert_eq!(header(&mut headers, user(2)), None);
        headers.record(user(1), true, &mut list(Some("Public")));
        assert_eq!(header(&mut headers, user(1)).as_deref(), Some("Public"));
        assert_eq!((headers.tools, headers.private.len()), (1, 1));
    }

    /// Users whose tools were not used for the longest time make room for others.
    // covers: GW-6, SEC-7
    #[test]
    fn gw_6_tool_headers_are_bounded() {
        let mut headers = ToolHeaders::default();
        for number in 0..MAX_PRIVATE as u16 {
            headers.record(user(number), false, &mut list(Some("Own")));
        }
        assert!(header(&mut headers, user(0)).is_some());
        headers.record(user(5000), false, &mut list(Some("Own")));
        let is_known = |headers: &mut ToolHeaders, number| header(headers, user(number)).is_some();
        assert!(is_known(&mut headers, 0) && !is_known(&mut headers, 1) && is_known(&mut headers, 5000));
        assert_eq!((headers.private.len(), headers.tools), (MAX_PRIVATE, MAX_PRIVATE));
        // One long list takes the place of many.
        let long = "x".repeat(1000);
        let tool = |number: usize| {
            let mut tool = list(Some("Own")).tools.remove(0);
            tool.name = format!("{number}{long}");
            tool
        };
        headers.record(user(5001), false, &mut ListToolsResult::new((0..MAX_TOOLS).map(tool).collect()));
        assert!(headers.bytes <= MAX_BYTES && headers.private.len() == 1, "{}", headers.private.len());
        let table = headers.private.values().next().unwrap();
        assert_eq!((table.bytes, table.params.len()), (headers.bytes, headers.tools));
        let Owner::Known(owner) = user(5001) else { panic!("it is known") };
        assert!(headers.remove(owner));
        assert_eq!((headers.bytes, headers.tools), (0, 0));
    }
}
