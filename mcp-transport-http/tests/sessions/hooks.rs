//! Code of the application at the beginning of a session, and for as long as it lasts.

use std::future::{pending, ready};
use std::time::Duration;

use http::request::Parts;
use mcp_server::types::{ErrorObject, LoggingLevel};
use mcp_server::{ClientCapability, Handshake, NoArguments, Principal, RequestContext, Server, SessionContext, tool};
use mcp_session::{EndReason, SessionOptions};
use mcp_testkit::envelope::{error_code, tool_text};
use mcp_testkit::{Gate, Notes};
use mcp_transport_http::{HttpOptions, HttpService};
use serde_json::json;

use crate::demo::server;
use crate::raw_http::{LEGACY, Post};
use crate::session_client::{Client, NEWEST, initialize, metrics, pass, settle, stateful, with};

fn named(name: &'static str) -> Server {
    Server::builder(name, "1.0")
        .tool(tool("name", move |_: RequestContext, _: NoArguments| ready(name)))
        .build()
        .expect("a server")
}

/// A server that leaves clients with roots to another one, and refuses clients with sampling.
fn choosing() -> Server {
    let (rooted, name) = (named("rooted"), tool("name", async |_, _: NoArguments| "first"));
    Server::builder("first", "1.0")
        .tool(name)
        .on_initialize(move |handshake: Handshake| {
            let rooted = rooted.clone();
            async move {
                tokio::task::yield_now().await;
                let tenant = handshake.extension::<Parts>().expect("HTTP").headers.get("x-tenant").cloned();
                if handshake.supports(ClientCapability::Sampling) {
                    return Err(ErrorObject::invalid_params(format!("no sampling for {tenant:?}")));
                }
                let is_rooted = handshake.supports(ClientCapability::Roots);
                Ok(if is_rooted { rooted } else { handshake.server().clone() })
            }
        })
        .build()
        .expect("a server")
}

/// Handlers get the id of their session.
// covers: MIS-13, S1.24
#[tokio::test]
async fn mis_13_handlers_know_the_session_id() {
    let tell = async |ctx: RequestContext, _: NoArguments| ctx.connection().session_id().unwrap_or_default();
    let server = server(|server| server.tool(tool("id", tell)));
    let service = HttpService::with_options(server, stateful());
    for version in LEGACY {
        let client = Client::open(&service, version).await;
        assert_eq!(client.call("id").await, client.id);
    }
    assert_eq!(tool_text(&Post::tool("id", json!({})).json(&service, 200).await), "");
}

/// The server of a session is chosen by what the client declares, and a client may be refused.
// covers: GW-5, S4.64
#[tokio::test]
async fn gw_5_the_server_of_a_session_is_chosen_by_capabilities() {
    let service = HttpService::with_options(choosing(), stateful());
    for version in LEGACY {
        for (capabilities, name) in [(json!({}), "first"), (json!({ "roots": {} }), "rooted")] {
            let client = Client::open_by(&service, version, initialize(version, capabilities), None).await;
            assert_eq!(client.call("name").await, name);
        }
        let post = initialize(version, json!({ "sampling": {} })).header("x-tenant", "ann");
        let refused = post.to(&service).await;
        assert_eq!(refused.header("mcp-session-id"), None);
        let refused = refused.json(200).await;
        assert_eq!((error_code(&refused), &refused["id"]), (-32602, &json!(1)));
        assert_eq!(refused["error"]["message"], "no sampling for Some(\"ann\")");
    }
    assert_eq!((metrics(&service).live, metrics(&service).created), (8, 8));
    // Modern clients have no handshake.
    assert_eq!(tool_text(&Post::tool("name", json!({})).json(&service, 200).await), "first");
}

/// Without sessions a client is refused as well.
// covers: GW-5
#[tokio::test]
async fn gw_5_clients_without_a_session_are_refused() {
    let service = HttpService::with_options(choosing(), HttpOptions::default());
    for version in LEGACY {
        let welcome = initialize(version, json!({ "roots": {} })).json(&service, 200).await;
        assert_eq!(welcome["result"]["serverInfo"]["name"], "rooted");
        let refused = initialize(version, json!({ "sampling": {} })).json(&service, 200).await;
        assert_eq!(error_code(&refused), -32602);
    }
}

/// A client that leaves before the decision has no session.
// covers: GW-5
#[tokio::test]
async fn gw_5_who_leaves_before_the_decision_has_no_session() {
    let notes = Notes::default();
    let dropped = notes.clone();
    let server = server(|server| {
        server.on_initialize(move |handshake: Handshake| {
            let dropped = dropped.on_drop("dropped");
            async move {
                let _dropped = dropped;
                pending::<()>().await;
                Ok(handshake.server().clone())
            }
        })
    });
    let service = HttpService::with_options(server, stateful());
    let mut waiting = initialize(NEWEST, json!({})).send(&service);
    waiting.starts().await;
    assert_eq!(notes.take(), [""; 0]);
    drop(waiting);
    assert_eq!(notes.take(), ["dropped"]);
    assert_eq!(metrics(&service).created, 0);
}

/// A server whose sessions note what they see, greet the client, and ask it.
fn living(notes: &Notes) -> Server {
    let notes = notes.clone();
    server(|server| {
        let leave = async |ctx: RequestContext, _: NoArguments| ctx.connection().token().to_owned();
        server.tool(tool("token", leave)).on_session(move |session: SessionContext| {
            let (notes, dropped, closed) = (notes.clone(), notes.on_drop("dropped"), notes.clone());
            async move {
                let _dropped = dropped;
                // Without the session id it ends here, and notes nothing.
                session.connection().session_id().expect("a session");
                let parts = session.extension::<Parts>().expect("HTTP");
                let tenant = parts.headers.get("x-tenant").and_then(|tenant| tenant.to_str().ok()).unwrap_or_default();
                let who = session.principal().map_or(String::new(), |principal| principal.subject.to_string());
                notes.add(format!("begins {tenant} {who} {}", session.is_resumed()));
                let connection = session.connection();
                connection.on_close(move || async move { closed.add("closed") });
                if connection.initialized().await.is_err() {
                    return;
                }
                connection.log(LoggingLevel::Error, "welcome");
                let asked = connection.list_roots().timeout(Duration::from_secs(30)).await;
                notes.add(asked.map_or_else(|error| error.to_string(), |roots| format!("{} roots", roots.len())));
                pending::<()>().await;
            }
        })
    })
}

/// The code of a session has the connection, the request and the principal; it sends and asks while no request is in
/// flight, and ends with the session, before the callbacks of the connection.
// covers: MIS-4, S4.66
#[tokio::test(start_paused = true)]
async fn mis_4_code_runs_for_the_life_of_a_session() {
    for version in LEGACY {
        let notes = Notes::default();
        let service = HttpService::with_options(living(&notes), stateful());
        let ann = Principal::new(None, "ann");
        let post = initialize(version, json!({ "roots": {} })).header("x-tenant", "acme").extension(ann.clone());
        let client = Client::shake_hands(&service, version, post, Some(ann)).await;
        settle().await;
        assert_eq!(notes.take(), ["begins acme ann false"]);
        let mut stream = client.listen().await;
        client.notify("notifications/initialized", json!({})).await;
        assert_eq!(stream.message().await["params"]["data"], "welcome");
        let question = stream.message().await;
        assert_eq!(question["method"], "roots/list");
        client.answer(&question, json!({ "roots": [] })).await;
        settle().await;
        assert_eq!(notes.take(), ["0 roots"]);
        assert_eq!(client.delete().to(&service).await.status.as_u16(), 204);
        settle().await;
        assert_eq!(notes.take(), ["dropped", "closed"]);
    }
}

/// Deadlines of the code are kept, although no response of the session is polled.
// covers: MIS-4, S1.28
#[tokio::test(start_paused = true)]
async fn mis_4_deadlines_are_kept_while_a_session_is_idle() {
    let notes = Notes::default();
    let service = HttpService::with_options(living(&notes), stateful());
    let client = Client::open_by(&service, NEWEST, initialize(NEWEST, json!({ "roots": {} })), None).await;
    pass(Duration::from_secs(29)).await;
    assert_eq!(notes.take(), ["begins   false"]);
    assert_eq!((metrics(&service).idle, metrics(&service).active), (1, 0), "the code does not use the session");
    pass(Duration::from_secs(2)).await;
    assert_eq!(notes.take(), ["the peer did not respond in time"]);
    client.call("token").await;
}

/// The code does not keep a session alive: it ends with the idle timeout, an eviction, a shutdown, and the service.
// covers: MIS-4, S4.36, S4.42
#[tokio::test(start_paused = true)]
async fn mis_4_code_ends_with_its_session() {
    let notes = Notes::default();
    let options = SessionOptions::default().idle_timeout(Some(Duration::from_secs(60)));
    let service = with(living(&notes), options);
    Client::open(&service, NEWEST).await.call("token").await;
    pass(Duration::from_secs(200)).await;
    assert_eq!(metrics(&service).ended(EndReason::Idle), 1);
    assert_eq!(notes.take()[2..], ["dropped", "closed"]);

    let service = HttpService::with_options(living(&notes), stateful());
    Client::open(&service, NEWEST).await;
    settle().await;
    service.drain(Duration::from_secs(1)).await;
    assert_eq!(notes.take()[1..], ["dropped", "closed"], "the drain waits for them");

    let service = HttpService::with_options(living(&notes), stateful());
    let client = Client::open(&service, NEWEST).await;
    settle().await;
    notes.take();
    drop((service, client));
    settle().await;
    assert_eq!(notes.take(), ["dropped"], "nothing is left of a service that is dropped");
}

/// What the code adds for the end of the connection while it is dropped is done, too.
// covers: MIS-4, S1.16
#[tokio::test]
async fn mis_4_callbacks_may_be_added_at_the_end() {
    struct AddsCallback(SessionContext, Notes);

    impl Drop for AddsCallback {
        fn drop(&mut self) {
            let notes = self.1.clone();
            self.0.connection().on_close(move || async move { notes.add("late") });
        }
    }

    let notes = Notes::default();
    let kept = notes.clone();
    let server = server(|server| {
        server.on_session(move |session| {
            let adds = AddsCallback(session, kept.clone());
            async move {
                let _adds = adds;
                pending::<()>().await;
            }
        })
    });
    let service = HttpService::with_options(server, stateful());
    let client = Client::open(&service, NEWEST).await;
    settle().await;
    assert_eq!(client.delete().to(&service).await.status.as_u16(), 204);
    settle().await;
    assert_eq!(notes.take(), ["late"]);
}

/// Code that ends or panics does not end its session, and a server without such code has no task for a session.
// covers: MIS-4
#[tokio::test]
async fn mis_4_a_session_outlives_its_code() {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let (gate, hello) = (Gate::default(), || tool("hello", async |_, _: NoArguments| "hello"));
    let waiting = gate.clone();
    let code = server(|server| {
        server.tool(hello()).on_session(move |_| {
            let waiting = waiting.clone();
            async move {
                waiting.wait().await;
                panic!("this is what the test wants");
            }
        })
    });
    for (server, expected) in [(code, 1), (server(|server| server.tool(hello())), 0)] {
        let service = HttpService::with_options(server, stateful());
        // The first request also starts the tasks of the service.
        Client::open(&service, NEWEST).await;
        settle().await;
        let before = tasks();
        let client = Client::open(&service, NEWEST).await;
        settle().await;
        assert_eq!(tasks() - before, expected);
        gate.open();
        settle().await;
        assert_eq!(client.call("hello").await, "hello");
        assert_eq!(tasks(), before - expected, "all of them have ended");
    }
}

/// The decision and the code work together: the chosen server runs its own code.
// covers: GW-5, MIS-4
#[tokio::test]
async fn mis_4_the_chosen_server_runs_the_session() {
    let notes = Notes::default();
    let chosen = living(&notes);
    let server = server(|server| server.on_initialize(move |_| ready(Ok(chosen.clone()))));
    let service = HttpService::with_options(server, stateful());
    let client = Client::open(&service, NEWEST).await;
    settle().await;
    assert_eq!(notes.take(), ["begins   false"]);
    assert!(!client.call("token").await.is_empty());
}

/// The code of a session begins when there is a session: it knows the session id.
// covers: MIS-4, MIS-13
#[tokio::test]
async fn mis_4_code_begins_after_its_session() {
    let notes = Notes::default();
    for is_chosen in [false, true] {
        let seen = notes.clone();
        let telling = server(|server| {
            server.on_session(move |session: SessionContext| {
                let seen = seen.clone();
                seen.add(session.connection().session_id().unwrap_or_default());
                async move { seen.add(session.connection().session_id().unwrap_or_default()) }
            })
        });
        let choosing = telling.clone();
        let choosing = server(|server| server.on_initialize(move |_| ready(Ok(choosing.clone()))));
        let (ann, options) = (Principal::new(None, "ann"), SessionOptions::default().limit_per_principal(1));
        let service = with(if is_chosen { choosing } else { telling }, options);
        let client = Client::open_as(&service, NEWEST, &ann).await;
        settle().await;
        assert_eq!(notes.take(), [client.id.clone(), client.id.clone()]);
        // A stream keeps the session in use, so another one is refused.
        let _stream = client.listen().await;
        assert_eq!(initialize(NEWEST, json!({})).extension(ann).to(&service).await.status, 429);
        settle().await;
        assert_eq!(notes.take(), [""; 0], "it is not called for a session that is refused");
    }
}
