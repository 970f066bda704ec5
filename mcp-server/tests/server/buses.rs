//! Changes at one instance, and what the clients of another hear of them.

use mcp_server::bus::{BusEvent, BusMember, BusReceiver, ChangeBus, MemoryChangeBus};
use mcp_server::types::Revision;
use mcp_server::{Audience, Change, NoArguments, Registry, Server, Tool, text_resource, tool};

use crate::servers::{MODERN, removed, server};
use crate::visibility::{client_of, heard, is_alice, principal, subscribe};

const ERAS: [Revision; 3] = [Revision::V2025_03_26, Revision::V2025_11_25, MODERN];

/// The changes of lists and of a resource, as clients hear of them.
const EVERYTHING: [&str; 4] =
    ["tools/list_changed", "prompts/list_changed", "resources/list_changed", "resources/updated"];

fn instance(bus: &MemoryChangeBus) -> Server {
    server(|server| {
        server
            .change_bus(bus.clone())
            .audience("bobs", |viewer| viewer.principal() == Some(&principal("bob")))
            .resource_subscriptions()
            .offers_tools()
            .offers_prompts()
            .resource(text_resource("inbox:unread", "unread", "3 messages"))
            .resource(text_resource("inbox:secret", "secret", "1 message").visible(is_alice))
    })
}

fn inbox() -> Change {
    Change::Resource("inbox:unread".into())
}

fn secret() -> Tool {
    tool("secret", async |_, _: NoArguments| "").visible(is_alice)
}

fn update(server: &Server, change: impl FnOnce(&mut Registry)) {
    let updated = server.update(|registry| {
        change(registry);
        Ok(())
    });
    updated.expect("an update");
}

/// Changes reach the same clients at all instances, once.
#[test]
fn changes_reach_clients_of_all_instances() {
    for revision in ERAS {
        let bus = MemoryChangeBus::default();
        let (here, there) = (instance(&bus), instance(&bus));
        let other = Server::builder("other", "1.0").change_bus(bus.clone()).offers_tools().build().unwrap();
        let mut clients = [&here, &there].map(|server| ["alice", "bob"].map(|name| client_of(server, revision, name)));
        for client in clients.as_flattened_mut() {
            subscribe(client, revision, &["inbox:unread", "inbox:secret"]);
        }
        let mut expect = |what: &str, expected: [usize; 2]| {
            for (place, clients) in ["here", "there"].iter().zip(&mut clients) {
                let counts = clients.each_mut().map(|client| heard(client).len());
                assert_eq!(counts, expected, "{revision}: {what}, {place}");
            }
        };
        here.publish(&inbox());
        expect("all", [1, 1]);
        there.publish(&Change::Tools);
        expect("a list", [1, 1]);
        here.publish_to(&Audience::principal(principal("alice")), &inbox());
        expect("one user", [1, 0]);
        here.publish_to(&Audience::named("bobs"), &inbox());
        expect("an audience with a name", [0, 1]);
        here.publish_to(&Audience::named("carols"), &inbox());
        expect("an unknown audience", [0, 0]);
        here.publish(&Change::Resource("inbox:secret".into()));
        expect("a resource that Alice can see", [1, 0]);
        other.publish(&Change::Tools);
        expect("another server", [0, 0]);
        update(&here, |registry| registry.add_tool(tool("open", async |_, _: NoArguments| "")).unwrap());
        expect("an update", [1, 1]);
    }
}

/// Functions and connections belong to one instance.
#[test]
fn some_audiences_are_local() {
    let bus = MemoryChangeBus::default();
    let (here, there) = (instance(&bus), instance(&bus));
    let mut clients = [&here, &there].map(|server| client_of(server, MODERN, "alice"));
    for client in &mut clients {
        subscribe(client, MODERN, &["inbox:unread"]);
    }
    here.publish_to(&Audience::matching(|_| true), &inbox());
    here.publish_to(&Audience::connection(&clients[0].connection.handle()), &Change::Resource("inbox:unread".into()));
    assert_eq!(clients.each_mut().map(|client| heard(client).len()), [1, 0], "equal notifications are sent once");
}

/// Nobody hears of an item that they cannot see, wherever it was added or removed, and all who can see it do.
#[test]
fn hidden_items_stay_hidden_at_all_instances() {
    for revision in ERAS {
        let bus = MemoryChangeBus::default();
        let (here, there) = (instance(&bus), instance(&bus));
        let [mut alice, mut bob] = ["alice", "bob"].map(|name| client_of(&there, revision, name));
        for client in [&mut alice, &mut bob] {
            subscribe(client, revision, &[]);
        }
        let mut expect = |what: &str, expected: usize| {
            let counts = [&mut alice, &mut bob].map(|client| heard(client).len());
            assert_eq!(counts, [expected, 0], "{revision}: {what}");
        };
        update(&here, |registry| registry.add_tool(secret()).unwrap());
        expect("an item that is not here yet", 0);
        update(&there, |registry| registry.add_tool(secret()).unwrap());
        expect("now it is", 1);
        assert!(removed(&here, "secret"));
        expect("it was removed there, and is still here", 1);
        update(&here, |registry| registry.add_tool(secret()).unwrap());
        expect("it came back", 1);
        assert!(removed(&there, "secret"));
        expect("it was removed here", 1);
        assert!(removed(&here, "secret"));
        expect("it was removed there as well, and is gone here already", 1);
    }
}

/// After a gap, each client hears of everything that it subscribed to, and of nothing else.
#[test]
fn a_gap_may_have_been_anything() {
    for revision in ERAS {
        let bus = MemoryChangeBus::default();
        let server = instance(&bus);
        let [mut alice, mut bob] = ["alice", "bob"].map(|name| client_of(&server, revision, name));
        for client in [&mut alice, &mut bob] {
            subscribe(client, revision, &["inbox:unread", "inbox:secret"]);
        }
        let sorted = |mut heard: Vec<String>| {
            heard.sort();
            heard
        };
        let all = sorted(EVERYTHING.map(str::to_owned).to_vec());
        for _ in 0..2 {
            bus.report_gap();
            assert_eq!(sorted(heard(&mut bob)), all, "{revision}");
            let mut of_alice = all.clone();
            of_alice.push("resources/updated".to_owned());
            assert_eq!(sorted(heard(&mut alice)), sorted(of_alice), "{revision}: she can see both resources");
        }
        server.publish(&inbox());
        assert_eq!(heard(&mut bob), ["resources/updated"], "{revision}");
    }
}

/// What another version sends and this one does not understand may be anything.
#[test]
fn unknown_messages_are_gaps() {
    let bus = MemoryChangeBus::default();
    let server = instance(&bus);
    let mut client = client_of(&server, MODERN, "alice");
    subscribe(&mut client, MODERN, &["inbox:unread"]);
    let member = bus.join(BusReceiver::new(|event| assert_eq!(event, BusEvent::Gap, "nobody else sends anything")));
    for text in ["", "{}", r#"{"server":"demo","change":"everything"}"#, r#"{"server":"demo","change":"resource"}"#] {
        member.publish(text.as_bytes());
        assert_eq!(heard(&mut client).len(), EVERYTHING.len(), "{text}");
    }
}

/// A server that is gone has left, and does not keep anything alive.
#[test]
fn servers_leave_the_bus() {
    let bus = MemoryChangeBus::default();
    let (here, there) = (instance(&bus), instance(&bus));
    assert_eq!(format!("{bus:?}"), "MemoryChangeBus { members: 2 }");
    drop(there);
    assert_eq!(format!("{bus:?}"), "MemoryChangeBus { members: 1 }");
    here.publish(&Change::Tools);
    drop(here);
    assert_eq!(format!("{bus:?}"), "MemoryChangeBus { members: 0 }");
}

/// A bus of an application's own.
struct Silent;

impl ChangeBus for Silent {
    fn join(&self, _: BusReceiver) -> Box<dyn BusMember> {
        Box::new(Self)
    }
}

impl BusMember for Silent {
    fn publish(&self, _: &[u8]) {}
}

#[test]
fn applications_may_have_a_bus_of_their_own() {
    let server = server(|server| server.change_bus(Silent).offers_tools());
    let mut client = client_of(&server, MODERN, "alice");
    subscribe(&mut client, MODERN, &[]);
    server.publish(&Change::Tools);
    assert_eq!(heard(&mut client), ["tools/list_changed"]);
}
