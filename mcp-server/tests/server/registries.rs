//! Registries that are built apart and combined.

use mcp_server::types::RawObject;
use mcp_server::{
    BuildError, CompletionInput, NoArguments, Registry, RequestContext, ServerBuilder, Tool, UriVariables, prompt,
    raw_tool, template, text_resource, tool,
};
use mcp_testkit::ScriptedClient;
use serde_json::json;

use crate::servers::{LEGACY, MODERN, refused, server};

fn named(name: &str) -> Tool {
    tool(name, async |_, _: NoArguments| "done")
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Word {
    word: String,
}

fn files() -> Registry {
    let find = prompt("find", async |_, Word { word }| word);
    Registry::new()
        .tools(["read", "write"].map(named))
        .prompt(find.complete("word", async |_: RequestContext, _: CompletionInput| vec!["x".to_owned()]))
        .resource(text_resource("files:about", "about", "Files"))
        .templates([template("files:{name}", "file", async |_: RequestContext, _: UriVariables| "contents")])
}

fn names(client: &mut ScriptedClient, list: &str, kind: &str, member: &str) -> Vec<String> {
    let result = client.result(list, json!({}));
    let items = result[kind].as_array().expect("a list");
    items.iter().map(|item| item[member].as_str().expect("a name").to_owned()).collect()
}

/// Everything of a registry is served under its prefix; resources keep their URIs.
// covers: AUT-11
#[test]
fn aut_11_registries_are_mounted() {
    let office = Registry::new().tool(named("print")).mount("files_", files()).prompts([]).resources([]);
    let server = server(|server| server.tools([named("help")]).merge(Registry::new()).mount("office/", office));
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let mut client = ScriptedClient::new(&server, revision);
        let tools = names(&mut client, "tools/list", "tools", "name");
        assert_eq!(tools, ["help", "office/print", "office/files_read", "office/files_write"]);
        assert_eq!(names(&mut client, "prompts/list", "prompts", "name"), ["office/files_find"]);
        assert_eq!(names(&mut client, "resources/list", "resources", "uri"), ["files:about"]);
        assert_eq!(client.call_tool_text("office/files_read", json!({})), "done");
        client.error("tools/call", json!({ "name": "read" }), -32602);
        let got = client.result("prompts/get", json!({ "name": "office/files_find", "arguments": { "word": "hi" } }));
        assert_eq!(got["messages"][0]["content"]["text"], "hi");
        let reference = json!({ "type": "ref/prompt", "name": "office/files_find" });
        let completed = client
            .result("completion/complete", json!({ "ref": reference, "argument": { "name": "word", "value": "" } }));
        assert_eq!(completed["completion"]["values"], json!(["x"]));
        let read = client.result("resources/read", json!({ "uri": "files:a" }));
        assert_eq!(read["contents"][0]["text"], "contents");
    }
}

/// Schemas and header parameters of a tool follow its name.
// covers: AUT-11
#[test]
fn aut_11_everything_of_a_tool_follows_its_name() {
    let schema =
        json!({ "type": "object", "properties": { "region": { "type": "string", "x-mcp-header": "Region" } } });
    let query = raw_tool("query", RawObject::new(&schema).unwrap(), async |_, _| "done");
    let server = server(|server| server.mount("db_", Registry::new().tool(query)));
    assert!(server.header_params("db_query").is_some() && server.header_params("query").is_none());
    let mut client = ScriptedClient::new(&server, MODERN);
    let result = client.call_tool("db_query", json!({ "region": 1 }));
    assert_eq!(result["isError"] == true, cfg!(feature = "validate"), "{result}");
}

/// Errors name both items of a conflict, and are those of the first item that is wrong.
// covers: AUT-11
#[test]
fn aut_11_conflicts_name_both() {
    let text = |build: fn(ServerBuilder) -> ServerBuilder| refused(build).to_string();
    let conflict = text(|server| server.tool(named("files_read")).mount("files_", files()));
    assert!(conflict.contains("`files_read` without a prefix and `read` with the prefix `files_`"), "{conflict}");
    let conflict = text(|server| {
        server
            .mount("a_", Registry::new().mount("b_", Registry::new().tool(named("c"))))
            .mount("a_b", Registry::new().tool(named("_c")))
    });
    assert!(conflict.contains("`c` with the prefix `a_b_` and `_c` with the prefix `a_b`"), "{conflict}");
    let conflict = refused(|server| server.merge(files()).merge(Registry::new().tool(named("read"))));
    assert_eq!(conflict, BuildError::Duplicate { what: "tool", name: "read".into() });
    let conflict = refused(|server| server.mount("a_", files()).mount("b_", files()));
    assert_eq!(conflict, BuildError::Duplicate { what: "resource", name: "files:about".into() });
    let faulty = || Registry::new().tool(named("")).tool(named("a")).tool(named("a"));
    let expected = BuildError::InvalidName { what: "tool", name: String::new() };
    assert_eq!(refused(|server| server.mount("a_", Registry::new().merge(faulty()))), expected);
    assert!(text(|server| server.mount("a\n", files())).contains("cannot be the name"));
}

/// A running server gets a registry at once, or not at all.
// covers: AUT-11
#[test]
fn aut_11_running_servers_get_registries() {
    let server = server(|server| server.tool(named("print")).offers_prompts().offers_resources().offers_completions());
    let mut client = ScriptedClient::new(&server, LEGACY[3]);
    server.update(|registry| registry.add_registry(files().prefix("files_"))).unwrap();
    client.run();
    assert_eq!(client.methods().len(), 3, "tools, prompts and resources");
    let failed =
        server.update(|registry| registry.add_registry(Registry::new().tool(named("new")).tool(named("print"))));
    assert_eq!(failed, Err(BuildError::Duplicate { what: "tool", name: "print".into() }));
    assert_eq!(names(&mut client, "tools/list", "tools", "name"), ["print", "files_read", "files_write"]);
    client.assert_quiet();
}

/// A registry with a conflict adds nothing, also if the application goes on after the error.
// covers: AUT-11
#[test]
fn aut_11_conflicts_add_nothing() {
    let server = server(|server| server.merge(files()));
    let new = || {
        let about = text_resource("files:new", "new", "New");
        let find = prompt("new", async |_, Word { word }| word);
        let any = template("new:{name}", "new", async |_: RequestContext, _: UriVariables| "contents");
        Registry::new().tool(named("new")).prompt(find).resource(about).template(any)
    };
    let conflicts = [
        ("tool", new().tool(named("read"))),
        ("prompt", new().prompt(prompt("find", async |_, Word { word }| word))),
        ("resource", new().resource(text_resource("files:about", "about", "Files"))),
        ("template", new().template(template("files:{name}", "x", async |_: RequestContext, _: UriVariables| "x"))),
    ];
    for (kind, conflict) in conflicts {
        server
            .update(|registry| {
                let failed = registry.add_registry(conflict).expect_err("a conflict");
                assert!(matches!(failed, BuildError::Duplicate { what, .. } if what == kind), "{failed}");
                Ok(())
            })
            .unwrap();
        for revision in LEGACY.into_iter().chain([MODERN]) {
            let mut client = ScriptedClient::new(&server, revision);
            assert_eq!(names(&mut client, "tools/list", "tools", "name"), ["read", "write"], "{kind}");
            assert_eq!(names(&mut client, "prompts/list", "prompts", "name"), ["find"], "{kind}");
            assert_eq!(names(&mut client, "resources/list", "resources", "uri"), ["files:about"], "{kind}");
            let templates = names(&mut client, "resources/templates/list", "resourceTemplates", "uriTemplate");
            assert_eq!(templates, ["files:{name}"], "{kind}");
        }
    }
}

/// The methods of two registries must differ, too.
// covers: AUT-11
#[test]
fn aut_11_methods_are_not_replaced() {
    let server = server(|server| {
        let own = async |_: RequestContext, _: RawObject| Ok(RawObject::empty());
        server.offers_tools().method("com.example/own", "own/do", own)
    });
    let failed = server.update(|registry| registry.add_registry(registry.clone().prefix("a_").tool(named("new"))));
    assert!(matches!(&failed, Err(BuildError::InvalidMethod { name, .. }) if name == "own/do"), "{failed:?}");
}
