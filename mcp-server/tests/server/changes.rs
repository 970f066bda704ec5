//! What clients hear of changes.

use mcp_server::types::Revision;
use mcp_server::types::meta::key::SUBSCRIPTION_ID;
use mcp_server::{Change, Connection, NextStep, NoArguments, Server, Tool, prompt, template, text_resource, tool};
use mcp_testkit::ScriptedClient;
use serde_json::{Value, json};

use crate::servers::{LEGACY, MODERN, fails, removed, server};

fn named(name: &str) -> Tool {
    tool(name, async |_, _: NoArguments| ())
}

fn everything() -> Server {
    server(|server| server.tool(named("a")).offers_prompts().resource_subscriptions())
}

fn listen(client: &mut ScriptedClient, filter: Value) -> i64 {
    let id = client.start("subscriptions/listen", json!({ "notifications": filter }));
    client.expect_message("notifications/subscriptions/acknowledged");
    id
}

fn all() -> Value {
    json!({ "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true })
}

/// Changes the server in one way and says what clients hear of it.
fn each_change(server: &Server, mut heard: impl FnMut(&str, &[&str])) {
    let tools = "notifications/tools/list_changed";
    let prompts = "notifications/prompts/list_changed";
    let resources = "notifications/resources/list_changed";
    server.update(|registry| registry.add_tool(named("b"))).expect("an update");
    heard("a tool came", &[tools]);
    assert!(removed(server, "b"));
    heard("a tool went", &[tools]);
    server.update(|registry| registry.add_prompt(prompt("b", async |_, _: NoArguments| ""))).expect("an update");
    heard("a prompt came", &[prompts]);
    server.update(|registry| registry.add_resource(text_resource("a:b", "b", ""))).expect("an update");
    heard("a resource came", &[resources]);
    server.update(|registry| registry.add_template(template("a:{b}", "b", async |_, _| ""))).expect("an update");
    heard("a template came", &[resources]);
    let several = server.update(|registry| {
        assert!(registry.remove_resource("a:b") && registry.remove_template("a:{b}") && registry.remove_prompt("b"));
        registry.add_tool(named("c"))?;
        registry.add_tool(named("d"))
    });
    several.expect("an update");
    heard("several came and went", &[tools, prompts, resources]);
    assert!(!removed(server, "nobody"));
    heard("nothing changed", &[]);
    let failed = server.update(|registry| {
        registry.add_tool(named("e"))?;
        registry.add_tool(named("e"))
    });
    failed.expect_err("a tool that is there twice");
    heard("the change failed", &[]);
}

/// A legacy client hears of each list that changed, once, unasked.
// covers: S0.20, S1.38
#[test]
fn legacy_clients_hear_unasked() {
    for revision in LEGACY {
        let server = everything();
        let mut client = ScriptedClient::new(&server, revision);
        each_change(&server, |what, heard| {
            assert!(heard.is_empty() || client.is_woken(), "{what}");
            assert_eq!(client.methods(), heard, "{revision}: {what}");
        });
    }
}

/// A modern client hears of what it asked for, once for each subscription, and of nothing else.
// covers: S0.20, S0.21
#[test]
fn modern_clients_hear_what_they_asked_for() {
    let server = everything();
    let mut client = ScriptedClient::new(&server, MODERN);
    let mut silent = ScriptedClient::new(&server, MODERN);
    let mut picky = ScriptedClient::new(&server, MODERN);
    listen(&mut client, all());
    listen(&mut picky, json!({ "promptsListChanged": true }));
    each_change(&server, |what, heard| {
        assert_eq!(client.methods(), heard, "{what}");
        let prompts: Vec<_> = heard.iter().filter(|method| method.contains("prompts")).collect();
        assert_eq!(picky.methods(), prompts.into_iter().copied().collect::<Vec<_>>(), "{what}");
        silent.assert_quiet();
    });
}

/// Two subscriptions hear twice, each under its own id; one that ended hears nothing.
// covers: S0.20
#[test]
fn each_subscription_hears_for_itself() {
    let server = everything();
    let mut client = ScriptedClient::new(&server, MODERN);
    let first = listen(&mut client, json!({ "toolsListChanged": true }));
    let second = listen(&mut client, json!({ "toolsListChanged": true }));
    server.publish(&Change::Tools);
    for id in [first, second] {
        let change = client.expect_message("notifications/tools/list_changed");
        assert_eq!(change["params"]["_meta"][SUBSCRIPTION_ID], id);
    }
    client.assert_quiet();
    client.cancel(first);
    server.publish(&Change::Tools);
    assert_eq!(client.expect_message("notifications/tools/list_changed")["params"]["_meta"][SUBSCRIPTION_ID], second);
    client.assert_quiet();
}

/// A subscription on a connection of its own hears as well, as long as the connection is there.
// covers: S0.21
#[test]
fn single_requests_can_listen() {
    let server = everything();
    let mut client = ScriptedClient::on_connection(Connection::modern_request(&server), MODERN, json!({}));
    listen(&mut client, json!({ "toolsListChanged": true }));
    server.publish(&Change::Tools);
    client.expect_message("notifications/tools/list_changed");
    client.assert_quiet();
    drop(client);
    server.publish(&Change::Tools);
}

/// Publishing reaches every connection that wants to hear of it, and the others not.
// covers: S0.2, S0.22, S1.38
#[test]
fn publishing_reaches_all_who_subscribed() {
    let server = everything();
    let change = Change::Resource("a:b".into());
    let mut legacy = ScriptedClient::new(&server, Revision::V2025_06_18);
    let mut other = ScriptedClient::new(&server, Revision::V2025_06_18);
    let mut modern = ScriptedClient::new(&server, MODERN);
    legacy.result("resources/subscribe", json!({ "uri": "a:b" }));
    other.result("resources/subscribe", json!({ "uri": "a:c" }));
    listen(&mut modern, json!({ "resourceSubscriptions": ["a:b"] }));
    server.publish(&change);
    for client in [&mut legacy, &mut modern] {
        assert_eq!(client.expect_message("notifications/resources/updated")["params"]["uri"], "a:b");
        client.assert_quiet();
    }
    other.assert_quiet();
    legacy.result("resources/unsubscribe", json!({ "uri": "a:b" }));
    server.publish(&change);
    legacy.assert_quiet();
    modern.expect_message("notifications/resources/updated");
}

/// Before the handshake is complete nothing is said unasked.
// covers: S1.13, S1.22
#[test]
fn strangers_hear_nothing() {
    let server = everything();
    let mut client = ScriptedClient::on_connection(Connection::long_lived(&server), Revision::V2025_11_25, json!({}));
    server.publish(&Change::Tools);
    client.assert_quiet();
    client.initialize();
    server.publish(&Change::Tools);
    client.assert_quiet();
}

/// A change counts for requests that come later; all of it at once.
// covers: S0.3
#[test]
fn changes_take_effect_at_once() {
    let server = everything();
    let mut client = ScriptedClient::new(&server, MODERN);
    assert_eq!(client.call_tool("a", json!({}))["content"], json!([]));
    let replaced = server.update(|registry| {
        registry.remove_tool("a");
        registry.add_tool(tool("a", async |_, _: NoArguments| "new"))
    });
    replaced.unwrap();
    assert_eq!(client.call_tool_text("a", json!({})), "new");
}

/// A change that panics halfway changes nothing, and the next one is not held up by it.
// covers: S0.3
#[test]
fn a_broken_change_changes_nothing() {
    let server = everything();
    let mut client = ScriptedClient::new(&server, Revision::V2025_11_25);
    let change = || {
        server.update(|registry| {
            registry.remove_tool("a");
            fails();
            Ok(())
        })
    };
    let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(change));
    assert!(broken.is_err());
    client.call_tool("a", json!({}));
    client.assert_quiet();
    assert!(removed(&server, "a"));
    client.expect_message("notifications/tools/list_changed");
}

/// A handler may change the server that it runs on.
// covers: S0.3
#[test]
fn handlers_may_change_their_server() {
    let grow = tool("grow", async |ctx: mcp_server::RequestContext, _: NoArguments| {
        ctx.server().update(|registry| registry.add_tool(named("grown"))).map(|()| "done")
    });
    let server = server(|server| server.tool(grow));
    let mut client = ScriptedClient::new(&server, Revision::V2025_03_26);
    assert_eq!(client.call_tool_text("grow", json!({})), "done");
    client.expect_message("notifications/tools/list_changed");
    client.call_tool("grown", json!({}));
}

/// A task that drives a listen stream only polls the connection if there is code of the application to run.
#[test]
fn listen_streams_need_no_poll() {
    let server = server(|server| {
        server.tool(named("a")).tool(tool("wait", async |_, _: NoArguments| std::future::pending::<()>().await))
    });
    let mut client = ScriptedClient::new(&server, MODERN);
    listen(&mut client, all());
    assert_eq!(client.connection.next_step(), NextStep::Wait);
    server.publish(&Change::Tools);
    assert_eq!(client.connection.next_step(), NextStep::Send);
    client.expect_message("notifications/tools/list_changed");
    assert_eq!(client.connection.next_step(), NextStep::Wait);
    client.start_tool("wait");
    assert_eq!(client.connection.next_step(), NextStep::Poll);
}
