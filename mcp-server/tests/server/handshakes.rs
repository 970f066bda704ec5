//! Functions that are called when a connection begins: the decision about the handshake, and the life of a session.

use std::future::{pending, ready};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Context;

use futures_util::FutureExt;
use mcp_server::types::{ErrorObject, LoggingLevel, Revision};
use mcp_server::{
    Audience, Caller, Change, ClientCapability, Connection, ConnectionHandle, Handshake, NoArguments, Principal,
    RequestContext, Server, ServerBuilder, SessionContext, text_resource, tool,
};
use mcp_testkit::{Gate, Notes, ScriptedClient, WakeFlag};
use serde_json::json;

use crate::servers::{LEGACY, MODERN, fails, server};

/// A connection on which nothing was sent.
fn fresh(server: &Server, revision: Revision) -> ScriptedClient {
    ScriptedClient::on_connection(Connection::long_lived(server), revision, json!({ "roots": {} }))
}

fn named(name: &'static str) -> Server {
    let tell = move |ctx: RequestContext, _: NoArguments| ready(format!("{name} {}", ctx.server().info().name));
    Server::builder(name, "1.0").tool(tool("name", tell)).build().expect("a server")
}

/// The function sees the client and the caller before the handshake is answered.
// covers: GW-5
#[test]
fn gw_5_the_handshake_is_seen_before_it_is_answered() {
    for revision in LEGACY {
        let (notes, gate) = (Notes::default(), Gate::default());
        let (seen, waiting) = (notes.clone(), gate.clone());
        let server = server(|server| {
            server.on_initialize(move |handshake: Handshake| {
                let (seen, waiting) = (seen.clone(), waiting.clone());
                async move {
                    seen.add(format!(
                        "{} {} {} {:?} {:?} {}",
                        handshake.client_info().name,
                        handshake.requested_version(),
                        handshake.revision(),
                        handshake.supports(ClientCapability::Roots),
                        handshake.principal().map(|principal| principal.subject.to_string()),
                        handshake.extension::<u8>().is_some() && handshake.capabilities().sampling.is_none(),
                    ));
                    assert!(!handshake.is_resumed());
                    waiting.wait().await;
                    Ok(handshake.server().clone())
                }
            })
        });
        let mut client = fresh(&server, revision);
        client.caller.principal = Some(Principal::new(None, "ann"));
        client.caller.extensions.insert(7_u8);
        client.send(&mcp_testkit::envelope::initialize("init", revision.as_str(), json!({ "roots": {} })));
        client.assert_quiet();
        assert_eq!(notes.take(), [format!("test {revision} {revision} true Some(\"ann\") true")]);
        assert!(client.connection.is_busy() && !client.connection.wants_input());
        gate.open();
        client.run();
        assert_eq!(client.response_to("init")["result"]["protocolVersion"], revision.as_str());
        client.notify("notifications/initialized", json!({}));
        client.result("ping", json!({}));
        assert!(client.connection.is_idle());
        assert_eq!(notes.take(), [""; 0], "it is called once");
    }
}

/// A client is refused with the error of the function, and may try again.
// covers: GW-5
#[test]
fn gw_5_a_client_is_refused() {
    let server = server(|server| {
        server.on_initialize(async |handshake: Handshake| {
            if !handshake.supports(ClientCapability::Sampling) {
                return Err(ErrorObject::invalid_request("no model"));
            }
            Ok(handshake.server().clone())
        })
    });
    let mut client = fresh(&server, LEGACY[3]);
    let refused = client.initialize();
    assert_eq!((&refused["error"]["code"], &refused["error"]["message"]), (&json!(-32600), &json!("no model")));
    assert_eq!(client.connection.negotiated(), None);
    client.error("tools/list", json!({}), -32600);
    client.send(&mcp_testkit::envelope::initialize(5, "2025-11-25", json!({ "sampling": {} })));
    client.run();
    assert!(client.response_to(5).get("result").is_some());
    // Modern clients have no handshake, and are served.
    ScriptedClient::new(&server, MODERN).result("server/discover", json!({}));
}

/// The server is chosen by what the client declares; it responds to the handshake and to all that follows, and its changes
/// are the ones that the client is told.
// covers: GW-5
#[test]
fn gw_5_the_server_is_chosen_by_capabilities() {
    for revision in LEGACY {
        let other = named("other");
        let chosen = other.clone();
        let choosing = Server::builder("first", "1.0").tool(tool("name", async |_, _: NoArguments| "first"));
        let choosing = choosing.on_initialize(move |handshake: Handshake| {
            let is_other = handshake.supports(ClientCapability::Roots);
            ready(Ok(if is_other { chosen.clone() } else { handshake.server().clone() }))
        });
        let first = choosing.build().expect("a server");
        let mut client = fresh(&first, revision);
        let (handle, port) = (client.connection.handle(), client.connection.port());
        assert_eq!(client.initialize()["result"]["serverInfo"]["name"], "other");
        client.notify("notifications/initialized", json!({}));
        assert_eq!(client.call_tool_text("name", json!({})), "other other");
        assert_eq!(client.connection.server().info().name, "other");
        assert_eq!((port.server().info().name.as_str(), handle.negotiated()), ("other", Some(revision)));
        first.publish(&Change::Tools);
        client.assert_quiet();
        other.publish(&Change::Tools);
        client.expect_message("notifications/tools/list_changed");

        let mut client = ScriptedClient::new(&first, revision);
        assert_eq!(client.call_tool_text("name", json!({})), "first");
        first.publish(&Change::Tools);
        client.expect_message("notifications/tools/list_changed");
    }
}

/// Changes are published to one connection by the server that was chosen for it, with its own predicates.
// covers: GW-5
#[test]
fn gw_5_the_chosen_server_publishes_to_its_connection() {
    for revision in LEGACY {
        let is_visible = Arc::new(AtomicBool::new(true));
        let seen = Arc::clone(&is_visible);
        let resource = text_resource("a:b", "b", "text").visible(move |_| seen.load(Ordering::Relaxed));
        let chosen = Server::builder("chosen", "1.0").resource_subscriptions().resource(resource);
        let chosen = chosen.build().expect("a server");
        let other = chosen.clone();
        let first = server(|server| server.resource_subscriptions().on_initialize(move |_| ready(Ok(other.clone()))));
        let mut client = ScriptedClient::new(&first, revision);
        client.result("resources/subscribe", json!({ "uri": "a:b" }));
        let (handle, change) = (client.connection.handle(), Change::Resource("a:b".into()));
        chosen.publish_to(&Audience::connection(&handle), &change);
        client.expect_message("notifications/resources/updated");
        handle.publish(&change);
        client.expect_message("notifications/resources/updated");
        first.publish_to(&Audience::connection(&handle), &change);
        client.assert_quiet();
        is_visible.store(false, Ordering::Relaxed);
        handle.publish(&change);
        client.assert_quiet();
    }
}

/// The chosen server may keep handles of its connections in its state: they do not keep the server in memory.
// covers: GW-5
#[test]
fn gw_5_handles_do_not_keep_the_chosen_server() {
    type Kept = Mutex<Vec<ConnectionHandle>>;
    let notes = Notes::default();
    let keep = async |ctx: RequestContext, _: NoArguments| {
        let kept = ctx.server().state::<Kept>().expect("a state");
        kept.lock().expect("no panic").push(ctx.connection().clone());
        "kept"
    };
    let chosen = Server::builder("chosen", "1.0").tool(tool("keep", keep));
    let chosen = chosen.state(Kept::default()).state(notes.on_drop("dropped")).build().expect("a server");
    let first = server(|server| server.on_initialize(move |_| ready(Ok(chosen.clone()))));
    let mut client = ScriptedClient::new(&first, LEGACY[3]);
    assert_eq!(client.call_tool_text("keep", json!({})), "kept");
    drop(first);
    assert_eq!(notes.take(), [""; 0], "the connection keeps its server");
    client.result("ping", json!({}));
    drop(client);
    assert_eq!(notes.take(), ["dropped"]);
}

/// A server that cannot complete the handshake is not switched to: the client may try again, and the first server serves it.
// covers: GW-5
#[test]
fn gw_5_a_failed_handshake_chooses_no_server() {
    let modern =
        Server::builder("modern", "1.0").revisions([MODERN]).tool(tool("name", async |_, _: NoArguments| "modern"));
    let modern = modern.build().expect("a server");
    let chosen = modern.clone();
    let first = Server::builder("first", "1.0").tool(tool("name", async |_, _: NoArguments| "first"));
    let first = first.on_initialize(move |handshake: Handshake| {
        let is_modern = !handshake.supports(ClientCapability::Sampling);
        ready(Ok(if is_modern { chosen.clone() } else { handshake.server().clone() }))
    });
    let first = first.build().expect("a server");
    let mut client = fresh(&first, LEGACY[3]);
    let port = client.connection.port();
    assert!(client.initialize().get("error").is_some());
    assert_eq!(client.connection.negotiated(), None);
    assert_eq!((&*client.connection.server().info().name, &*port.server().info().name), ("first", "first"));
    client.send(&mcp_testkit::envelope::initialize(5, "2025-11-25", json!({ "sampling": {} })));
    client.run();
    assert_eq!(client.response_to(5)["result"]["serverInfo"]["name"], "first");
    client.notify("notifications/initialized", json!({}));
    assert_eq!(client.call_tool_text("name", json!({})), "first");
    modern.publish(&Change::Tools);
    client.assert_quiet();
    first.publish(&Change::Tools);
    client.expect_message("notifications/tools/list_changed");
}

/// A request without a session is asked about, too: it can be refused.
// covers: GW-5
#[test]
fn gw_5_a_handshake_without_a_session_is_refused() {
    let server = server(|server| server.on_initialize(async |_| Err(ErrorObject::invalid_request("closed"))));
    let connection = Connection::legacy_request(&server, LEGACY[2]);
    let mut client = ScriptedClient::on_connection(connection, LEGACY[2], json!({}));
    assert_eq!(client.initialize()["error"]["message"], "closed");
}

/// A function that panics, at once or later, refuses the client; one that takes too long is dropped with the connection.
// covers: GW-5
#[test]
fn gw_5_a_decision_may_fail() {
    let at_once = server(|server| {
        server.on_initialize(|handshake: Handshake| {
            fails();
            ready(Ok(handshake.server().clone()))
        })
    });
    let later = server(|server| {
        server.on_initialize(async |handshake: Handshake| {
            fails();
            Ok(handshake.server().clone())
        })
    });
    for server in [at_once, later] {
        let mut client = fresh(&server, LEGACY[3]);
        assert_eq!(client.initialize()["error"]["code"], -32603);
    }
    let notes = Notes::default();
    let dropped = notes.clone();
    let never = server(|server| {
        server.on_initialize(move |handshake: Handshake| {
            let note = dropped.on_drop("dropped");
            async move {
                let _note = note;
                pending::<()>().await;
                Ok(handshake.server().clone())
            }
        })
    });
    let initialize = mcp_testkit::envelope::initialize(1, "2025-11-25", json!({}));
    let mut client = fresh(&never, LEGACY[3]);
    client.send(&initialize);
    client.assert_quiet();
    client.connection.abort_requests(&ErrorObject::internal_error("too late"));
    client.run();
    assert_eq!(client.response_to(1)["error"]["message"], "too late");
    assert_eq!(notes.take(), ["dropped"]);
    let mut client = fresh(&never, LEGACY[3]);
    client.send(&initialize);
    client.run();
    drop(client);
    assert_eq!(notes.take(), ["dropped"]);
}

/// A session that is resumed is asked about again.
// covers: GW-5, MIS-5
#[test]
fn gw_5_a_resumed_session_chooses_again() {
    let other = named("other");
    let server = server(|server| {
        server.on_initialize(move |handshake: Handshake| {
            assert!(handshake.is_resumed());
            let is_wanted = handshake.supports(ClientCapability::Roots);
            ready(if is_wanted { Ok(other.clone()) } else { Err(ErrorObject::invalid_request("no")) })
        })
    });
    let choose = |capabilities: serde_json::Value| {
        let params = mcp_testkit::envelope::initialize(1, "2025-11-25", capabilities)["params"].take();
        let params = mcp_server::types::RawObject::new(&params).expect("an object");
        let chosen = server.choose_for_resume(&params, LEGACY[3], Caller::default());
        chosen.expect("a function is set").now_or_never().expect("it is ready")
    };
    assert_eq!(choose(json!({ "roots": {} })).expect("a server").info().name, "other");
    assert!(choose(json!({})).is_err());
    let recent = Server::builder("recent", "1.0").revisions([LEGACY[2]]).build().expect("a server");
    let server = crate::servers::server(|server| server.on_initialize(move |_: Handshake| ready(Ok(recent.clone()))));
    let params = mcp_testkit::envelope::initialize(1, "2025-11-25", json!({}))["params"].take();
    let params = mcp_server::types::RawObject::new(&params).expect("an object");
    for (revision, is_chosen) in [(LEGACY[2], true), (LEGACY[3], false)] {
        let chosen = server.choose_for_resume(&params, revision, Caller::default()).expect("a function is set");
        let chosen = chosen.now_or_never().expect("it is ready").map(|server| server.info().name.clone());
        let error = ErrorObject::unsupported_protocol_version(revision.into(), vec![LEGACY[2].into()]);
        assert_eq!(chosen, if is_chosen { Ok("recent".to_owned()) } else { Err(error) });
    }
    let none = named("none").choose_for_resume(&mcp_server::types::RawObject::empty(), LEGACY[3], Caller::default());
    assert!(none.is_none());
}

/// A server whose sessions note when they begin and end.
fn living(notes: &Notes, more: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Server {
    let notes = notes.clone();
    server(|server| {
        more(server.on_session(move |session: SessionContext| {
            let (notes, dropped) = (notes.clone(), notes.on_drop("dropped"));
            let closing = notes.clone();
            session.connection().on_close(move || async move { closing.add("closed") });
            async move {
                let _dropped = dropped;
                let who = session.principal().map(|principal| principal.subject.to_string());
                let number = session.extension::<u8>();
                notes.add(format!("{:?} {who:?} {number:?}", session.connection().negotiated().map(Revision::as_str)));
                session.connection().initialized().await.expect("a handshake");
                session.connection().log(LoggingLevel::Error, "welcome");
                notes.add(format!("{}", session.connection().ping().await.is_ok()));
                pending::<()>().await;
            }
        }))
    })
}

/// The code of a session runs from the handshake to the end of the connection, before the callbacks of its end.
// covers: MIS-4, S4.66
#[test]
fn mis_4_code_runs_for_the_life_of_a_session() {
    for revision in LEGACY {
        let notes = Notes::default();
        let server = living(&notes, |server| server);
        let mut client = fresh(&server, revision);
        client.caller.principal = Some(Principal::new(None, "ann"));
        client.caller.extensions.insert(7_u8);
        assert!(client.initialize().get("result").is_some());
        assert_eq!(notes.take(), [format!("Some(\"{revision}\") Some(\"ann\") Some(7)")]);
        client.notify("notifications/initialized", json!({}));
        assert_eq!(client.expect_message("notifications/message")["params"]["data"], "welcome");
        let ping = client.expect_message("ping");
        client.respond(&ping, json!({}));
        assert_eq!(notes.take(), ["true"]);
        assert!(!client.connection.is_busy(), "it keeps no server from its end");
        client.connection.drain();
        client.run();
        assert_eq!(notes.take(), [""; 0]);
        client.connection.teardown(pending).now_or_never().expect("an end");
        assert_eq!(notes.take(), ["dropped", "closed"]);
    }
}

/// Clients without a session have none.
// covers: MIS-4, S4.66
#[test]
fn mis_4_only_sessions_have_such_code() {
    let notes = Notes::default();
    let server = living(&notes, |server| server.resource(text_resource("a:b", "b", "text")));
    for connection in [Connection::long_lived(&server), Connection::modern_request(&server)] {
        ScriptedClient::on_connection(connection, MODERN, json!({})).result("resources/list", json!({}));
    }
    let connection = Connection::legacy_request(&server, LEGACY[3]);
    let mut client = ScriptedClient::on_connection(connection, LEGACY[3], json!({}));
    assert!(client.initialize().get("result").is_some());
    drop(client);
    // Nor does a connection that ends before its handshake.
    drop(fresh(&server, LEGACY[3]));
    assert_eq!(notes.take(), [""; 0]);
}

/// Code that panics or ends does not end the session; a connection that is dropped drops it.
// covers: MIS-4
#[test]
fn mis_4_a_session_outlives_its_code() {
    let at_once = server(|server| {
        server.on_session(|_| {
            fails();
            ready(())
        })
    });
    let later = server(|server| server.on_session(async |_| fails()));
    let ends = server(|server| server.on_session(async |_| ()));
    for server in [at_once, later, ends] {
        let mut client = ScriptedClient::new(&server, LEGACY[3]);
        client.result("ping", json!({}));
    }
    let notes = Notes::default();
    let server = living(&notes, |server| server);
    let mut client = fresh(&server, LEGACY[3]);
    client.initialize();
    drop(client);
    assert_eq!(notes.take().last().map(String::as_str), Some("dropped"));
}

/// The server that is chosen runs its own code, with what the client sent.
// covers: MIS-4, GW-5
#[test]
fn mis_4_the_chosen_server_runs_the_session() {
    let notes = Notes::default();
    let (chosen, first) = (living(&notes, |server| server), notes.clone());
    let server = server(|server| {
        let server = server.on_initialize(move |_| ready(Ok(chosen.clone())));
        server.on_session(move |_| {
            first.add("the other server");
            ready(())
        })
    });
    let mut client = fresh(&server, LEGACY[3]);
    client.caller.extensions.insert_shared(Arc::new(9_u8));
    client.initialize();
    assert_eq!(notes.take(), ["Some(\"2025-11-25\") None Some(9)"]);
}

/// The code of a session does not run in the poll in which the handshake is accepted: the transport may take it first.
// covers: MIS-4, GW-5
#[test]
fn mis_4_a_transport_takes_the_code_after_a_decision() {
    for revision in LEGACY {
        let notes = Notes::default();
        let server =
            living(&notes, |server| server.on_initialize(async |handshake: Handshake| Ok(handshake.server().clone())));
        for is_taken in [true, false] {
            let mut client = fresh(&server, revision);
            client.send(&mcp_testkit::envelope::initialize(1, revision.as_str(), json!({})));
            let woken = WakeFlag::default();
            let waker = woken.waker();
            let polled = client.connection.poll(&mut Context::from_waker(&waker), client.now());
            assert!(polled.is_ready() && client.connection.negotiated() == Some(revision));
            assert_eq!(notes.take(), [""; 0]);
            assert!(woken.take(), "the connection is polled again to run the code");
            let code = is_taken.then(|| client.connection.take_session_future().expect("a session"));
            client.run();
            assert_eq!(notes.take().len(), usize::from(!is_taken));
            drop((client, code));
            notes.take();
        }
    }
}

/// A transport may take the code to run it elsewhere, and a session that is resumed has it again.
// covers: MIS-4, MIS-5
#[test]
fn mis_4_a_transport_runs_the_code_elsewhere() {
    let notes = Notes::default();
    let server = living(&notes, |server| server);
    let mut client = fresh(&server, LEGACY[3]);
    client.send(&mcp_testkit::envelope::initialize(1, "2025-11-25", json!({})));
    let code = client.connection.take_session_future().expect("it has begun");
    client.run();
    assert_eq!(notes.take(), [""; 0]);
    drop(code);
    assert_eq!(notes.take(), [""; 0], "it was not called");
    let initialize = client.connection.port().initialize_params().expect("a handshake");
    let state = client.connection.session_state().expect("a session");
    let mut resumed = Connection::resume(&server, initialize, state).expect("it is valid");
    resumed.resume_session(Caller::default());
    let code = resumed.take_session_future().expect("it has begun");
    assert!(code.now_or_never().is_none());
    assert_eq!(notes.take(), ["Some(\"2025-11-25\") None None", "dropped"]);
    assert!(resumed.take_session_future().is_none());
}
