//! Clients that come back for what they missed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp_server::{NoArguments, RequestContext, tool};
use mcp_session::{
    EventIdKey, EventStore, MemoryEventLimits, MemoryEventStore, Replay, SessionId, StoreError, StoredEvent,
    async_trait,
};
use mcp_testkit::envelope::tool_text;
use mcp_transport_http::HttpService;
use serde_json::{Value, json};

use crate::demo::server;
use crate::raw_http::LEGACY;
use crate::session_client::{
    Client, Event, Events, NEWEST, RESUMABLE, Shop, kinds, metrics, pass, settle, stateful, steps,
};

fn ids(events: &[Event]) -> Vec<String> {
    events.iter().filter_map(|event| event.id.clone()).collect()
}

fn messages(events: &[Event]) -> Vec<Value> {
    events.iter().filter_map(|event| event.message.clone()).collect()
}

/// A call with ten steps and a result, of which everything was read.
async fn ten_steps(shop: &Shop, client: &Client) -> Vec<Event> {
    shop.steps.allow(10);
    let stream = Events::of(client.tool("step").token().to(&client.service).await);
    let events = stream.rest().await;
    shop.steps.allow(0);
    events
}

/// Events have ids, each its own; in the newest revision the first says only that, and when to come back.
// covers: B-24, B-26, B-103, B-104, S4.117
#[tokio::test]
async fn events_have_ids() {
    let shop = Shop::default();
    let service = HttpService::with_options(shop.server(), stateful().sse_retry(Duration::from_millis(1_234)));
    for version in LEGACY {
        let client = Client::open(&service, version).await;
        let mut events = ten_steps(&shop, &client).await;
        if version == NEWEST {
            let first = events.remove(0);
            assert!(first.id.is_some() && first.message.is_none() && first.retry == Some(1_234));
        }
        assert!(events.iter().all(|event| event.message.is_some() && event.retry.is_none()));
        let mut ids = ids(&events);
        assert_eq!(ids.len(), if version == "2024-11-05" { 0 } else { 11 }, "{version}");
        ids.sort_unstable();
        ids.dedup();
        assert!(ids.is_empty() || ids.len() == 11, "each has its own");
        let mut listener = client.listen().await;
        client.call("tell").await;
        if version == NEWEST {
            let first = listener.next().await.expect("an event");
            assert!(first.id.is_some() && first.message.is_none() && first.retry == Some(1_234));
        }
        let event = listener.next().await.expect("an event");
        assert_eq!((event.id.is_some(), event.message.is_some()), (version != "2024-11-05", true));
    }
}

/// A response that becomes a stream because it was silent begins like every other.
// covers: B-104
#[tokio::test(start_paused = true)]
async fn silent_streams_have_ids() {
    let shop = Shop::default();
    let service = shop.service();
    let client = Client::open(&service, NEWEST).await;
    let mut stream = Events::of(client.tool("wait").to(&service).await);
    let first = stream.next().await.expect("an event");
    assert_eq!((first.message, first.retry), (None, Some(1_000)));
    drop(stream);
    pass(Duration::from_secs(30)).await;
    shop.demo.gate.open();
    settle().await;
    let left = client.resume(&first.id.expect("an id")).await.messages().await;
    assert_eq!((left.len(), tool_text(&left[0])), (1, "waited"));
}

/// Whoever comes back gets exactly what was missed, in order and once, then what comes, to the end.
// covers: S4.117, RB-11, RB-31, B-25
#[tokio::test]
async fn nothing_is_lost_or_told_twice() {
    for version in RESUMABLE {
        for seen in 1..=5_usize {
            let shop = Shop::default();
            let service = shop.service();
            let client = Client::open(&service, version).await;
            shop.steps.allow(5);
            let mut stream = Events::of(client.tool("step").token().to(&service).await);
            let mut before = Vec::new();
            while before.len() < seen {
                let event = stream.next().await.expect("an event");
                before.extend(event.message.is_some().then_some(event));
            }
            drop(stream);
            shop.steps.allow(7);
            settle().await;
            let last = before.last().and_then(|event| event.id.clone()).expect("an id");
            let mut stream = client.resume(&last).await;
            let mut after = Vec::new();
            while after.len() < 7 - seen {
                after.extend(stream.next().await);
            }
            shop.steps.allow(10);
            after.extend(stream.rest().await);
            assert_eq!(after.len(), 10 - seen + 1);
            let all: Vec<Event> = before.into_iter().chain(after).collect();
            assert_eq!(steps(&messages(&all)), (1..=10).collect::<Vec<_>>());
            assert_eq!(tool_text(&messages(&all)[10]), "ten steps");
            let mut unique = ids(&all);
            unique.sort_unstable();
            unique.dedup();
            assert_eq!(unique.len(), 11);
        }
    }
}

/// A client may lose its stream again and again.
// covers: S4.117
#[tokio::test]
async fn coming_back_may_happen_often() {
    let shop = Shop::default();
    let service = shop.service();
    let client = Client::open(&service, NEWEST).await;
    let mut stream = Events::of({
        shop.steps.allow(1);
        client.tool("step").token().to(&service).await
    });
    let mut last = stream.next().await.and_then(|event| event.id).expect("an id");
    let mut seen = Vec::new();
    for step in 1..=10 {
        shop.steps.allow(step);
        drop(stream);
        stream = client.resume(&last).await;
        let event = stream.next().await.expect("an event");
        last = event.id.expect("an id");
        seen.extend(event.message);
    }
    assert_eq!(steps(&seen), (1..=10).collect::<Vec<_>>());
    assert_eq!(tool_text(&stream.messages().await[0]), "ten steps");
}

/// What was said is there after the end, from any place, and only that of its own stream.
// covers: S4.117, RB-11, B-105
#[tokio::test]
async fn the_end_can_be_read_again() {
    let shop = Shop::default();
    let service = shop.service();
    for version in RESUMABLE {
        let client = Client::open(&service, version).await;
        let (one, two) = (ten_steps(&shop, &client).await, ten_steps(&shop, &client).await);
        for events in [&one, &two] {
            for (number, event) in events.iter().enumerate() {
                let rest = client.resume(event.id.as_deref().expect("an id")).await.rest().await;
                assert_eq!(rest, &events[number + 1..], "what comes after it, with the same ids");
            }
        }
    }
}

/// Of a stream whose beginning is gone there is the rest, above all the answer.
// covers: S4.117
#[tokio::test]
async fn the_rest_is_better_than_nothing() {
    let (shop, store) = (Shop::default(), MemoryEventStore::new(MemoryEventLimits::default().max_session_events(3)));
    let options = stateful().event_store(Arc::new(store), EventIdKey::new([7; 32]));
    let client = Client::open(&HttpService::with_options(shop.server(), options), NEWEST).await;
    let events = ten_steps(&shop, &client).await;
    let rest = client.resume(events[0].id.as_deref().expect("an id")).await.rest().await;
    assert_eq!(rest, &events[events.len() - 3..]);
    assert_eq!(tool_text(rest[2].message.as_ref().expect("the answer")), "ten steps");
}

/// Keeps events, but does not always answer.
#[derive(Clone, Default)]
struct Moody {
    events: MemoryEventStore,
    is_away: Arc<AtomicBool>,
}

#[async_trait]
impl EventStore for Moody {
    fn append(&self, session: SessionId, stream: u64, event: StoredEvent) {
        self.events.append(session, stream, event);
    }

    async fn replay(&self, session: SessionId, stream: u64, after: u64) -> Result<Replay, StoreError> {
        match self.is_away.load(Ordering::SeqCst) {
            true => Err(StoreError("away".to_owned())),
            false => self.events.replay(session, stream, after).await,
        }
    }

    fn forget(&self, session: SessionId) {
        self.events.forget(session);
    }
}

/// A store that writes what it keeps in its own way, on many lines.
#[derive(Default)]
struct Pretty(MemoryEventStore);

#[async_trait]
impl EventStore for Pretty {
    fn append(&self, session: SessionId, stream: u64, event: StoredEvent) {
        let message: Value = serde_json::from_slice(&event.message).expect("JSON");
        let message = serde_json::to_vec_pretty(&message).expect("JSON").into();
        self.0.append(session, stream, StoredEvent { message, ..event });
    }

    async fn replay(&self, session: SessionId, stream: u64, after: u64) -> Result<Replay, StoreError> {
        self.0.replay(session, stream, after).await
    }

    fn forget(&self, session: SessionId) {
        self.0.forget(session);
    }
}

/// An event is one line also if its store returns more, so that nothing in it becomes a field of its own.
// covers: SEC-1, AMB-14
#[tokio::test]
async fn sec_1_replayed_events_are_one_line() {
    let shop = Shop::default();
    let options = stateful().event_store(Arc::new(Pretty::default()), EventIdKey::new([7; 32]));
    let client = Client::open(&HttpService::with_options(shop.server(), options), NEWEST).await;
    let events = ten_steps(&shop, &client).await;
    let first = ids(&events).swap_remove(0);
    let again = client.resume(&first).await.messages().await;
    assert_eq!(again, messages(&events));
}

/// When the store does not answer, a client can come back later, and has missed nothing.
// covers: S4.117
#[tokio::test]
async fn a_store_that_is_away_loses_nothing() {
    let (shop, store) = (Shop::default(), Moody::default());
    let options = stateful().event_store(Arc::new(store.clone()), EventIdKey::new([7; 32]));
    let client = Client::open(&HttpService::with_options(shop.server(), options), NEWEST).await;
    shop.steps.allow(1);
    let mut stream = Events::of(client.tool("step").token().to(&client.service).await);
    let first = stream.next().await.expect("an event");
    drop(stream);
    shop.steps.allow(5);
    settle().await;
    store.is_away.store(true, Ordering::SeqCst);
    let id = first.id.as_deref().expect("an id");
    assert_eq!(client.resume(id).await.rest().await, [], "nothing is skipped");
    shop.steps.allow(10);
    store.is_away.store(false, Ordering::SeqCst);
    let messages = client.resume(id).await.messages().await;
    assert_eq!(steps(&messages), (1..=10).collect::<Vec<_>>());
    assert_eq!(tool_text(&messages[10]), "ten steps");
}

/// The stream of the session can be resumed, too.
// covers: S4.31, S4.117
#[tokio::test]
async fn the_stream_of_the_session_goes_on() {
    let service = Shop::default().service();
    for version in RESUMABLE {
        let client = Client::open(&service, version).await;
        let mut stream = client.listen().await;
        client.call("tell").await;
        let event = loop {
            let event = stream.next().await.expect("an event");
            if event.message.is_some() {
                break event;
            }
        };
        drop(stream);
        client.call("tell").await;
        let mut stream = client.resume(event.id.as_deref().expect("an id")).await;
        let mut missed = Vec::new();
        for _ in 0..3 {
            missed.push(stream.message().await);
        }
        assert_eq!(kinds(&missed), ["notifications/custom", "notifications/message", "notifications/custom"]);
        client.call("tell").await;
        let (live, is_over) = stream.there().await;
        assert_eq!((live.len(), is_over), (2, false));
    }
}

/// The stream of a call that is taken over while it is read ends for whoever read it.
// covers: S4.117
#[tokio::test]
async fn a_stream_has_one_reader() {
    let shop = Shop::default();
    let service = shop.service();
    let client = Client::open(&service, NEWEST).await;
    shop.steps.allow(2);
    let mut first = Events::of(client.tool("step").token().to(&service).await);
    let id = first.next().await.and_then(|event| event.id).expect("an id");
    let mut second = client.resume(&id).await;
    assert_eq!(second.message().await["params"]["progress"], 1);
    shop.steps.allow(10);
    let all = second.messages().await;
    assert_eq!(steps(&all), (2..=10).collect::<Vec<_>>());
    assert!(first.messages().await.len() <= 2, "it had what was sent before");
}

/// What names no event gets nothing at all.
// covers: S4.117, RB-55
#[tokio::test]
async fn garbage_is_refused() {
    let shop = Shop::default();
    let service = shop.service();
    let client = Client::open(&service, NEWEST).await;
    ten_steps(&shop, &client).await;
    let long = "1".repeat(5_000);
    for id in ["", "x", "1", "-", "1-", "-1", "1-1-1", "1_1", " ", "1-99999999999999999999999", &long, "null", "../1"] {
        let answer = client.get().header("last-event-id", id).json(&service, 400).await;
        assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("Last-Event-ID")), "{id}");
    }
    let twice = client.get().header("last-event-id", "1-1").more("last-event-id", "1-1");
    assert_eq!(twice.to(&service).await.status, 400);
}

/// The id of an event in one session gets nothing of it in another.
// covers: S4.117, RB-12, RB-31, RB-55, B-105
#[tokio::test]
async fn events_stay_in_their_session() {
    let shop = Shop::default();
    let service = shop.service();
    let (one, two) = (Client::open(&service, NEWEST).await, Client::open(&service, NEWEST).await);
    for event in ten_steps(&shop, &one).await {
        let reply = two.get().header("last-event-id", event.id.as_deref().expect("an id")).to(&service).await;
        if reply.status == 200 {
            assert_eq!(Events::of(reply).messages().await.len(), 0);
        }
    }
    one.delete().to(&service).await;
    let three = Client::open(&service, NEWEST).await;
    assert_eq!(three.call("hello").await, "hello");
}

/// What was guessed, or given to another session, is refused.
// covers: S4.117, RB-55
#[tokio::test]
async fn guesses_are_refused() {
    let shop = Shop::default();
    let service = shop.service();
    let (one, two) = (Client::open(&service, NEWEST).await, Client::open(&service, NEWEST).await);
    let events = ten_steps(&shop, &one).await;
    for id in ids(&events) {
        two.get().header("last-event-id", &id).json(&service, 400).await;
        let mut bytes = id.clone().into_bytes();
        let last = bytes.last_mut().expect("a byte");
        *last = if *last == b'0' { b'1' } else { b'0' };
        let changed = String::from_utf8(bytes).expect("text");
        one.get().header("last-event-id", &changed).json(&service, 400).await;
    }
    for guess in ["0-0", "1-0", "1-1", "2-0"] {
        one.get().header("last-event-id", guess).json(&service, 400).await;
    }
}

/// A handler may let its client go, which comes back for the result.
// covers: S4.97, B-26, B-27, B-103
#[tokio::test]
async fn a_handler_may_close_its_stream() {
    let shop = Shop::default();
    let service = shop.service();
    let client = Client::open(&service, NEWEST).await;
    let events = Events::of(client.tool("close").token().to(&service).await).rest().await;
    assert!(events.iter().all(|event| event.message.is_none()), "the result is not there yet");
    assert_eq!(events.last().and_then(|event| event.retry), Some(70));
    let id = ids(&events).pop().expect("an id");
    shop.steps.allow(3);
    settle().await;
    let mut stream = client.resume(&id).await;
    assert_eq!(stream.message().await["params"]["progress"], 1);
    shop.steps.allow(10);
    let left = stream.messages().await;
    assert_eq!((steps(&left), tool_text(&left[9])), ((2..=10).collect(), "ten steps"));
    // And once more, after it is over.
    assert_eq!(client.resume(&id).await.messages().await.len(), 11);
}

/// It may do so later, when there was something to say already.
// covers: S4.97
#[tokio::test]
async fn a_stream_may_be_closed_later() {
    let shop = Shop::default();
    let service = shop.service();
    let client = Client::open(&service, NEWEST).await;
    let mut stream = Events::of(client.tool("close_later").token().to(&service).await);
    assert_eq!(stream.message().await["params"]["progress"], 1);
    shop.demo.gate.open();
    let left = stream.rest().await;
    assert_eq!((left.len(), left[0].retry), (1, Some(70)));
}

/// Older clients do not know that a stream may end before the result: theirs stays.
// covers: S4.97, B-27
#[tokio::test]
async fn older_streams_stay_open() {
    let shop = Shop::default();
    let service = shop.service();
    shop.steps.allow(10);
    for version in LEGACY.into_iter().filter(|version| *version != NEWEST) {
        let client = Client::open(&service, version).await;
        let left = Events::of(client.tool("close").token().to(&service).await).messages().await;
        assert_eq!(tool_text(left.last().expect("a result")), "ten steps");
    }
}

/// Without events nobody can come back: there are no ids, and no stream is closed early.
// covers: S4.118
#[tokio::test]
async fn without_events_there_are_no_ids() {
    let shop = Shop::default();
    let service = HttpService::with_options(shop.server(), stateful().resumable(false));
    shop.steps.allow(10);
    for version in LEGACY {
        let client = Client::open(&service, version).await;
        for name in ["step", "close"] {
            let events = Events::of(client.tool(name).token().to(&service).await).rest().await;
            assert_eq!(events.len(), 11);
            assert!(events.iter().all(|event| event.id.is_none() && event.retry.is_none() && event.message.is_some()));
        }
        let mut listener = client.listen().await;
        client.call("tell").await;
        let event = listener.next().await.expect("an event");
        assert!(event.id.is_none() && event.retry.is_none() && event.message.is_some());
        drop(listener);
        client.call("tell").await;
        assert_eq!(client.listen().await.there().await, (vec![], false), "what was missed is lost");
        for id in ["x", "0-0", "1-1"] {
            client.get().header("last-event-id", id).json(&service, 400).await;
        }
        assert_eq!(client.tool("hello").id(json!(5)).json(&service, 200).await["id"], 5);
    }
}

/// Streams may be lost at any moment, of many calls at the same time.
// covers: S4.117, RB-11
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_may_be_lost_at_any_time() {
    const COUNT: u64 = 150;
    let server = server(|builder| {
        builder.tool(tool("count", async |ctx: RequestContext, _: NoArguments| {
            for number in 1..=COUNT {
                ctx.progress(number);
                if number % 3 == 0 {
                    tokio::task::yield_now().await;
                }
            }
            "counted"
        }))
    });
    let service = HttpService::with_options(server, stateful());
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..24_u64 {
        let (service, version) = (service.clone(), RESUMABLE[number as usize % RESUMABLE.len()]);
        clients.spawn(async move {
            let client = Client::open(&service, version).await;
            let mut calls = tokio::task::JoinSet::new();
            for id in 0..4_u64 {
                calls.spawn(lossy(client.clone(), id, number * 7 + id * 13 + 1, COUNT));
            }
            while let Some(call) = calls.join_next().await {
                call.expect("a call");
            }
        });
    }
    while let Some(client) = clients.join_next().await {
        client.expect("a client");
    }
    let unused = async {
        while metrics(&service).active > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), unused).await.expect("nobody uses them any more");
}

/// Calls a tool that counts, and loses the stream again and again.
async fn lossy(client: Client, id: u64, mut seed: u64, count: u64) {
    let mut stream = Events::of(client.tool("count").id(json!(id)).token().to(&client.service).await);
    let (mut seen, mut last) = (Vec::new(), None);
    loop {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        for _ in 0..1 + (seed >> 33) % 20 {
            let Some(event) = stream.next().await else { break };
            last = event.id.or(last);
            seen.extend(event.message);
        }
        if seen.last().is_some_and(|message: &Value| message["result"].is_object()) {
            break;
        }
        let Some(last) = &last else { continue };
        if seed.is_multiple_of(2) {
            drop(stream);
            tokio::task::yield_now().await;
        }
        // The other half of the time the old stream is still there when the new one takes its place.
        stream = client.resume(last).await;
    }
    assert_eq!(seen.last().map(|message| &message["id"]), Some(&json!(id)));
    assert_eq!(steps(&seen), (1..=count).collect::<Vec<_>>());
}
