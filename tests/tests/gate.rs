//! The gate tables against a table that was written by hand, from the register of requirements.

use mcp_types::gate::{self, Direction, MethodKind};
use mcp_types::{Method, Revision};

/// Who sends a method in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 and 2026-07-28. `C` client, `S` server, `B` both,
/// `m` inside an input request, `x` the client with the tasks extension, `y` the server with it, `l` the server, to those who
/// listen.
const METHODS: &[(&str, &str)] = &[
    ("initialize", "CCCC-"),
    ("notifications/initialized", "CCCC-"),
    ("ping", "BBBB-"),
    ("server/discover", "----C"),
    ("tools/list", "CCCCC"),
    ("tools/call", "CCCCC"),
    ("prompts/list", "CCCCC"),
    ("prompts/get", "CCCCC"),
    ("resources/list", "CCCCC"),
    ("resources/templates/list", "CCCCC"),
    ("resources/read", "CCCCC"),
    ("resources/subscribe", "CCCC-"),
    ("resources/unsubscribe", "CCCC-"),
    ("subscriptions/listen", "----C"),
    ("completion/complete", "CCCCC"),
    ("logging/setLevel", "CCCC-"),
    ("sampling/createMessage", "SSSSm"),
    ("roots/list", "SSSSm"),
    ("elicitation/create", "--SSm"),
    ("tasks/get", "---Bx"),
    ("tasks/cancel", "---Bx"),
    ("tasks/result", "---B-"),
    ("tasks/list", "---B-"),
    ("tasks/update", "----x"),
    ("notifications/cancelled", "BBBBB"),
    ("notifications/progress", "BBBBS"),
    ("notifications/message", "SSSSS"),
    ("notifications/tools/list_changed", "SSSSl"),
    ("notifications/prompts/list_changed", "SSSSl"),
    ("notifications/resources/list_changed", "SSSSl"),
    ("notifications/resources/updated", "SSSSl"),
    ("notifications/roots/list_changed", "CCCC-"),
    ("notifications/subscriptions/acknowledged", "----l"),
    ("notifications/elicitation/complete", "---S-"),
    ("notifications/tasks/status", "---B-"),
    ("notifications/tasks", "----y"),
];

// covers: B-62, CG-14
#[test]
fn methods_travel_as_the_register_says() {
    assert_eq!(gate::methods().len(), METHODS.len());
    for (name, row) in METHODS {
        let facts = gate::method(&Method::from(*name)).unwrap_or_else(|| panic!("{name} is known"));
        let is_notification = name.starts_with("notifications/");
        assert_eq!(facts.kind == MethodKind::Notification, is_notification, "{name}");
        for (revision, sender) in Revision::ALL.into_iter().zip(row.chars()) {
            let core = (
                facts.may_be_sent(Direction::ClientToServer, revision),
                facts.may_be_sent(Direction::ServerToClient, revision),
            );
            let extended = facts.extension.map_or((false, false), |extension| {
                (
                    extension.may_be_sent(Direction::ClientToServer, revision),
                    extension.may_be_sent(Direction::ServerToClient, revision),
                )
            });
            let (embedded, listen) = (facts.input_request.contains(revision), facts.listen_only.contains(revision));
            let found = match (core, extended, embedded, listen) {
                ((true, true), (false, false), false, false) => 'B',
                ((true, false), (false, false), false, false) => 'C',
                ((false, true), (false, false), false, false) => 'S',
                ((false, true), (false, false), false, true) => 'l',
                ((false, false), (true, false), false, false) => 'x',
                ((false, false), (false, true), false, true) => 'y',
                ((false, false), (false, false), true, false) => 'm',
                ((false, false), (false, false), false, false) => '-',
                other => panic!("{name} in {revision}: {other:?}"),
            };
            assert_eq!(found, sender, "{name} in {revision}");
        }
    }
}

// covers: H-47, H-48, R-2, C-1
#[test]
fn methods_have_the_properties_that_transports_ask_for() {
    let with = |test: fn(&gate::MethodFacts) -> bool| -> Vec<&str> {
        gate::methods().iter().filter(|facts| test(facts)).map(|facts| facts.name).collect()
    };
    assert_eq!(with(|facts| facts.name_member == Some("name")), ["prompts/get", "tools/call"]);
    assert_eq!(with(|facts| facts.name_member == Some("uri")), ["resources/read"]);
    assert_eq!(with(|facts| facts.name_member == Some("taskId")), ["tasks/cancel", "tasks/get", "tasks/update"]);
    assert_eq!(
        with(|facts| facts.may_require_input.contains(Revision::LATEST)),
        ["prompts/get", "resources/read", "tools/call"]
    );
    assert!(with(|facts| facts.may_require_input.contains(Revision::LATEST_LEGACY)).is_empty());
    assert_eq!(
        with(|facts| facts.cacheable.contains(Revision::LATEST)),
        [
            "prompts/list",
            "resources/list",
            "resources/read",
            "resources/templates/list",
            "server/discover",
            "tools/list"
        ]
    );
}

/// Members: `-` absent, `o` optional, `r` required, in the same five revisions.
const MEMBERS: &[(&str, &str, &str)] = &[
    ("CallToolResult", "resultType", "----r"),
    ("ListToolsResult", "ttlMs", "----r"),
    ("ReadResourceResult", "cacheScope", "----r"),
    ("CallToolRequestParams", "_meta", "oooor"),
    ("PaginatedRequestParams", "_meta", "oooor"),
    ("CallToolRequestParams", "task", "---o-"),
    ("GetPromptRequestParams", "inputResponses", "----o"),
    ("ReadResourceRequestParams", "requestState", "----o"),
    ("CallToolResult", "structuredContent", "--ooo"),
    ("Tool", "annotations", "-oooo"),
    ("Tool", "title", "--ooo"),
    ("Tool", "outputSchema", "--ooo"),
    ("Tool", "icons", "---oo"),
    ("Tool", "execution", "---o-"),
    ("Resource", "_meta", "--ooo"),
    ("ResourceTemplate", "icons", "---oo"),
    ("PromptArgument", "title", "--ooo"),
    ("PromptReference", "title", "--ooo"),
    ("TextContent", "_meta", "--ooo"),
    ("Root", "_meta", "--ooo"),
    ("Annotations", "lastModified", "--ooo"),
    ("Implementation", "title", "--ooo"),
    ("Implementation", "websiteUrl", "---oo"),
    ("ClientCapabilities", "elicitation", "--ooo"),
    ("ElicitationCapability", "url", "---oo"),
    ("SamplingCapability", "tools", "---oo"),
    ("RootsCapability", "listChanged", "oooo-"),
    ("ClientCapabilities", "tasks", "---o-"),
    // B-63: the file of 2025-11-25 lacks it, the text has it.
    ("ServerCapabilities", "extensions", "---oo"),
    ("ServerCapabilities", "completions", "-oooo"),
    ("CompleteRequestParams", "context", "--ooo"),
    ("ProgressNotificationParams", "message", "-oooo"),
    ("CancelledNotificationParams", "requestId", "rrror"),
    ("CreateMessageRequestParams", "toolChoice", "---oo"),
    ("SamplingMessage", "_meta", "---oo"),
    ("ElicitRequestUrlParams", "elicitationId", "---r-"),
    ("ElicitRequestFormParams", "mode", "---oo"),
    ("RequestedSchema", "$schema", "---oo"),
    ("StringSchema", "default", "---oo"),
    ("BooleanSchema", "default", "--ooo"),
    ("ElicitResult", "_meta", "--oo-"),
    ("ListRootsResult", "_meta", "oooo-"),
    ("DiscoverResult", "supportedVersions", "----r"),
    ("InitializeResult", "serverInfo", "rrrr-"),
];

// covers: B-47, B-51, B-52, B-63
#[test]
fn members_exist_as_the_register_says() {
    for (name, member, row) in MEMBERS {
        let facts = gate::member(name, member).unwrap_or_else(|| panic!("{name}.{member} is known"));
        for (revision, expected) in Revision::ALL.into_iter().zip(row.chars()) {
            let found = match (facts.exists_in(revision), facts.required_in(revision)) {
                (false, _) => '-',
                (true, false) => 'o',
                (true, true) => 'r',
            };
            assert_eq!(found, expected, "{name}.{member} in {revision}");
        }
    }
    assert_eq!(gate::member("Tool", "colour"), None);
}

/// Kinds of content.
// covers: B-48
#[test]
fn variants_exist_as_the_register_says() {
    let tags = |name: &str, revision: Revision| -> Vec<&str> {
        let variants = gate::type_facts(name).expect("a union").variants.iter();
        variants.filter(|variant| variant.revisions.contains(revision)).filter_map(|variant| variant.tag).collect()
    };
    assert_eq!(tags("ContentBlock", Revision::V2024_11_05), ["text", "image", "resource"]);
    assert_eq!(tags("ContentBlock", Revision::V2025_03_26), ["text", "image", "audio", "resource"]);
    assert_eq!(tags("ContentBlock", Revision::V2025_06_18), ["text", "image", "audio", "resource_link", "resource"]);
    assert_eq!(tags("SamplingContent", Revision::V2024_11_05), ["text", "image"]);
    assert_eq!(tags("SamplingContent", Revision::V2025_11_25), ["text", "image", "audio", "tool_use", "tool_result"]);
}
