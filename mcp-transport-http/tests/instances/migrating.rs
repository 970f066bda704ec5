//! What the application decides and supplies when a session goes on at another instance.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::StatusCode;
use http::request::Parts;
use mcp_server::types::{ErrorObject, Revision};
use mcp_server::{
    ClientCapability, Handshake, NoArguments, Principal, RequestContext, Server, ServerBuilder, SessionContext,
    SubscriptionEvent, text_resource, tool,
};
use mcp_testkit::{Gate, Notes};
use mcp_transport_http::session::EndReason;
use mcp_transport_http::{HttpOptions, HttpService, Refusal, SessionMigration};
use serde_json::{Value, json};

use crate::client::{Client, Shared, server};

/// What handlers keep for a session.
struct Basket(String);

/// A server whose tool tells what is in the basket of the session.
fn shop_builder() -> ServerBuilder {
    let tell = async |ctx: RequestContext, _: NoArguments| {
        let basket = ctx.connection().scratch().ok().and_then(|scratch| scratch.get::<Basket>());
        basket.map_or_else(|| "nothing".to_owned(), |basket| basket.0.clone())
    };
    Server::builder("shop", "1.0").tool(tool("basket", tell))
}

fn shop() -> Server {
    shop_builder().build().expect("a server")
}

/// Lets tasks run.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

async fn basket(client: &Client, service: &HttpService) -> Value {
    let answer = client.ask(service, "tools/call", json!({ "name": "basket" })).await.json(200).await;
    answer["result"]["content"][0]["text"].clone()
}

fn instance(shared: &Shared, migrate: impl FnOnce(HttpOptions) -> HttpOptions) -> HttpService {
    HttpService::with_options(shop(), migrate(shared.options()))
}

/// The application learns that a session goes on without its values, with the request, the record and the principal, and
/// supplies them again; it is asked once for each instance.
// covers: MIS-5, S4.115
#[tokio::test]
async fn mis_5_values_are_supplied_again() {
    let (shared, notes) = (Shared::default(), Notes::default());
    let (one, seen) = (instance(&shared, |options| options), notes.clone());
    let two = instance(&shared, |options| {
        options.session_migration(move |session: SessionMigration| {
            let seen = seen.clone();
            async move {
                tokio::task::yield_now().await;
                let client: Value = serde_json::from_str(session.record().initialize.as_str()).expect("JSON");
                seen.add(format!(
                    "{} {} {} {:?} {}",
                    session.parts().method,
                    client["clientInfo"]["name"],
                    session.record().revision,
                    session.principal().map(|principal| principal.subject.to_string()),
                    session.id(),
                ));
                assert_eq!(session.connection().session_id(), Some(session.id().to_string()));
                session.connection().scratch().unwrap().insert(Basket(format!("apples of {}", session.id())));
                Ok(())
            }
        })
    });
    let client = Client::initialize(&one, Some(Principal::new(None, "ann"))).await;
    assert_eq!(basket(&client, &one).await, "nothing");
    for _ in 0..2 {
        assert_eq!(basket(&client, &two).await, format!("apples of {}", client.session));
    }
    assert_eq!(notes.take(), [format!("POST \"test\" 2025-11-25 Some(\"ann\") {}", client.session)]);
    assert_eq!(basket(&client, &one).await, "nothing", "it has its own values");
}

/// A session is resumed once, however many requests arrive at once: they all wait for its values.
// covers: MIS-5
#[tokio::test]
async fn mis_5_requests_wait_for_the_values() {
    let (shared, gate, calls) = (Shared::default(), Gate::default(), Arc::new(AtomicUsize::new(0)));
    let one = instance(&shared, |options| options);
    let (waiting, counted) = (gate.clone(), Arc::clone(&calls));
    let two = instance(&shared, |options| {
        options.session_migration(move |session: SessionMigration| {
            let waiting = waiting.clone();
            counted.fetch_add(1, Ordering::SeqCst);
            async move {
                waiting.wait().await;
                session.connection().scratch().unwrap().insert(Basket("pears".to_owned()));
                Ok(())
            }
        })
    });
    let client = Arc::new(Client::initialize(&one, None).await);
    let asked: Vec<_> = (0..5)
        .map(|_| {
            let (client, two) = (Arc::clone(&client), two.clone());
            tokio::spawn(async move { basket(&client, &two).await })
        })
        .collect();
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    // One that comes later finds the session, but has to wait, too.
    let late = tokio::spawn({
        let (client, two) = (Arc::clone(&client), two.clone());
        async move { basket(&client, &two).await }
    });
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert!(asked.iter().all(|asked| !asked.is_finished()) && !late.is_finished());
    gate.open();
    for asked in asked.into_iter().chain([late]) {
        let within = tokio::time::timeout(Duration::from_secs(10), asked).await.expect("it does not hang");
        assert_eq!(within.expect("an answer"), "pears");
    }
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    assert_eq!(two.session_metrics().expect("sessions").adopted, 1);
}

/// A session that the application refuses is unknown here, and its connection is torn down; it goes on elsewhere.
// covers: MIS-5
#[tokio::test]
async fn mis_5_a_session_is_refused() {
    let (shared, notes) = (Shared::default(), Notes::default());
    let (one, closed) = (instance(&shared, |options| options), notes.clone());
    let two = instance(&shared, |options| {
        options.session_migration(move |session: SessionMigration| {
            let closed = closed.clone();
            session.connection().on_close(move || async move { closed.add("closed") });
            std::future::ready(match session.parts().headers.get("x-status") {
                Some(_) => Err(Refusal::new(StatusCode::GONE, "it was here")),
                None => Err(Refusal::unknown_session()),
            })
        })
    });
    let client = Client::initialize(&one, None).await;
    let refused = client.ask(&two, "ping", json!({})).await.json(404).await;
    assert_eq!(refused["error"]["message"], "there is no such session");
    client.send(&two, "GET", &[("x-status", "gone")], Value::Null).await.json(410).await;
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert_eq!(notes.take(), ["closed"; 2]);
    let metrics = two.session_metrics().expect("sessions");
    assert_eq!((metrics.live, metrics.ended(EndReason::NotResumed)), (0, 2));
    client.ask(&one, "ping", json!({})).await.json(200).await;
}

/// A client that leaves while its session is resumed leaves no half of it behind.
// covers: MIS-5
#[tokio::test]
async fn mis_5_who_leaves_meanwhile_leaves_nothing_behind() {
    let (shared, gate) = (Shared::default(), Gate::default());
    let (one, waiting) = (instance(&shared, |options| options), gate.clone());
    let two = instance(&shared, |options| {
        options.session_migration(move |session: SessionMigration| {
            let waiting = waiting.clone();
            async move {
                waiting.wait().await;
                session.connection().scratch().unwrap().insert(Basket("plums".to_owned()));
                Ok(())
            }
        })
    });
    let client = Arc::new(Client::initialize(&one, None).await);
    let leaving = tokio::spawn({
        let (client, two) = (Arc::clone(&client), two.clone());
        async move { client.ask(&two, "ping", json!({})).await.status }
    });
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert_eq!(two.session_metrics().expect("sessions").live, 1);
    leaving.abort();
    assert!(leaving.await.is_err());
    assert_eq!(two.session_metrics().expect("sessions").live, 0);
    gate.open();
    assert_eq!(basket(&client, &two).await, "plums");
}

/// The server of a session is selected again where it is resumed: by the request, and by the handshake in the record.
// covers: MIS-5, GW-5, S4.64
#[tokio::test]
async fn mis_5_the_server_is_selected_again() {
    fn telling(name: &'static str) -> Server {
        Server::builder(name, "1.0")
            .tool(tool("name", move |_: RequestContext, _: NoArguments| std::future::ready(name)))
            .build()
            .expect("a server")
    }
    let shared = Shared::default();
    let selecting = || {
        let selected = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&selected);
        let options = shared.options().select_server(move |parts: Arc<Parts>| {
            count.fetch_add(1, Ordering::SeqCst);
            let server = match parts.headers.get("x-tenant").map(|tenant| tenant.as_bytes()) {
                Some(b"acme") => Ok(telling("acme")),
                Some(_) => Ok(telling("other")),
                None => Err(Refusal::new(StatusCode::BAD_REQUEST, "who?")),
            };
            std::future::ready(server)
        });
        (HttpService::with_options(server(), options), selected)
    };
    let ((one, first), (two, second)) = (selecting(), selecting());
    let tenant = [("x-tenant", "acme")];
    let hello = mcp_testkit::envelope::initialize(1, "2025-11-25", json!({}));
    let session = Client::default().send(&one, "POST", &tenant, hello).await.session.expect("a session");
    let client = Client { session, principal: None };
    let call = mcp_testkit::envelope::request(1, "tools/call", json!({ "name": "name" }));
    client.send(&two, "POST", &[], call.clone()).await.json(400).await;
    for service in [&one, &two, &two, &one] {
        let answer = client.send(service, "POST", &tenant, call.clone()).await.json(200).await;
        assert_eq!(answer["result"]["content"][0]["text"], "acme");
    }
    assert_eq!((first.load(Ordering::SeqCst), second.load(Ordering::SeqCst)), (1, 2));

    let choosing = || {
        let rooted = telling("rooted");
        let server = Server::builder("first", "1.0").on_initialize(move |handshake: Handshake| {
            let is_strange =
                handshake.extension::<Parts>().is_some_and(|parts| parts.headers.contains_key("x-strange"));
            let is_rooted = handshake.supports(ClientCapability::Roots) && !is_strange;
            std::future::ready(if is_rooted { Ok(rooted.clone()) } else { Err(ErrorObject::invalid_request("no")) })
        });
        HttpService::with_options(server.build().expect("a server"), shared.options())
    };
    let (one, two) = (choosing(), choosing());
    let hello = mcp_testkit::envelope::initialize(1, "2025-11-25", json!({ "roots": {} }));
    let session = Client::default().send(&one, "POST", &[], hello).await.session.expect("a session");
    let client = Client { session, principal: None };
    client.send(&two, "POST", &[("x-strange", "1")], call.clone()).await.json(404).await;
    let answer = client.send(&two, "POST", &[], call).await.json(200).await;
    assert_eq!(answer["result"]["content"][0]["text"], "rooted");
}

/// The code of a session begins again where it is resumed, after its values were supplied.
// covers: MIS-4, MIS-5
#[tokio::test]
async fn mis_5_the_code_of_a_session_begins_again() {
    let (shared, notes) = (Shared::default(), Notes::default());
    let instance = || {
        let notes = notes.clone();
        let server = Server::builder("shop", "1.0").on_session(move |session: SessionContext| {
            let (notes, ended) = (notes.clone(), notes.on_drop("ended"));
            async move {
                let _ended = ended;
                let basket = session
                    .connection()
                    .scratch()
                    .unwrap()
                    .get::<Basket>()
                    .map_or_else(|| "nothing".to_owned(), |it| it.0.clone());
                session.connection().initialized().await.expect("a handshake");
                let verb = session.extension::<Parts>().expect("HTTP").method.clone();
                notes.add(format!("{verb} {} {basket}", session.is_resumed()));
                std::future::pending::<()>().await;
            }
        });
        let options = shared.options().session_migration(async |session: SessionMigration| {
            session.connection().scratch().unwrap().insert(Basket("figs".to_owned()));
            Ok(())
        });
        HttpService::with_options(server.build().expect("a server"), options)
    };
    let settle = async || {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    };
    let (one, two) = (instance(), instance());
    let client = Client::initialize(&one, None).await;
    settle().await;
    assert_eq!(notes.take(), ["POST false nothing"]);
    let mut stream = client.send(&two, "GET", &[], Value::Null).await;
    stream.text("retry").await;
    settle().await;
    assert_eq!(notes.take(), ["GET true figs"]);
    client.send(&one, "DELETE", &[], Value::Null).await.json(204).await;
    settle().await;
    assert_eq!(notes.take(), ["ended"]);
}

/// The application learns of the subscriptions of a session once it has not refused it, with its values.
// covers: MIS-5
#[tokio::test]
async fn mis_5_subscriptions_begin_after_the_decision() {
    let (shared, notes, gate) = (Shared::default(), Notes::default(), Gate::default());
    let subscribable = |notes: Option<Notes>| {
        let server =
            Server::builder("shop", "1.0").resource(text_resource("a:b", "b", "text")).resource_subscriptions();
        let server = server.on_subscription(move |event: &SubscriptionEvent<'_>| {
            let Some(notes) = &notes else { return };
            let who = event.viewer.principal().map(|principal| principal.subject.to_string()).unwrap_or_default();
            notes.add(format!("{who} {:?} {}", event.uris().collect::<Vec<_>>(), event.is_active));
        });
        server.build().expect("a server")
    };
    let one = HttpService::with_options(subscribable(None), shared.options());
    let waiting = gate.clone();
    let options = shared.options().session_migration(move |session: SessionMigration| {
        let waiting = waiting.clone();
        async move {
            if session.parts().headers.contains_key("x-refused") {
                return Err(Refusal::unknown_session());
            }
            waiting.wait().await;
            Ok(())
        }
    });
    let two = HttpService::with_options(subscribable(Some(notes.clone())), options);
    let client = Client::initialize(&one, Some(Principal::new(None, "ann"))).await;
    client.ask(&one, "resources/subscribe", json!({ "uri": "a:b" })).await.json(200).await;
    let ping = mcp_testkit::envelope::request(1, "ping", json!({}));
    client.send(&two, "POST", &[("x-refused", "1")], ping).await.json(404).await;
    settle().await;
    assert_eq!(notes.take(), [""; 0], "neither a begin nor an end");
    let client = Arc::new(client);
    let pinged = tokio::spawn({
        let (client, two) = (Arc::clone(&client), two.clone());
        async move { client.ask(&two, "ping", json!({})).await.json(200).await }
    });
    settle().await;
    assert_eq!(notes.take(), [""; 0], "nothing is decided yet");
    gate.open();
    pinged.await.expect("an answer");
    assert_eq!(notes.take(), ["ann [\"a:b\"] true"]);
    client.send(&two, "DELETE", &[], Value::Null).await.json(204).await;
    settle().await;
    assert_eq!(notes.take(), ["ann [\"a:b\"] false"]);
}

/// A session is not resumed by a server that does not have its revision, no matter which function chose the server: the
/// client begins a new session, and negotiates again.
// covers: MIS-5, GW-5
#[tokio::test]
async fn mis_5_a_session_needs_a_server_of_its_revision() {
    let recent = || {
        let revisions = [Revision::V2025_06_18, Revision::V2026_07_28];
        Server::builder("recent", "1.0").revisions(revisions).build().expect("a server")
    };
    let shared = Shared::default();
    let one = instance(&shared, |options| options);
    let chosen = shop_builder().on_initialize(move |_: Handshake| std::future::ready(Ok(recent())));
    let chosen = HttpService::with_options(chosen.build().expect("a server"), shared.options());
    let selected = shared.options().select_server(move |_: Arc<Parts>| std::future::ready(Ok(recent())));
    let selected = HttpService::with_options(shop(), selected);
    let plain = HttpService::with_options(recent(), shared.options());
    let client = Client::initialize(&one, None).await;
    for service in [&chosen, &selected, &plain] {
        let refused = client.ask(service, "ping", json!({})).await.json(404).await;
        assert_eq!(refused["error"]["message"], "there is no such session");
        assert_eq!(service.session_metrics().expect("sessions").adopted, 0);
    }
    assert_eq!(basket(&client, &one).await, "nothing", "it goes on where it can");
}
