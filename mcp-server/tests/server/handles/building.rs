//! Servers with kinds of handles, and without.

use mcp_server::{BuildError, Handle, HandleValue, Handles, Json, NoArguments, RequestContext, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::shop::{Basket, Order, ready};
use crate::servers::{refused, server};

#[derive(Deserialize, Serialize, JsonSchema)]
struct Nested {
    maybe: Option<Vec<Handle<Basket>>>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Outer {
    nested: Nested,
}

async fn takes(_: RequestContext, _: Outer) -> &'static str {
    "done"
}

async fn returns(_: RequestContext, _: NoArguments) -> Json<Outer> {
    Json(Outer { nested: Nested { maybe: None } })
}

/// A tool with handles that the server does not have is an error of the builder, which names the tool and the type.
#[test]
fn missing_handles_are_an_error() {
    let fault = |tool: mcp_server::Tool| refused(|server| server.handles(Handles::<Order>::in_memory()).tool(tool));
    for tool in [tool("a_tool", takes), tool("a_tool", returns)] {
        let BuildError::MissingHandles { tool, value } = fault(tool) else { panic!("another error") };
        assert!(tool == "a_tool" && value.ends_with("Basket"), "{tool}, {value}");
    }
    let shown = fault(tool("a_tool", takes)).to_string();
    assert!(shown.contains("`a_tool`") && shown.contains("Basket>::in_memory()"), "{shown}");
    // In any order.
    server(|server| server.tool(tool("a_tool", takes)).handles(Handles::<Basket>::in_memory()));
    let server = server(mcp_server::ServerBuilder::offers_tools);
    let update = server.update(|registry| registry.add_tool(tool("a_tool", takes)));
    assert!(matches!(update, Err(BuildError::MissingHandles { .. })), "{update:?}");
}

/// Each kind has a name of its own, which fits into a handle.
#[test]
fn kinds_have_names() {
    #[derive(Serialize, Deserialize)]
    struct Spaced;

    impl HandleValue for Spaced {
        const NAME: &'static str = "a basket";
        const HINT: &'static str = "";
    }

    #[derive(Serialize, Deserialize)]
    struct OtherBasket;

    impl HandleValue for OtherBasket {
        const NAME: &'static str = "basket";
        const HINT: &'static str = "";
    }

    let fault = refused(|server| server.handles(Handles::<Spaced>::sealed()));
    assert_eq!(fault, BuildError::InvalidHandles { name: "a basket".into() });
    let same_type = refused(|server| server.handles(Handles::<Basket>::sealed()).handles(Handles::<Basket>::sealed()));
    let same_name =
        refused(|server| server.handles(Handles::<Basket>::sealed()).handles(Handles::<OtherBasket>::sealed()));
    for fault in [same_type, same_name] {
        assert_eq!(fault, BuildError::Duplicate { what: "kind of handles", name: "basket".into() });
    }
}

/// Outside of a call of a tool a handle is not deserialized, and the error says what to do.
#[test]
fn handles_are_arguments_of_tools() {
    let error = serde_json::from_value::<Outer>(json!({ "nested": { "maybe": ["basket_1"] } })).err().unwrap();
    assert!(error.to_string().contains("ctx.handles().open(..)"), "{error}");
    let server = server(|server| server);
    let handles = server.handles_of::<Basket>(None);
    let error = ready(handles.mint(Basket::default())).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("ServerBuilder::handles"), "{cause}");
}
