//! Tests in both eras, without a network.

use std::future::ready;
use std::sync::mpsc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use mcp::client::{ClientBuilder, Error, MemoryTransport};
use mcp::prelude::*;
use mcp::serde_json::{Value, from_slice, from_str};
use mcp::server::{Caller, Change, Principal};
use mcp::types::{ElicitAction, ElicitResult, ErrorCode, Revision, SubscriptionFilter};
use mcp_testkit::envelope;
use tokio::time::timeout;
use tower::ServiceExt as _;

use crate::resources::uri_of;
use crate::store::{Catalogue, Item, NewItem};

const ERAS: [Revision; 2] = [Revision::V2025_11_25, Revision::LATEST];

fn server() -> Server {
    crate::server(Catalogue::open(":memory:").expect("a database")).expect("a server")
}

async fn connect_with(builder: ClientBuilder, server: &Server, user: &str, revision: Revision) -> Client {
    let mut caller = Caller::default();
    caller.principal = Some(Principal::new(None, user));
    let transport = MemoryTransport::new(server.clone()).caller(caller);
    builder.revisions([revision]).connect(transport).await.expect("a connection")
}

async fn connect(server: &Server, user: &str, revision: Revision) -> Client {
    connect_with(Client::builder("test", "1.0"), server, user, revision).await
}

/// Calls a tool, and returns its text, or the text of its error.
async fn call(client: &Client, tool: &str, arguments: Value) -> Result<String, String> {
    let result = client.call_tool(tool).arguments(&arguments).await.expect("a result");
    if result.is_error == Some(true) { Err(result.to_text()) } else { Ok(result.to_text()) }
}

async fn add(client: &Client, name: &str) -> Item {
    let item = json!({ "name": name, "price_in_cents": 250, "stock": 3 });
    client.call_tool("add_item").arguments(&item).structured().await.expect("an item")
}

fn code<T>(result: Result<T, Error>) -> Option<ErrorCode> {
    result.err()?.as_rejection().map(|error| error.code)
}

#[tokio::test]
async fn members_do_not_see_the_tools_of_administrators() {
    for revision in ERAS {
        let server = server();
        for (user, tools) in [("ann", 5), ("bob", 3), ("eve", 3)] {
            let client = connect(&server, user, revision).await;
            assert_eq!(client.tools().all().await.expect("tools").len(), tools, "{user}");
        }
        let bob = connect(&server, "bob", revision).await;
        let delete = bob.call_tool("delete_item").arguments(&json!({ "id": add(&bob, "rose").await.id }));
        assert_eq!(code(delete.await), Some(ErrorCode::INVALID_PARAMS));
    }
}

#[tokio::test]
async fn errors_tell_the_model_what_to_do() {
    for revision in ERAS {
        let client = connect(&server(), "bob", revision).await;
        let error = call(&client, "set_stock", json!({ "id": 7, "stock": 1 })).await.expect_err("no such item");
        assert_eq!(error, "there is no item 7: call search_items for the ids");
        add(&client, "rose").await;
        for (name, expected) in [("rose", "there is already an item with the name \"rose\""), ("", "name")] {
            let item = json!({ "name": name, "price_in_cents": 1 });
            let error = call(&client, "add_item", item).await.expect_err("an invalid item");
            assert!(error.contains(expected), "{error}");
        }
    }
}

#[tokio::test]
async fn items_are_deleted_only_if_the_user_confirms() {
    for revision in ERAS {
        let server = server();
        let ann = connect(&server, "ann", revision).await;
        let delete = json!({ "id": add(&ann, "rose").await.id });
        // A client that cannot ask the user gets the error of the protocol.
        let refused = code(ann.call_tool("delete_item").arguments(&delete).await);
        assert_eq!(refused, Some(ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY));
        for (response, expected) in [
            (ElicitResult::new(ElicitAction::Decline), "kept \"rose\", because the user does not want to delete it"),
            (ElicitResult::accepted([("delete", false)]), "kept \"rose\", because the user does not want to delete it"),
            (ElicitResult::accepted([("delete", true)]), "deleted \"rose\""),
        ] {
            let builder = Client::builder("test", "1.0").on_form_elicitation(move |_, form| {
                assert_eq!(form.message, "Delete \"rose\", of which there are 3?");
                ready(response.clone())
            });
            let ann = connect_with(builder, &server, "ann", revision).await;
            assert_eq!(call(&ann, "delete_item", delete.clone()).await.as_deref(), Ok(expected));
        }
        let found = call(&ann, "search_items", json!({ "text": "" })).await;
        assert_eq!(found.as_deref(), Ok(r#"{"items":[]}"#));
    }
}

#[tokio::test]
async fn an_import_reports_its_progress_and_replaces_items() {
    for revision in ERAS {
        let ann = connect(&server(), "ann", revision).await;
        let rose = add(&ann, "rose").await;
        let items = ["tulip", "rose", "lily"].map(|name| json!({ "name": name, "price_in_cents": 99 }));
        let (sender, reports) = mpsc::channel();
        let import = ann.call_tool("import_items").arguments(&json!({ "items": items }));
        let import =
            import.on_progress(move |report| sender.send((report.progress, report.total)).expect("a receiver"));
        assert_eq!(import.await.expect("a result").to_text(), "imported 3 items");
        let reports = reports.iter().map(|(done, total)| (done.as_f64(), total.expect("a total").as_f64()));
        assert_eq!(reports.collect::<Vec<_>>(), [(1.0, 3.0), (2.0, 3.0), (3.0, 3.0)]);
        let found = call(&ann, "search_items", json!({ "text": "ROSE" })).await.expect("a result");
        let rose = json!({ "id": rose.id, "name": "rose", "price_in_cents": 99, "stock": 0, "changed_by": "ann" });
        assert_eq!(from_str::<Value>(&found).expect("JSON"), json!({ "items": [rose] }));
    }
}

#[tokio::test]
async fn an_import_that_is_cancelled_changes_nothing() {
    let catalogue = Catalogue::open(":memory:").expect("a database");
    let items = ["tulip", "rose", "lily"].map(|name| NewItem { name: name.to_owned(), price_in_cents: 99, stock: 0 });
    catalogue.import(items.into(), "ann".to_owned(), |done| done < 2).await.expect_err("cancelled");
    assert!(catalogue.search(String::new()).await.expect("items").is_empty());
}

#[tokio::test]
async fn items_are_resources() {
    for (revision, not_found) in ERAS.into_iter().zip([ErrorCode::RESOURCE_NOT_FOUND, ErrorCode::INVALID_PARAMS]) {
        let client = connect(&server(), "bob", revision).await;
        let id = add(&client, "rose").await.id;
        let read = client.read_resource(uri_of(id)).await.expect("a resource");
        assert_eq!(read.contents[0].mime_type(), Some("application/json"));
        let item: Item = from_str(read.contents[0].as_text().expect("text")).expect("an item");
        assert_eq!(item.changed_by, "bob");
        for uri in [uri_of(id + 1), "catalogue://items/rose".to_owned()] {
            assert_eq!(code(client.read_resource(uri).await), Some(not_found));
        }
    }
}

#[tokio::test]
async fn subscribers_are_notified_of_changes() {
    for revision in ERAS {
        let server = server();
        let (ann, bob) = (connect(&server, "ann", revision).await, connect(&server, "bob", revision).await);
        let (rose, tulip) = (add(&ann, "rose").await.id, add(&ann, "tulip").await.id);
        let filter = SubscriptionFilter::default().resource(uri_of(rose));
        let mut changes = bob.listen(filter).await.expect("a subscription");
        for id in [tulip, rose] {
            call(&ann, "set_stock", json!({ "id": id, "stock": 0 })).await.expect("a result");
        }
        let change = timeout(Duration::from_secs(10), changes.next()).await.expect("a change in time");
        assert_eq!(change.expect("a change").expect("a subscription"), Change::Resource(uri_of(rose)));
    }
}

#[tokio::test]
async fn bearer_tokens_authenticate_users_over_http() {
    let app = crate::app(crate::service(server()).expect("a service"));
    for (token, expected) in [("ann-secret", Some(5)), ("bob-secret", Some(3)), ("eve-secret", None)] {
        let request = Request::post("/mcp")
            .header("Host", "localhost")
            .header("Authorization", format!("Bearer {token}"))
            .header("Content-Type", "application/json")
            .header("MCP-Protocol-Version", "2026-07-28")
            .header("Mcp-Method", "tools/list")
            .body(Body::from(envelope::modern_request(1, "tools/list", json!({})).to_string()));
        let response = app.clone().oneshot(request.expect("a request")).await.expect("a response");
        assert_eq!(response.status() == StatusCode::OK, expected.is_some());
        let body = to_bytes(response.into_body(), 100_000).await.expect("a body");
        let body: Value = from_slice(&body).unwrap_or_default();
        assert_eq!(body["result"]["tools"].as_array().map(Vec::len), expected, "{token}");
    }
}
