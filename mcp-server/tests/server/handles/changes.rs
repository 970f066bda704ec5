//! Changing the values of handles.

use mcp_server::mrtr::MemoryReplayGuard;
use mcp_server::{Handle, HandleError, HandlerError, Handles, Principal, RequestContext, tool};
use mcp_testkit::ScriptedClient;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::shop::{Basket, REFUSED, UnixClock, added, builder, client, opened, ready, refused, shop};
use crate::servers::MODERN;

fn basket(items: &[&str]) -> Basket {
    Basket { items: items.iter().map(|item| (*item).to_owned()).collect() }
}

/// Updates start from the current value, and run again if another call was faster: none is lost.
#[test]
fn updates_are_not_lost() {
    let server = shop(&UnixClock::default(), Handles::in_memory());
    let caller = server.handles_of::<Basket>(Some(&Principal::new(None, "ann")));
    let mut one = ready(caller.mint(basket(&[]))).unwrap();
    let mut other = ready(caller.open(one.text())).unwrap();
    ready(one.update(|basket| basket.items.push("one".into()))).unwrap();
    let mut runs = 0;
    let update = other.update(|basket| {
        runs += 1;
        if runs == 1 {
            // Another call, between reading and writing.
            let mut third = ready(caller.open(one.text())).unwrap();
            ready(third.update(|basket| basket.items.push("third".into()))).unwrap();
        }
        basket.items.push("other".into());
        basket.items.len()
    });
    assert_eq!((ready(update), runs), (Ok(3), 2));
    assert_eq!(*other, basket(&["one", "third", "other"]));
    assert_eq!(*one, basket(&["one"]), "a handle has the value that it was opened with");
    assert_eq!(other.text(), one.text());
}

/// A replacement fails if the value was changed since it was read.
#[test]
fn replacements_compare() {
    let server = shop(&UnixClock::default(), Handles::in_memory());
    let caller = server.handles_of::<Basket>(None);
    let mut one = ready(caller.mint(basket(&["old"]))).unwrap();
    let mut other = one.clone();
    assert_eq!(ready(one.replace(basket(&["new"]))), Ok(()));
    assert_eq!(ready(one.replace(basket(&["newer"]))), Ok(()));
    let late = ready(other.replace(basket(&["late"])));
    assert_eq!(late, Err(HandleError::Conflict { kind: "basket" }));
    assert_eq!((&*one, &*other), (&basket(&["newer"]), &basket(&["old"])));
    assert_eq!(*ready(caller.open(one.text())).unwrap(), basket(&["newer"]));
    ready(one.clone().revoke()).unwrap();
    assert!(matches!(ready(one.replace(basket(&[]))), Err(HandleError::Invalid { .. })));
    assert_eq!(ready(one.revoke()), Ok(()), "it is revoked already");
}

/// An update that never wins ends with an error.
#[test]
fn updates_do_not_run_forever() {
    let server = shop(&UnixClock::default(), Handles::in_memory());
    let caller = server.handles_of::<Basket>(None);
    let mut handle = ready(caller.mint(basket(&[]))).unwrap();
    let text = handle.text().to_owned();
    let update = handle.update(|_| {
        let mut faster = ready(caller.open(&text)).unwrap();
        ready(faster.update(|basket| basket.items.push("x".into()))).unwrap();
    });
    assert_eq!(ready(update), Err(HandleError::Conflict { kind: "basket" }));
}

/// An update of a sealed handle is another handle. With a replay guard the previous one is used up, and only then.
#[test]
fn sealed_updates_are_other_handles() {
    let guarded = Handles::sealed().replay_guard(MemoryReplayGuard::new(100));
    for (baskets, is_guarded) in [(Handles::sealed(), false), (guarded, true)] {
        let server = shop(&UnixClock::default(), baskets);
        let mut client = client(&server, MODERN, Some("ann"));
        let first = opened(&mut client);
        let second = added(&mut client, &first, "bread");
        assert_ne!(first, second);
        assert_eq!(client.call_tool_text("show", json!({ "basket": second })), "bread");
        if is_guarded {
            assert_eq!(refused(&mut client, "add", json!({ "basket": first, "item": "milk" })), REFUSED);
        } else {
            assert_eq!(client.call_tool_text("show", json!({ "basket": first })), "");
        }
    }
}

#[derive(Deserialize, JsonSchema)]
struct Checkout {
    basket: Handle<Basket>,
}

#[derive(Deserialize, JsonSchema)]
struct Confirm {
    sure: bool,
}

/// A handler that asks the user and then takes the handle works in both eras, though it runs twice in the modern one.
#[test]
fn handles_are_taken_after_asking() {
    async fn confirm(ctx: RequestContext, Checkout { basket }: Checkout) -> Result<String, HandlerError> {
        let Confirm { sure } = ctx.elicit("confirm", format!("Buy {}?", basket.items.join(", "))).await?.accepted()?;
        if !sure {
            return Ok("kept".into());
        }
        Ok(format!("bought {}", basket.take().await?.items.join(", ")))
    }
    let server = builder(&UnixClock::default(), Handles::in_memory()).tool(tool("confirm", confirm)).build().unwrap();
    let accepts = json!({ "action": "accept", "content": { "sure": true } });
    let asking = json!({ "elicitation": {} });

    let mut modern = ScriptedClient::with_capabilities(&server, MODERN, asking.clone());
    let basket = opened(&mut modern);
    let basket = added(&mut modern, &basket, "bread");
    let mut call = json!({ "name": "confirm", "arguments": { "basket": basket } });
    let asked = modern.result("tools/call", call.clone());
    assert_eq!(asked["inputRequests"]["confirm"]["params"]["message"], "Buy bread?");
    call["requestState"] = asked["requestState"].clone();
    call["inputResponses"] = json!({ "confirm": accepts });
    assert_eq!(modern.result("tools/call", call)["content"][0]["text"], "bought bread");
    assert_eq!(refused(&mut modern, "show", json!({ "basket": basket })), REFUSED);

    let revision = mcp_server::types::Revision::V2025_11_25;
    let mut legacy = ScriptedClient::with_capabilities(&server, revision, asking);
    let basket = opened(&mut legacy);
    let id = legacy.start("tools/call", json!({ "name": "confirm", "arguments": { "basket": basket } }));
    let asked = legacy.expect_message("elicitation/create");
    legacy.respond(&asked, accepts);
    assert_eq!(legacy.response_to(id)["result"]["content"][0]["text"], "bought ");
    assert_eq!(refused(&mut legacy, "show", json!({ "basket": basket })), REFUSED);
}
