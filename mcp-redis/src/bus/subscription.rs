//! The task that receives messages.

use std::sync::{Arc, Weak};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, PushInfo, PushKind, RedisError, Value};
use tokio::time::{sleep, timeout};

use mcp_server::bus::BusEvent;
use mcp_session::StoreError;

use crate::Shared;
use crate::bus::Bus;
use crate::bus::inbox::{Arrived, Inbox};
use crate::bus::sender::{CONTENT, LOST};
use crate::connection::{Backoff, Failure};
use crate::endpoint::Endpoint;
use crate::keys::Keys;

/// How often the connection is checked while no message arrives. A connection can break without notice, and messages that are
/// published then are missed until that is known.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

pub(crate) struct Subscription {
    endpoint: Endpoint,
    keys: Keys,
    limit: Duration,
    /// The origin of this process, whose messages need no detour.
    origin: String,
    inbox: Arc<Inbox>,
    bus: Weak<Bus>,
    connection: MultiplexedConnection,
    /// The number of the last message; `None` if it is not known, so that the next one may have any.
    last: Option<u64>,
}

/// Why a subscription ended.
enum End {
    Disconnected,
    Closed,
}

impl Subscription {
    /// Subscribes.
    pub(super) async fn new(
        shared: &Shared,
        origin: String,
        inbox: Arc<Inbox>,
        bus: Weak<Bus>,
    ) -> Result<Self, StoreError> {
        let (endpoint, keys, limit) = (shared.endpoint.clone(), shared.keys.clone(), shared.limit);
        let connection = subscribe(&endpoint, &keys, limit, &inbox).await.map_err(StoreError::from)?;
        Ok(Self { endpoint, keys, limit, origin, inbox, bus, connection, last: None })
    }

    /// Receives until all handles are dropped.
    pub(crate) async fn run(mut self) {
        while let End::Disconnected = self.receive().await {
            tracing::warn!("the subscription to changes of other instances in Redis has ended");
            let mut backoff = Backoff::default();
            loop {
                sleep(backoff.next()).await;
                if self.inbox.is_closed() {
                    return;
                }
                match subscribe(&self.endpoint, &self.keys, self.limit, &self.inbox).await {
                    Ok(connection) => {
                        (self.connection, self.last) = (connection, None);
                        break;
                    }
                    Err(failure) => tracing::debug!(?failure, "Redis does not accept the subscription"),
                }
            }
            tracing::info!("changes of other instances arrive again");
            self.deliver(BusEvent::Gap);
        }
    }

    /// Receives until the connection breaks.
    async fn receive(&mut self) -> End {
        loop {
            let inbox = Arc::clone(&self.inbox);
            let end = match timeout(CHECK_INTERVAL, inbox.next()).await {
                Ok(arrived) => self.handle(arrived),
                Err(_) => self.check().await,
            };
            if let Some(end) = end {
                return end;
            }
        }
    }

    /// Checks that the connection works, and that the last message has arrived.
    async fn check(&mut self) -> Option<End> {
        let mut get = redis::cmd("GET");
        get.arg(self.keys.bus_number());
        let query = get.query_async::<Option<u64>>(&mut self.connection);
        // An error may say that another server has the number, and the channel, now.
        let Ok(Ok(number)) = timeout(self.limit, query).await else { return Some(End::Disconnected) };
        let number = number.unwrap_or(0);
        // Redis has sent all messages up to this number before this response.
        let arrived = self.inbox.take();
        if let Some(end) = self.handle(arrived) {
            return Some(end);
        }
        if self.last.is_some_and(|last| last < number) {
            self.deliver(BusEvent::Gap);
        }
        if self.last.is_none_or(|last| last < number) {
            self.last = Some(number);
        }
        None
    }

    fn handle(&mut self, arrived: Arrived) -> Option<End> {
        if arrived.is_closed {
            return Some(End::Closed);
        }
        if arrived.has_lost {
            self.last = None;
            self.deliver(BusEvent::Gap);
        }
        for message in &arrived.messages {
            self.handle_message(message);
        }
        arrived.is_disconnected.then_some(End::Disconnected)
    }

    fn handle_message(&mut self, message: &[u8]) {
        let Some(message) = Message::parse(message) else {
            tracing::warn!("a message in the channel of changes in Redis is not valid");
            return self.deliver(BusEvent::Gap);
        };
        if self.last.is_some_and(|last| last.checked_add(1) != Some(message.number)) {
            self.deliver(BusEvent::Gap);
        }
        self.last = Some(message.number);
        if message.origin == self.origin.as_bytes() {
            return;
        }
        match message.content {
            Some(content) => self.deliver(BusEvent::Message(content)),
            None => self.deliver(BusEvent::Gap),
        }
    }

    fn deliver(&self, event: BusEvent<'_>) {
        if let Some(bus) = self.bus.upgrade() {
            bus.deliver(None, event);
        }
    }
}

/// A message in the channel.
struct Message<'a> {
    number: u64,
    origin: &'a [u8],
    /// `None` if its sender has lost messages.
    content: Option<&'a [u8]>,
}

impl<'a> Message<'a> {
    fn parse(text: &'a [u8]) -> Option<Self> {
        let mut parts = text.splitn(3, |byte| *byte == b':');
        let number = str::from_utf8(parts.next()?).ok()?.parse().ok()?;
        let (origin, rest) = (parts.next()?, parts.next()?);
        let content = match *rest.first()? {
            CONTENT => Some(rest.get(1..)?),
            LOST => None,
            _ => return None,
        };
        Some(Self { number, origin, content })
    }
}

async fn subscribe(
    endpoint: &Endpoint,
    keys: &Keys,
    limit: Duration,
    inbox: &Arc<Inbox>,
) -> Result<MultiplexedConnection, Failure> {
    let (inbox, number) = (Arc::clone(inbox), inbox.begin());
    let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None).set_push_sender(
        move |push: PushInfo| {
            match (push.kind, push.data.into_iter().nth(1)) {
                (PushKind::Message, Some(Value::BulkString(message))) => inbox.push(number, message),
                (PushKind::Disconnection, _) => inbox.disconnect(number),
                _ => {}
            }
            Ok::<_, std::convert::Infallible>(())
        },
    );
    let connect = async {
        let mut connection = endpoint.connect(&config).await?;
        connection.subscribe(keys.bus()).await?;
        Ok::<_, RedisError>(connection)
    };
    match timeout(limit, connect).await {
        Ok(connected) => connected.map_err(Failure::from),
        Err(_) => Err(Failure::NoResponse(format!("no response within {limit:?}"))),
    }
}
