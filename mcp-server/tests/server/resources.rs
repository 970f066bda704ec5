//! Resources, with addresses of their own and with templates.

use std::time::Duration;

use mcp_server::types::{CacheScope, ErrorObject, ReadResourceResult, ResourceContents, Revision};
use mcp_server::{
    HandlerError, Json, ListKind, Server, UriVariables, blob_resource, resource, template, text_resource,
};
use mcp_testkit::ScriptedClient;
use serde_json::{Value, json};

use crate::servers::{LEGACY, MODERN, server};

fn library() -> Server {
    let chapter = async |_, variables: UriVariables| {
        let (book, number) = (variables.get("book")?, variables.get("number")?);
        matches!(number, "1" | "2").then(|| format!("chapter {number} of {book}"))
    };
    server(|server| {
        server
            .resource(text_resource("notes:today", "today", "buy milk").description("Today").size(8))
            .resource(blob_resource("notes:photo", "photo", [1, 2, 255]).mime_type("image/png"))
            .template(template("book://{book}/{number}", "chapters", chapter).mime_type("text/markdown"))
    })
}

fn read(client: &mut ScriptedClient, uri: &str) -> Value {
    client.result("resources/read", json!({ "uri": uri }))["contents"].take()
}

/// Texts and bytes are listed, and read under their addresses.
// covers: RS-1, RS-12
#[test]
fn texts_and_bytes_are_read() {
    let server = library();
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        let listed = client.result("resources/list", json!({}));
        assert_eq!(listed["resources"][0]["uri"], "notes:today");
        assert_eq!(listed["resources"][0]["mimeType"], "text/plain");
        assert_eq!(listed["resources"].as_array().unwrap().len(), 2);
        assert_eq!(
            read(&mut client, "notes:today"),
            json!([{ "uri": "notes:today", "mimeType": "text/plain", "text": "buy milk" }])
        );
        assert_eq!(
            read(&mut client, "notes:photo"),
            json!([{ "uri": "notes:photo", "mimeType": "image/png", "blob": "AQL/" }])
        );
    }
}

/// An address is matched with each template, so its length is bounded.
// covers: SEC-12
#[test]
fn sec_12_addresses_have_a_limit() {
    let server = library();
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        let at = |bytes: usize| format!("book://{}/1", "x".repeat(bytes - "book:///1".len()));
        assert_eq!(read(&mut client, &at(8192))[0]["uri"], at(8192));
        let refused = client.error("resources/read", json!({ "uri": at(8193) }), -32602);
        assert!(
            refused["message"].as_str().is_some_and(|text| text.contains("8192 bytes (`max_uri_bytes`)")),
            "{refused}"
        );
    }
}

/// A template is listed by itself, and read under any address that fits it.
// covers: RS-9
#[test]
fn templates_find_their_variables() {
    let server = library();
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        let listed = client.result("resources/templates/list", json!({}));
        assert_eq!(listed["resourceTemplates"][0]["uriTemplate"], "book://{book}/{number}");
        let contents = read(&mut client, "book://moby%20dick/2");
        assert_eq!(contents[0]["uri"], "book://moby%20dick/2");
        assert_eq!(contents[0]["mimeType"], "text/markdown");
        assert_eq!(contents[0]["text"], "chapter 2 of moby dick");
    }
}

/// What is not there is told with its address, in the code of the revision.
// covers: RS-2, RS-3
#[test]
fn missing_resources_are_told_by_revision() {
    let server = library();
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        let code = if revision == MODERN { -32602 } else { -32002 };
        // Nothing has the address; a template has it, but its reader knows better.
        for uri in ["notes:tomorrow", "book://moby/9"] {
            let error = client.error("resources/read", json!({ "uri": uri }), code);
            assert_eq!(error["data"]["uri"], uri, "{revision}");
        }
        client.error("resources/read", json!({}), -32602);
        client.error("resources/read", json!({ "uri": 1 }), -32602);
    }
}

/// A resource without contents is not there.
// covers: RS-4
#[test]
fn contents_are_never_empty() {
    let server = server(|server| {
        server
            .resource(resource("a:1", "list", async |_| Vec::<ResourceContents>::new()))
            .resource(resource("a:2", "result", async |_| ReadResourceResult::new(Vec::new())))
            .resource(resource("a:3", "option", async |_| None::<String>))
    });
    for uri in ["a:1", "a:2", "a:3"] {
        let error = ScriptedClient::new(&server, MODERN).error("resources/read", json!({ "uri": uri }), -32602);
        assert_eq!(error["data"]["uri"], uri);
        ScriptedClient::new(&server, Revision::V2025_11_25).error("resources/read", json!({ "uri": uri }), -32002);
    }
}

/// One read may give several contents; a failure of the reader is an internal error.
// covers: RS-3, RS-6
#[test]
fn readers_return_what_they_like() {
    let server = server(|server| {
        server
            .resource(resource("a:both", "both", async |_| {
                vec![ResourceContents::text("a:1", "one"), ResourceContents::blob("a:2", vec![0])]
            }))
            .resource(resource("a:broken", "broken", async |_| Err::<String, _>("disk full")))
            .resource(resource("a:secret", "secret", async |_| {
                Err::<String, _>(ErrorObject::invalid_params("not yours"))
            }))
    });
    let mut client = ScriptedClient::new(&server, MODERN);
    let contents = read(&mut client, "a:both");
    assert_eq!((&contents[0]["uri"], &contents[1]["blob"]), (&json!("a:1"), &json!("AA==")));
    let broken = client.error("resources/read", json!({ "uri": "a:broken" }), -32603);
    assert_eq!(broken["message"], "disk full");
    client.error("resources/read", json!({ "uri": "a:secret" }), -32602);
}

fn hints(result: &Value) -> (Value, Value) {
    (result["ttlMs"].clone(), result["cacheScope"].clone())
}

/// By default nothing may be kept, and by nobody else.
// covers: C-1..C-3, C-19
#[test]
fn caching_is_off_by_default() {
    let mut client = ScriptedClient::new(&library(), MODERN);
    for (method, params) in [
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({ "uri": "notes:today" })),
        ("server/discover", json!({})),
    ] {
        assert_eq!(hints(&client.result(method, params)), (json!(0), json!("private")), "{method}");
    }
}

/// Hints are said for all, for a list, or for a resource; the nearest one counts, on every page.
// covers: C-1, C-2, C-15
#[test]
fn caching_is_said_where_it_belongs() {
    let server = server(|server| {
        let plain = |name: &str| text_resource(format!("a:{name}"), name, "text");
        server
            .cache(Duration::from_millis(1), CacheScope::PUBLIC)
            .cache_list(ListKind::Resources, Duration::from_millis(2), CacheScope::PRIVATE)
            .page_size(1)
            .resource(plain("plain"))
            .resource(plain("own").cache(Duration::from_millis(3), CacheScope::PRIVATE))
            .resource(plain("never").cache(Duration::ZERO, CacheScope::PRIVATE))
            .resource(resource("a:reader", "reader", async |_| {
                ReadResourceResult::new(vec![ResourceContents::text("a:reader", "text")]).ttl_ms(-1)
            }))
    });
    let mut client = ScriptedClient::new(&server, MODERN);
    let first = client.result("resources/list", json!({}));
    let second = client.result("resources/list", json!({ "cursor": first["nextCursor"] }));
    for page in [first, second] {
        assert_eq!(hints(&page), (json!(2), json!("private")));
    }
    assert_eq!(hints(&client.result("resources/templates/list", json!({}))), (json!(1), json!("public")));
    for (uri, ttl, scope) in
        [("a:plain", 1, "public"), ("a:own", 3, "private"), ("a:never", 0, "private"), ("a:reader", 0, "public")]
    {
        let result = client.result("resources/read", json!({ "uri": uri }));
        assert_eq!(hints(&result), (json!(ttl), json!(scope)), "{uri}");
    }
    for revision in LEGACY {
        let mut client = ScriptedClient::new(&server, revision);
        let listed = client.result("resources/list", json!({}));
        let read = client.result("resources/read", json!({ "uri": "a:own" }));
        assert_eq!(hints(&listed), (Value::Null, Value::Null), "{revision}");
        assert_eq!(hints(&read), (Value::Null, Value::Null), "{revision}");
    }
}

/// JSON is text of its own type, unless another one is set.
// covers: AUT-11
#[test]
fn aut_11_resources_may_be_json() {
    let value = || json!({ "a": 1 });
    let server = server(|server| {
        server
            .resource(resource("a:json", "json", async |_| Json(json!({ "a": 1 }))))
            .resource(resource("a:maybe", "maybe", async |_| Ok::<_, HandlerError>(Some(Json([1, 2])))))
            .resource(resource("a:other", "other", async |_| Json([1, 2])).mime_type("application/geo+json"))
            .template(template("b:{c}", "all", async |_, _| Json([1, 2])))
    });
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        for (uri, mime_type, text) in [
            ("a:json", "application/json", value().to_string()),
            ("a:maybe", "application/json", "[1,2]".to_owned()),
            ("a:other", "application/geo+json", "[1,2]".to_owned()),
            ("b:c", "application/json", "[1,2]".to_owned()),
        ] {
            let contents = client.result("resources/read", json!({ "uri": uri }))["contents"][0].take();
            assert_eq!(contents, json!({ "uri": uri, "mimeType": mime_type, "text": text }));
        }
        let listed = client.result("resources/list", json!({}));
        assert_eq!(listed["resources"][0]["mimeType"], "application/json");
        let listed = client.result("resources/templates/list", json!({}));
        assert_eq!(listed["resourceTemplates"][0]["mimeType"], "application/json");
    }
}
