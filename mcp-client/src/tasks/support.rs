//! Which tools run as tasks of 2025-11-25.

use std::collections::BTreeMap;

use mcp_types::{ListToolsResult, Revision, ServerCapabilities, TaskSupport, Tool};

/// Maximum number of tools, and maximum size of their names; further tools are called without a task.
const MAX_TOOLS: usize = 10_000;
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Whether a tool runs as a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Support {
    Forbidden,
    Optional,
    Required,
}

impl Support {
    // B-81: without a word it is forbidden, and so is what this client does not know.
    fn of(tool: &Tool) -> Self {
        match tool.execution.as_ref().and_then(|execution| execution.task_support.as_ref()) {
            Some(support) if *support == TaskSupport::OPTIONAL => Self::Optional,
            Some(support) if *support == TaskSupport::REQUIRED => Self::Required,
            Some(_) | None => Self::Forbidden,
        }
    }
}

/// The tools of a server of 2025-11-25 that has tasks, from the latest lists. Empty for any other server.
#[derive(Default)]
pub(crate) struct ToolTasks {
    /// Whether the server runs tools as tasks.
    pub(crate) is_offered: bool,
    /// Whether the server has `tasks/cancel`.
    pub(crate) has_cancel: bool,
    tools: BTreeMap<String, Support>,
    bytes: usize,
}

impl ToolTasks {
    /// Takes over what a server declares, and forgets its tools.
    // B-80
    pub(crate) fn set_server(&mut self, revision: Revision, capabilities: Option<&ServerCapabilities>) {
        let declared = capabilities.filter(|_| revision == Revision::V2025_11_25).and_then(|all| all.tasks.as_ref());
        let requests = declared.and_then(|tasks| tasks.requests.as_ref());
        *self = Self {
            is_offered: requests.and_then(|requests| requests.tools.as_ref()).is_some_and(|tools| tools.call.is_some()),
            has_cancel: declared.is_some_and(|tasks| tasks.cancel.is_some()),
            ..Self::default()
        };
    }

    /// Forgets the tools, because their list changed.
    pub(crate) fn clear(&mut self) {
        self.tools.clear();
        self.bytes = 0;
    }

    /// Records the tools of a page.
    pub(crate) fn record(&mut self, result: &ListToolsResult) {
        for tool in &result.tools {
            if let Some(known) = self.tools.get_mut(&tool.name) {
                *known = Support::of(tool);
            } else if self.tools.len() < MAX_TOOLS && self.bytes + tool.name.len() <= MAX_BYTES {
                self.bytes += tool.name.len();
                self.tools.insert(tool.name.clone(), Support::of(tool));
            }
        }
    }

    /// Returns whether a tool runs as a task, if it was listed.
    pub(crate) fn get(&self, tool: &str) -> Option<Support> {
        self.tools.get(tool).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many tools a server lists, and however long their names are.
    // covers: SEC-7
    #[test]
    fn sec_7_known_tools_are_bounded() {
        let mut known = ToolTasks::default();
        let list = |names: &mut dyn Iterator<Item = String>| ListToolsResult::new(names.map(Tool::new).collect());
        known.record(&list(&mut (0..MAX_TOOLS + 10).map(|number| number.to_string())));
        assert_eq!((known.tools.len(), known.get("10009")), (MAX_TOOLS, None));
        assert_eq!(known.get("9"), Some(Support::Forbidden));
        known.clear();
        known.record(&list(&mut (0..10).map(|number| format!("{number}{}", "x".repeat(MAX_BYTES / 4)))));
        assert_eq!(known.tools.len(), 3);
        assert!(known.bytes <= MAX_BYTES);
    }
}
