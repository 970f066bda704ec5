//! Our own client and our own server, in all the ways that they can talk.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_client::types::{ElicitResult, ElicitValue, OrderedMap, Revision, SubscriptionFilter};
use mcp_client::{Change, Client, ClientBuilder, Mode};
use mcp_server::{HandlerError, NoArguments, RequestContext, Server, tool};
use mcp_transport_http::{HttpOptions, HttpServer, HttpService, HttpTransport, SessionMode};
use serde_json::json;

use crate::scripted::{text_of, within};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Sure {
    sure: bool,
}

fn server() -> Server {
    Server::builder("own", "1.0")
        .tool(tool("echo", async |_, text: Echo| text.text))
        .tool(tool("steps", async |ctx: RequestContext, _: NoArguments| {
            for step in 1..=3_u64 {
                ctx.progress(step);
            }
            "done"
        }))
        .tool(tool("ask", async |ctx: RequestContext, _: NoArguments| {
            let Sure { sure } = ctx.elicit("sure", "Really?").await?.accepted()?;
            Ok::<_, HandlerError>(sure.to_string())
        }))
        .tool(tool("grow", async |ctx: RequestContext, _: NoArguments| {
            let more = tool("more", async |_, _: NoArguments| "more");
            ctx.server().update(|registry| registry.add_tool(more)).map(|()| "grown").map_err(|error| error.to_string())
        }))
        .build()
        .expect("a server")
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    text: String,
}

struct Served {
    service: HttpService,
    url: String,
    sse: String,
}

async fn serve(mode: SessionMode) -> Served {
    let service = HttpService::with_options(server(), HttpOptions::default().sessions(mode));
    let mut listener = HttpServer::bind("127.0.0.1:0").await.expect("a port");
    if mode == SessionMode::Stateful {
        listener = listener.legacy_sse(service.legacy_sse().expect("sessions"));
    }
    let (url, sse) = (listener.url(), format!("http://{}/sse", listener.address()));
    let serving = service.clone();
    tokio::spawn(async move { listener.serve(serving, std::future::pending()).await });
    Served { service, url, sse }
}

fn builder(mode: Mode, revision: Revision) -> ClientBuilder {
    Client::builder("own", "1.0").mode(mode).revisions([revision]).on_form_elicitation(async |_, _| {
        let mut content = OrderedMap::<ElicitValue>::default();
        content.insert("sure", ElicitValue::Boolean(true));
        ElicitResult::accepted(content)
    })
}

async fn talk(client: &Client) {
    let echoed = within(client.call_tool("echo").arguments(&json!({ "text": "grüß" }))).await.expect("a result");
    assert_eq!(text_of(&echoed), "grüß");
    let steps = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&steps);
    let call = client.call_tool("steps").arguments(&json!({})).on_progress(move |progress| {
        heard
            .lock()
            .expect("nobody panicked")
            .push(serde_json::to_value(progress).expect("JSON")["progress"].as_f64().expect("a number"));
    });
    assert_eq!(text_of(&within(call).await.expect("a result")), "done");
    assert_eq!(*steps.lock().expect("nobody panicked"), [1.0, 2.0, 3.0]);
    let many: Vec<_> = (0..50)
        .map(|number| {
            let client = client.clone();
            tokio::spawn(
                async move { client.call_tool("echo").arguments(&json!({ "text": number.to_string() })).await },
            )
        })
        .collect();
    for (number, call) in many.into_iter().enumerate() {
        assert_eq!(text_of(&within(call).await.expect("a task").expect("a result")), number.to_string());
    }
}

async fn ask(client: &Client) {
    let asked = within(client.call_tool("ask").arguments(&json!({}))).await.expect("a result");
    assert_eq!(text_of(&asked), "true");
}

async fn hear(client: &Client) {
    let filter = SubscriptionFilter::default().tools_list_changed(true);
    let mut listener = within(client.listen(filter)).await.expect("a result");
    // The stream of a session may come a little later.
    let change = within(async {
        loop {
            let _ = client.call_tool("grow").arguments(&json!({})).await.expect("a result");
            if let Ok(change) = tokio::time::timeout(Duration::from_millis(200), listener.next()).await {
                return change.expect("a change").expect("a change");
            }
        }
    });
    assert_eq!(change.await, Change::Tools);
}

/// Modern.
// covers: DU-1, DU-3, H-15, L-2
#[tokio::test]
async fn modern() {
    let served = serve(SessionMode::Stateless).await;
    let transport = HttpTransport::new(&served.url).unwrap();
    let client = within(builder(Mode::Auto, Revision::V2026_07_28).connect(transport)).await.unwrap();
    talk(&client).await;
    ask(&client).await;
    hear(&client).await;
    assert_eq!(client.session_id(), None);
    within(client.close()).await;
}

/// Legacy with sessions, which end with their clients.
// covers: DU-7, S4.50, S4.59
#[tokio::test]
async fn legacy_with_sessions() {
    for revision in [Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25] {
        let served = serve(SessionMode::Stateful).await;
        let transport = HttpTransport::new(&served.url).unwrap();
        let client = within(builder(Mode::Legacy, revision).connect(transport)).await.unwrap();
        assert!(client.session_id().is_some() && client.revision() == Some(revision));
        talk(&client).await;
        if revision >= Revision::V2025_06_18 {
            ask(&client).await;
        }
        hear(&client).await;
        within(client.close()).await;
        assert_eq!(served.service.session_metrics().unwrap().active, 0, "{revision:?}");
    }
}

/// Legacy without sessions.
// covers: DU-7
#[tokio::test]
async fn legacy_without_sessions() {
    let served = serve(SessionMode::Stateless).await;
    for revision in [Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25] {
        let transport = HttpTransport::new(&served.url).unwrap();
        let client = within(builder(Mode::Legacy, revision).connect(transport)).await.unwrap();
        assert_eq!(client.session_id(), None);
        talk(&client).await;
        within(client.close()).await;
    }
}

/// HTTP+SSE, found by its stream.
// covers: DU-4, DU-38
#[tokio::test]
async fn http_sse() {
    let served = serve(SessionMode::Stateful).await;
    let transport = HttpTransport::new(&served.sse).unwrap();
    let client = within(Client::builder("own", "1.0").connect(transport)).await.unwrap();
    talk(&client).await;
    assert_eq!(client.session_id(), None);
    within(client.close()).await;
}
