//! Which handles are valid, and for whom.

use std::time::Duration;

use mcp_server::handles::{MemoryHandleLimits, MemoryHandleStore};
use mcp_server::mrtr::MemoryReplayGuard;
use mcp_server::{Handles, Principal};
use serde_json::json;

use super::shop::{
    Basket, REFUSED, UnixClock, added, all_baskets, builder, client, clients, key, opened, ready, refused, ring, shop,
    structured,
};
use crate::servers::MODERN;

/// A basket is filled over several calls, by clients of any revision, on any connection.
#[test]
fn state_lives_from_call_to_call() {
    for baskets in all_baskets() {
        let server = shop(&UnixClock::default(), baskets);
        let mut clients = clients(&server, None);
        let mut basket = opened(&mut clients[0]);
        for (number, client) in clients.iter_mut().enumerate() {
            basket = added(client, &basket, &number.to_string());
        }
        for client in &mut clients {
            assert_eq!(client.call_tool_text("show", json!({ "basket": basket })), "0, 1, 2, 3, 4");
        }
        let order = structured(&mut clients[4], "checkout", json!({ "basket": basket }))["order"].clone();
        for client in &mut clients {
            assert_eq!(client.call_tool_text("track", json!({ "order": order })), "on its way: 0, 1, 2, 3, 4");
            assert_eq!(refused(client, "show", json!({ "basket": basket })), REFUSED);
        }
    }
}

/// A handle is valid for the principal that it was minted for; those of anonymous callers for anonymous callers.
#[test]
fn handles_belong_to_a_principal() {
    for baskets in all_baskets() {
        let server = shop(&UnixClock::default(), baskets);
        for owner in [Some("ann"), None] {
            for owner in &mut clients(&server, owner) {
                let basket = opened(owner);
                for other in [Some("bob"), Some("ann"), None] {
                    let mut other = client(&server, MODERN, other);
                    if other.caller.principal == owner.caller.principal {
                        continue;
                    }
                    for tool in ["show", "checkout", "empty"] {
                        assert_eq!(refused(&mut other, tool, json!({ "basket": basket })), REFUSED);
                    }
                }
                // The attempts of others did not use it up.
                assert_eq!(owner.call_tool_text("show", json!({ "basket": basket })), "");
            }
        }
        let mut ann = client(&server, MODERN, Some("ann"));
        let basket = opened(&mut ann);
        ann.caller.principal = Some(Principal::new(Some("another issuer"), "ann"));
        assert_eq!(refused(&mut ann, "show", json!({ "basket": basket })), REFUSED);
    }
}

/// A handle of another kind is not valid, nor is one of another server, even with the same keys and the same store.
#[test]
fn handles_belong_to_a_kind_and_a_server() {
    let (clock, store) = (UnixClock::default(), MemoryHandleStore::default());
    let stored = || Handles::<Basket>::stored(store.clone());
    for make in [&stored as &dyn Fn() -> Handles<Basket>, &Handles::<Basket>::sealed] {
        let server = shop(&clock, make());
        let mut at_shop = client(&server, MODERN, None);
        let basket = opened(&mut at_shop);
        let order = basket.replacen("basket", "order", 1);
        let fault = refused(&mut at_shop, "track", json!({ "order": order }));
        assert!(fault.contains("not a valid order handle") && fault.contains("`checkout`"), "{fault}");
        assert!(refused(&mut at_shop, "track", json!({ "order": basket })).contains("order handle"));
        let other =
            builder(&clock, make()).info(mcp_server::types::Implementation::new("bank", "1.0")).build().unwrap();
        assert_eq!(refused(&mut client(&other, MODERN, None), "show", json!({ "basket": basket })), REFUSED);
        // Another instance of the same server.
        let same = shop(&clock, make());
        assert_eq!(client(&same, MODERN, None).call_tool_text("show", json!({ "basket": basket })), "");
    }
}

/// A handle expires after its lifetime, which each update renews.
#[test]
fn handles_expire() {
    for baskets in all_baskets() {
        let clock = UnixClock::default();
        let server = shop(&clock, baskets.lifetime(Duration::from_secs(100)));
        for mut client in clients(&server, Some("ann")) {
            let (basket, forgotten) = (opened(&mut client), opened(&mut client));
            clock.advance(99);
            assert_eq!(client.call_tool_text("show", json!({ "basket": forgotten })), "");
            let basket = added(&mut client, &basket, "bread");
            clock.advance(1);
            assert_eq!(refused(&mut client, "show", json!({ "basket": forgotten })), REFUSED);
            clock.advance(98);
            assert_eq!(client.call_tool_text("show", json!({ "basket": basket })), "bread");
            clock.advance(1);
            assert_eq!(refused(&mut client, "add", json!({ "basket": basket, "item": "milk" })), REFUSED);
        }
    }
}

/// A revoked handle is not valid any more, and a taken one was good once.
#[test]
fn handles_are_revoked_and_taken() {
    for baskets in all_baskets() {
        let server = shop(&UnixClock::default(), baskets);
        for mut client in clients(&server, Some("ann")) {
            let basket = opened(&mut client);
            assert_eq!(client.call_tool_text("empty", json!({ "basket": basket })), "emptied");
            for tool in ["show", "empty", "checkout"] {
                assert_eq!(refused(&mut client, tool, json!({ "basket": basket })), REFUSED);
            }
            let basket = opened(&mut client);
            structured(&mut client, "checkout", json!({ "basket": basket }));
            assert_eq!(refused(&mut client, "checkout", json!({ "basket": basket })), REFUSED);
        }
    }
}

/// Of calls that hold the same handle at the same time, one takes it.
#[test]
fn one_call_takes_a_handle() {
    for baskets in all_baskets() {
        let server = shop(&UnixClock::default(), baskets);
        let ann = Principal::new(None, "ann");
        let caller = server.handles_of::<Basket>(Some(&ann));
        let minted = ready(caller.mint(Basket { items: vec!["bread".into()] })).unwrap();
        let held: Vec<_> = (0..8).map(|_| ready(caller.open(minted.text())).unwrap()).collect();
        let taken: Vec<_> = held.into_iter().map(|handle| ready(handle.take())).collect();
        assert_eq!(taken.iter().filter(|taken| taken.is_ok()).count(), 1, "{taken:?}");
        assert_eq!(taken[0].as_ref().unwrap().items, ["bread"]);
        assert!(taken[1].as_ref().unwrap_err().to_string().starts_with("this is not a valid basket handle"));
    }
}

/// No text but the one that was minted is valid, and none causes a panic.
#[test]
fn changed_and_random_texts_are_refused() {
    for baskets in all_baskets() {
        let server = shop(&UnixClock::default(), baskets);
        let mut client = client(&server, MODERN, None);
        let basket = opened(&mut client);
        let mut check = |text: String| {
            if text != basket {
                assert_eq!(refused(&mut client, "show", json!({ "basket": text })), REFUSED, "{text:?}");
            }
        };
        for index in 0..basket.len() {
            check(basket[..index].to_owned());
            check(basket[index..].to_owned());
            for other in ['A', '_', '=', ' '] {
                check(format!("{}{other}{}", &basket[..index], &basket[index + 1..]));
            }
        }
        for text in ["", "_", "basket", "basket_", "basket_ü", "null", "\u{0}", "basket_AAAA", "basket_===="] {
            check(text.to_owned());
        }
        for more in ["A", "=", " ", "\n", "_"] {
            check(format!("{basket}{more}"));
            check(format!("{more}{basket}"));
        }
        // A linear congruential generator is random enough, and always the same.
        let mut state = 7_u64;
        for _ in 0..2_000 {
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as u32
            };
            let length = next() % 120;
            let text: String = (0..length).filter_map(|_| char::from_u32(next() % 0x250)).collect();
            check(format!("basket_{text}"));
            check(text);
        }
        assert_eq!(client.call_tool_text("show", json!({ "basket": basket })), "");
    }
}

/// A text that is too long for a handle is refused before it is decoded or decrypted, and a value that is too large is not
/// minted.
#[test]
fn sizes_are_bounded() {
    for (baskets, limit) in [(Handles::<Basket>::in_memory(), 100), (Handles::<Basket>::sealed(), 300)] {
        let server = shop(&UnixClock::default(), baskets.max_bytes(limit));
        let mut client = client(&server, MODERN, None);
        let basket = added(&mut client, &opened_text(&server), &"x".repeat(50));
        let fault = refused(&mut client, "add", json!({ "basket": basket, "item": "y".repeat(200) }));
        assert_eq!(fault, "the basket is too large");
        assert_eq!(client.call_tool_text("show", json!({ "basket": basket })), "x".repeat(50), "nothing has changed");
        let long = format!("basket_{}", "A".repeat(1_000_000));
        assert_eq!(refused(&mut client, "show", json!({ "basket": long })), REFUSED);
    }
    fn opened_text(server: &mcp_server::Server) -> String {
        opened(&mut client(server, MODERN, None))
    }
}

/// Handles that were sealed with a previous key are valid as long as the key is in the ring.
#[test]
fn keys_rotate() {
    let clock = UnixClock::default();
    let with = |ring| builder(&clock, Handles::sealed()).key_ring(ring).build().unwrap();
    let before = with(ring(1));
    let basket = added(&mut client(&before, MODERN, None), &opened(&mut client(&before, MODERN, None)), "bread");
    let mut during = client(&with(ring(2).open_with(key(1))), MODERN, None);
    assert_eq!(during.call_tool_text("show", json!({ "basket": basket })), "bread");
    let resealed = added(&mut during, &basket, "milk");
    let mut after = client(&with(ring(2)), MODERN, None);
    assert_eq!(after.call_tool_text("show", json!({ "basket": resealed })), "bread, milk");
    assert_eq!(refused(&mut after, "show", json!({ "basket": basket })), REFUSED);
}

/// Without keys of the operator a server makes its own, and reads its own handles alone.
#[test]
fn servers_have_keys_of_their_own() {
    let clock = UnixClock::default();
    let make = || {
        let clock = clock.clone();
        let shop = mcp_server::Server::builder("shop", "1.0").unix_clock(move || clock.now());
        shop.handles(Handles::<Basket>::sealed()).build().unwrap()
    };
    let (one, other) = (make(), make());
    let basket = ready(one.handles_of::<Basket>(None).mint(Basket::default())).unwrap();
    assert!(ready(one.handles_of::<Basket>(None).open(basket.text())).is_ok());
    assert!(ready(other.handles_of::<Basket>(None).open(basket.text())).is_err());
}

/// The limits of a store are refusals for the model, which name no setting; what is there stays.
#[test]
fn stores_have_limits() {
    let limits = MemoryHandleLimits::default().max_handles(3).max_handles_per_principal(2);
    let server = shop(&UnixClock::default(), Handles::stored(MemoryHandleStore::new(limits)));
    let full = "there is no room for another basket now";
    let mut ann = client(&server, MODERN, Some("ann"));
    let (first, _) = (opened(&mut ann), opened(&mut ann));
    assert_eq!(refused(&mut ann, "open", json!({})), full);
    let mut anyone = client(&server, MODERN, None);
    opened(&mut anyone);
    assert_eq!(refused(&mut anyone, "open", json!({})), full);
    assert_eq!(ann.call_tool_text("empty", json!({ "basket": first })), "emptied");
    opened(&mut anyone);
}

/// Handles of a principal are listed and revoked together; those of anonymous callers cannot be listed.
#[test]
fn principals_list_their_handles() {
    let server = shop(&UnixClock::default(), Handles::in_memory());
    for subject in ["ann", "bob"] {
        for (number, mut client) in clients(&server, Some(subject)).into_iter().enumerate() {
            let basket = opened(&mut client);
            added(&mut client, &basket, &format!("{subject} {number}"));
        }
    }
    let listed = |subject| client(&server, MODERN, subject).call_tool_text("list", json!({}));
    assert_eq!(listed(Some("ann")), "ann 0, ann 1, ann 2, ann 3, ann 4");
    opened(&mut client(&server, MODERN, None));
    let fault = refused(&mut client(&server, MODERN, None), "list", json!({}));
    assert_eq!(fault, "the server cannot do this with basket handles");
    let ann = Principal::new(Some("issuer"), "ann");
    let handles = server.handles_of::<Basket>(Some(&ann));
    let texts: Vec<_> = ready(handles.list()).unwrap().iter().map(|basket| basket.text().to_owned()).collect();
    assert_eq!(ready(handles.revoke_all()), Ok(5));
    assert_eq!(listed(Some("ann")), "");
    assert_eq!(listed(Some("bob")), "bob 0, bob 1, bob 2, bob 3, bob 4");
    for text in texts {
        assert!(ready(handles.open(&text)).is_err());
    }
}

/// What sealed handles cannot do is an error that tells the author why, and not the model.
#[test]
fn sealed_handles_say_what_they_cannot_do() {
    use std::error::Error;

    let server = shop(&UnixClock::default(), Handles::sealed());
    let handles = server.handles_of::<Basket>(Some(&Principal::new(None, "ann")));
    let mint = || ready(handles.mint(Basket::default())).unwrap();
    for (error, cause) in [
        (ready(mint().take()).map(drop).unwrap_err(), "replay_guard"),
        (ready(mint().revoke()).unwrap_err(), "replay_guard"),
        (ready(handles.list()).map(drop).unwrap_err(), "not stored"),
    ] {
        assert_eq!(error.to_string(), "the server cannot do this with basket handles");
        assert!(error.source().unwrap().to_string().contains(cause), "{error:?}");
    }
    let full = shop(&UnixClock::default(), Handles::sealed().replay_guard(MemoryReplayGuard::new(0)));
    let handle = ready(full.handles_of::<Basket>(None).mint(Basket::default())).unwrap();
    let error = ready(handle.revoke()).unwrap_err();
    assert!(error.source().unwrap().to_string().contains("full"), "{error:?}");
}

/// Neither handles nor values are in what is printed.
#[test]
fn debug_output_has_no_handles() {
    let server = shop(&UnixClock::default(), Handles::in_memory());
    let handles = server.handles_of::<Basket>(None);
    let basket = ready(handles.mint(Basket { items: vec!["a secret".into()] })).unwrap();
    assert_eq!(format!("{basket:?}"), r#"Handle { kind: "basket", .. }"#);
    assert_eq!(format!("{handles:?}"), r#"CallerHandles { kind: "basket", .. }"#);
    let shown = format!("{:?}", Handles::<Basket>::sealed());
    assert_eq!(shown, "Handles { is_stored: false, lifetime: 3600s, max_bytes: 4096, .. }");
}
