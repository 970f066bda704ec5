//! A client that uses everything a server may have, and the script of a hostile server.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use mcp_client::{CallOptions, Client, ClientBuilder, Mode, Transport};
use mcp_types::jsonrpc::{Incoming, Limits, Message, parse};
use mcp_types::{
    CreateMessageResult, ElicitAction, ElicitResult, LoggingLevel, PromptReference, RequestId, Role, Root,
    SamplingContent, SubscriptionFilter,
};
use serde_json::{from_value, json};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// The methods whose requests a script can answer, each with the letter that its lines begin with.
const METHODS: [(u8, &str); 17] = [
    (b'd', "server/discover"),
    (b'i', "initialize"),
    (b't', "tools/list"),
    (b'T', "tools/call"),
    (b'p', "prompts/list"),
    (b'P', "prompts/get"),
    (b'r', "resources/list"),
    (b'm', "resources/templates/list"),
    (b'R', "resources/read"),
    (b'c', "completion/complete"),
    (b'g', "ping"),
    (b's', "logging/setLevel"),
    (b'u', "resources/subscribe"),
    (b'U', "resources/unsubscribe"),
    (b'l', "subscriptions/listen"),
    // What is said without a request, and what ends a session: over HTTP they are answered, too.
    (b'N', NO_REQUEST),
    (b'D', DELETE),
];

/// Stands for the method where a client posts no request.
pub(super) const NO_REQUEST: &str = "no request";

/// Stands for the method where a client ends its session.
pub(super) const DELETE: &str = "delete";

/// The method that a letter stands for.
pub(super) fn method_of(letter: u8) -> Option<&'static str> {
    METHODS.iter().find(|(known, _)| *known == letter).map(|(_, method)| *method)
}

/// How long everything together may take in virtual time.
const LONGEST: Duration = Duration::from_secs(3600);

/// How long a listener is listened to.
const LISTENING: Duration = Duration::from_secs(20);

/// A runtime whose time passes only when there is nothing else to do.
pub(super) fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime without I/O")
}

/// Connects a client, has it do everything, and closes it. Each step ends, and so does everything that was started.
pub(super) fn use_everything<T: Transport>(start: &[u8], transport: impl FnOnce() -> T) {
    let runtime = runtime();
    runtime.block_on(async {
        let everything = async {
            match builder(start).connect(transport()).await {
                Ok(client) => {
                    work(&client).await;
                    client.close().await;
                }
                Err(error) => assert!(!error.to_string().is_empty(), "an error says something"),
            }
        };
        timeout(LONGEST, everything).await.expect("everything ends");
        // What was told to end gets the time to do so.
        let _ = timeout(LONGEST, async {
            while runtime.metrics().num_alive_tasks() > 0 {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        })
        .await;
    });
    assert_eq!(runtime.metrics().num_alive_tasks(), 0, "nothing is left behind");
}

/// A client that can be asked everything, unless the start says otherwise.
fn builder(start: &[u8]) -> ClientBuilder {
    let mode = match start {
        _ if start.contains(&b'l') => Mode::Legacy,
        _ if start.contains(&b'm') => Mode::Modern,
        _ => Mode::Auto,
    };
    let limits =
        CallOptions::default().idle_timeout(Some(Duration::from_secs(5))).total_timeout(Some(Duration::from_secs(60)));
    let builder = Client::builder("client", "1.0")
        .mode(mode)
        .call_options(limits)
        .log_level(LoggingLevel::Debug)
        .on_log(|_, message| assert!(message.data.as_str().len() < 1 << 20))
        .on_notification(|_, method, _| assert!(!method.as_str().is_empty()));
    if start.contains(&b'n') {
        return builder;
    }
    builder
        .on_form_elicitation(async |_, _| {
            let content = json!({ "action": "accept", "content": { "name": "ann", "age": 7, "sure": true } });
            from_value::<ElicitResult>(content).expect("an answer to a form")
        })
        .on_url_elicitation(async |_, _| ElicitResult::new(ElicitAction::Decline))
        .on_sampling_with_tools(async |_, _| {
            CreateMessageResult::new(Role::ASSISTANT, SamplingContent::text("hello"), "model")
        })
        .roots([Root::new("file:///home")])
}

/// Does everything that a client can do, at once, and some of it again with what came of it.
async fn work(client: &Client) {
    let _ = (client.server(), client.detected_revision(), client.revision(), client.save_session());
    // What a tool wants in headers is known from its list.
    let tools = client.tools().all().await;
    let mut calls: Vec<BoxFuture<'_, ()>> = vec![
        Box::pin(async {
            let names: Vec<_> = tools.iter().flatten().map(|tool| tool.name.clone()).chain(["t".to_owned()]).collect();
            for name in names.into_iter().take(3) {
                let arguments = json!({ "a": 1, "region": "é", "b": { "c": true } });
                let _ = client.call_tool(name).arguments(&arguments).on_progress(|_| {}).await;
            }
        }),
        Box::pin(async { drop(client.prompts().all().await) }),
        Box::pin(async { drop(client.resources().all().await) }),
        Box::pin(async { drop(client.resource_templates().all().await) }),
        Box::pin(async { drop(client.get_prompt("p").argument("a", "b").await) }),
        Box::pin(async {
            // The second time it may come out of the cache.
            drop(client.read_resource("a:b").await);
            drop(client.read_resource("a:b").await);
        }),
        Box::pin(async { drop(client.complete(PromptReference::new("p"), "a", "b").await) }),
        Box::pin(async { drop(client.ping().await) }),
        Box::pin(async { drop(client.set_log_level(LoggingLevel::Error).await) }),
        Box::pin(async { drop(client.set_roots([Root::new("file:///tmp")]).await) }),
    ];
    calls.push(Box::pin(async {
        let filter = SubscriptionFilter::default().tools_list_changed(true).resource_subscriptions(["a:b".to_owned()]);
        let _ = timeout(LISTENING, async {
            let Ok(mut listener) = client.listen(filter).await else { return };
            while let Some(Ok(_)) = listener.next().await {}
        })
        .await;
    }));
    join_all(calls).await;
}

/// What a server has to say, line by line.
pub(super) struct Script {
    /// Answers to requests by the letters of their methods, in order; the text follows the id.
    answers: VecDeque<(u8, Vec<u8>)>,
    /// Lines that come by themselves.
    lines: VecDeque<Vec<u8>>,
}

impl Script {
    /// Reads a script: a line that begins with the letter of a method answers the next request for it, any other one
    /// comes by itself.
    pub(super) fn new<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut script = Self { answers: VecDeque::new(), lines: VecDeque::new() };
        for line in lines.take(MOST) {
            match line.split_first() {
                Some((letter, answer)) if method_of(*letter).is_some() => {
                    script.answers.push_back((*letter, answer.to_vec()));
                }
                _ => script.lines.push_back(line.to_vec()),
            }
        }
        script
    }

    /// The answer to a request, if there is one left.
    pub(super) fn answer(&mut self, method: &str) -> Option<Vec<u8>> {
        let place = self.answers.iter().position(|(letter, _)| method_of(*letter) == Some(method))?;
        self.answers.remove(place).map(|(_, answer)| answer)
    }

    /// The next line that comes by itself, as it is for the newest request.
    pub(super) fn line(&mut self, newest: Option<&RequestId>) -> Option<Vec<u8>> {
        Some(with_id(&self.lines.pop_front()?, newest))
    }
}

/// How many lines of a script are looked at.
const MOST: usize = 64;

/// Puts the id of a request where a line has `"id":?`.
pub(super) fn with_id(line: &[u8], id: Option<&RequestId>) -> Vec<u8> {
    const PLACE: &[u8] = br#""id":?"#;
    let mut rest = line;
    let mut text = Vec::new();
    while let Some(place) = rest.windows(PLACE.len()).position(|window| window == PLACE) {
        text.extend_from_slice(&rest[..place]);
        text.extend_from_slice(br#""id":"#);
        text.extend_from_slice(id.map_or_else(|| "null".to_owned(), json_of).as_bytes());
        rest = &rest[place + PLACE.len()..];
    }
    text.extend_from_slice(rest);
    text
}

/// The beginning of a response to a request; the script has the rest.
pub(super) fn response_to(id: &RequestId, answer: &[u8]) -> Vec<u8> {
    let mut line = format!(r#"{{"jsonrpc":"2.0","id":{},"#, json_of(id)).into_bytes();
    line.extend_from_slice(answer);
    line
}

fn json_of(id: &RequestId) -> String {
    serde_json::to_string(id).expect("an id is JSON")
}

/// What a client may say: messages on one line, requests with an id of their own.
#[derive(Default)]
pub(super) struct Heard {
    /// The requests by where they went and their ids.
    requests: BTreeMap<(String, String), Vec<u8>>,
    /// Whether a request may be sent again, word for word: with another credential.
    pub(super) may_repeat: bool,
    /// The id of the newest request.
    pub(super) newest: Option<RequestId>,
}

impl Heard {
    /// Takes note of what the client says somewhere; returns its requests, each by its id and method.
    pub(super) fn hear(&mut self, place: &str, line: &[u8]) -> Vec<(RequestId, String)> {
        assert!(!line.contains(&b'\n') && !line.contains(&b'\r'), "a message is one line");
        let messages = match parse(line, &Limits::default()) {
            Ok(Incoming::Single(message)) => vec![message],
            Ok(Incoming::Batch(messages)) => messages.into_iter().map(|message| message.expect("a message")).collect(),
            Err(fault) => panic!("{fault}: {}", String::from_utf8_lossy(line)),
        };
        let mut requests = Vec::new();
        for message in messages {
            let Message::Request(request) = message else { continue };
            let id = request.id.clone();
            let before = self.requests.insert((place.to_owned(), json_of(&id)), line.to_vec());
            // The handshake is repeated for a server of HTTP+SSE, which may take messages at the same address.
            let may_repeat = self.may_repeat || request.method.as_str() == "initialize";
            assert!(before.is_none_or(|before| may_repeat && before == line), "{id} is used twice");
            self.newest = Some(id.clone());
            requests.push((id, request.method.as_str().to_owned()));
        }
        requests
    }
}
