//! Changes, and who hears of them.

use mcp_kernel::client::{self, Mode};
use mcp_kernel::server::{self};
use mcp_kernel::{CallError, Change};
use mcp_types::{Method, SubscriptionFilter};

use mcp_testkit::Pair;

/// Acknowledged first, told what was asked for, ended with a result.
// covers: L-3, L-5..L-7, L-11
#[test]
fn a_subscription_lives_and_ends() {
    let mut pair = Pair::ready(Pair::client_config(), Pair::server_config());
    let filter = SubscriptionFilter::default().tools_list_changed(true).resource_subscriptions(vec!["a:b".to_owned()]);
    let tools = pair.client.listen(pair.now, filter.clone(), None).expect("modern");
    let prompts =
        pair.client.listen(pair.now, SubscriptionFilter::default().prompts_list_changed(true), None).expect("modern");
    pair.drive();
    let Some(client::Event::Listening { call, filter: honoured }) = pair.client_events.pop_front() else {
        panic!("ack")
    };
    assert_eq!((call, honoured), (tools, filter));
    assert!(matches!(pair.client_events.pop_front(), Some(client::Event::Listening { call, .. }) if call == prompts));
    let mut keys = Vec::new();
    for event in pair.server_events.drain(..) {
        let server::Event::Listening { scope, .. } = event else { panic!("{event:?}") };
        keys.push(scope.key());
    }
    for change in [Change::Tools, Change::Prompts, Change::Resources, Change::Resource("a:b".to_owned())] {
        pair.server.publish(&change);
    }
    pair.drive();
    let mut heard = Vec::new();
    for event in pair.client_events.drain(..) {
        let client::Event::Changed { call, change } = event else { panic!("{event:?}") };
        heard.push((call, change));
    }
    let updated = Change::Resource("a:b".to_owned());
    assert_eq!(heard, [(Some(tools), Change::Tools), (Some(prompts), Change::Prompts), (Some(tools), updated)]);

    pair.client.cancel(tools).expect("it is open");
    pair.server.end_listening(keys[1]).expect("it is open");
    pair.drive();
    let ends: Vec<_> = [tools, prompts].iter().map(|call| pair.finished(*call)).collect();
    assert_eq!(ends[0], Err(CallError::Cancelled));
    assert!(ends[1].as_ref().is_ok_and(|result| result.contains("subscriptionId")), "{ends:?}");
    pair.server_events.clear();
    pair.server.publish(&Change::Tools);
    pair.assert_idle();
}

/// In the legacy era changes come unasked, those of a resource by subscription.
// covers: B-43, B-44
#[test]
fn legacy_changes_come_unasked() {
    let mut client = Pair::client_config();
    client.mode = Mode::Legacy;
    let mut pair = Pair::ready(client, Pair::server_config());
    pair.server.publish(&Change::Resource("a:b".to_owned()));
    let call = pair.call(&Method::RESOURCES_SUBSCRIBE, r#"{"uri":"a:b"}"#);
    pair.drive();
    assert_eq!(pair.finished(call).as_deref(), Ok("{}"));
    for change in [Change::Tools, Change::Resource("a:b".to_owned()), Change::Resource("c:d".to_owned())] {
        pair.server.publish(&change);
    }
    pair.drive();
    for expected in [Change::Tools, Change::Resource("a:b".to_owned())] {
        let event = pair.client_events.pop_front();
        assert!(
            matches!(&event, Some(client::Event::Changed { call: None, change }) if *change == expected),
            "{event:?}"
        );
    }
    pair.server_events.clear();
    pair.assert_idle();
}

/// What nobody asked for, or what comes before the acknowledgement, counts as a fault and goes nowhere.
// covers: L-1, L-3, L-8, AMB-12
#[test]
fn stray_changes_are_not_believed() {
    let mut pair = Pair::ready(Pair::client_config(), Pair::server_config());
    let call =
        pair.client.listen(pair.now, SubscriptionFilter::default().tools_list_changed(true), None).expect("modern");
    pair.collect();
    for message in [
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"2"}}}"#,
    ] {
        pair.client.handle_bytes(pair.now, message.as_bytes());
        let event = pair.client.poll_event();
        assert!(matches!(event, Some(client::Event::PeerMisbehaved(_))), "{event:?}");
    }
    pair.client.cancel(call).expect("it is open");
    pair.drive();
    assert_eq!(pair.finished(call), Err(CallError::Cancelled));
    pair.client_events.clear();
    pair.server_events.clear();
    pair.assert_idle();
}
