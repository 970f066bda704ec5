//! Where Redis is.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo as _, ProtocolVersion,
    RedisError, Value,
};
use tokio::time::timeout;

use crate::options::RedisOptions;
use mcp_session::StoreError;

/// The Redis server to connect to.
#[derive(Clone)]
pub(crate) enum Endpoint {
    /// One server.
    Single(Arc<Client>),
    /// The master that sentinels name.
    Sentinels { sentinels: Arc<[ConnectionInfo]>, master: Arc<ConnectionInfo> },
    /// The master of a cluster that has the slot of a key.
    Cluster { nodes: Arc<[ConnectionInfo]>, key: Arc<str> },
}

/// How long one of several servers may take to say where the master is.
const LOOKUP_TIMEOUT: Duration = Duration::from_millis(500);

impl Endpoint {
    pub(crate) fn single(url: &str, options: &RedisOptions) -> Result<Self, StoreError> {
        Client::open(parse(url, options)?).map(|client| Self::Single(Arc::new(client))).map_err(unusable)
    }

    /// The host of `url` is the name of the master, and the rest says how to log in to it.
    pub(crate) fn sentinels(sentinels: &[&str], url: &str, options: &RedisOptions) -> Result<Self, StoreError> {
        let master = parse(url, options)?;
        if host(master.addr()).is_none() {
            return Err(StoreError("the URL of Redis cannot be used: it has no name of a master".to_owned()));
        }
        Ok(Self::Sentinels { sentinels: parse_all(sentinels, options)?, master: master.into() })
    }

    pub(crate) fn cluster(nodes: &[&str], key: String, options: &RedisOptions) -> Result<Self, StoreError> {
        Ok(Self::Cluster { nodes: parse_all(nodes, options)?, key: key.into() })
    }

    /// Connects to the server that is the right one now.
    pub(crate) async fn connect(&self, config: &AsyncConnectionConfig) -> Result<MultiplexedConnection, RedisError> {
        let client = match self {
            Self::Single(client) => return client.get_multiplexed_async_connection_with_config(config).await,
            Self::Sentinels { sentinels, master } => {
                let name = host(master.addr()).unwrap_or_default();
                let (_, (host, port)) = first_answer(sentinels, Lookup::Name(name)).await?;
                Client::open(at(master, host, port))?
            }
            Self::Cluster { nodes, key } => {
                let (node, (host, port)) = first_answer(nodes, Lookup::SlotOf(key)).await?;
                Client::open(at(&node, host, port))?
            }
        };
        let mut connection = client.get_multiplexed_async_connection_with_config(config).await?;
        // What was looked up may be outdated.
        let role: Value = redis::cmd("ROLE").query_async(&mut connection).await?;
        let is_master =
            matches!(&role, Value::Array(role) if role.first() == Some(&Value::BulkString(b"master".to_vec())));
        if is_master { Ok(connection) } else { Err(not_found("the server is not a master at the moment")) }
    }
}

/// How to find a master.
#[derive(Clone, Copy)]
enum Lookup<'a> {
    /// By its name, at a sentinel.
    Name(&'a str),
    /// By the slot of a key, at a node of a cluster.
    SlotOf(&'a str),
}

/// Asks servers in turn, and returns the first answer, and whose it is.
async fn first_answer(
    servers: &[ConnectionInfo],
    lookup: Lookup<'_>,
) -> Result<(ConnectionInfo, (String, u16)), RedisError> {
    let mut error = not_found("there is no address to ask");
    for server in servers {
        error = match timeout(LOOKUP_TIMEOUT, ask(server, lookup)).await {
            Ok(Ok(address)) => return Ok((server.clone(), address)),
            Ok(Err(error)) => error,
            Err(_) => not_found("the servers that know the master do not respond"),
        };
    }
    Err(error)
}

async fn ask(server: &ConnectionInfo, lookup: Lookup<'_>) -> Result<(String, u16), RedisError> {
    let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
    let client = Client::open(server.clone())?;
    let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
    match lookup {
        Lookup::Name(name) => {
            let mut lookup = redis::cmd("SENTINEL");
            lookup.arg("GET-MASTER-ADDR-BY-NAME").arg(name);
            let found: Option<(String, u16)> = lookup.query_async(&mut connection).await?;
            found.ok_or_else(|| not_found("the sentinels do not know the master"))
        }
        Lookup::SlotOf(key) => {
            let slot: i64 = redis::cmd("CLUSTER").arg("KEYSLOT").arg(key).query_async(&mut connection).await?;
            let slots: Value = redis::cmd("CLUSTER").arg("SLOTS").query_async(&mut connection).await?;
            let found = master_of(slot, &slots);
            let (name, port) = found.ok_or_else(|| not_found("no node of the cluster has the slot of the prefix"))?;
            // A node that does not know its own name leaves it out.
            let own = || host(server.addr()).map(str::to_owned);
            let name = name.filter(|name| !name.is_empty()).or_else(own);
            Ok((name.ok_or_else(|| not_found("a node of the cluster has no name"))?, port))
        }
    }
}

/// Finds the master of a slot in the response to `CLUSTER SLOTS`: ranges of slots, each with its nodes, the master first.
fn master_of(slot: i64, slots: &Value) -> Option<(Option<String>, u16)> {
    let Value::Array(ranges) = slots else { return None };
    ranges.iter().find_map(|range| {
        let Value::Array(range) = range else { return None };
        let [Value::Int(first), Value::Int(last), Value::Array(master), ..] = range.as_slice() else { return None };
        let [host, Value::Int(port), ..] = master.as_slice() else { return None };
        let host = if let Value::BulkString(host) = host { String::from_utf8(host.clone()).ok() } else { None };
        (*first..=*last).contains(&slot).then_some((host, u16::try_from(*port).ok()?))
    })
}

/// The host of an address, unless it is a file.
fn host(address: &ConnectionAddr) -> Option<&str> {
    match address {
        ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. } => Some(host),
        ConnectionAddr::Unix(_) | _ => None,
    }
}

/// Another server that is reached in the same way, with TLS or without.
fn at(like: &ConnectionInfo, name: String, new_port: u16) -> ConnectionInfo {
    let mut address = like.addr().clone();
    if let ConnectionAddr::TcpTls { host, port, .. } = &mut address {
        (*host, *port) = (name, new_port);
    } else {
        address = ConnectionAddr::Tcp(name, new_port);
    }
    like.clone().set_addr(address)
}

fn parse(
    url: &str,
    #[cfg_attr(not(feature = "tls"), expect(unused_variables, reason = "nothing else is needed of them"))]
    options: &RedisOptions,
) -> Result<ConnectionInfo, StoreError> {
    let info = url.into_connection_info().map_err(unusable)?;
    #[cfg(feature = "tls")]
    let info = options.tls.apply(info).map_err(unusable)?;
    let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    Ok(info.set_redis_settings(settings))
}

fn parse_all(urls: &[&str], options: &RedisOptions) -> Result<Arc<[ConnectionInfo]>, StoreError> {
    urls.iter().map(|url| parse(url, options)).collect()
}

fn unusable(error: RedisError) -> StoreError {
    StoreError(format!("the URL of Redis cannot be used: {error}"))
}

fn not_found(what: &'static str) -> RedisError {
    RedisError::from((ErrorKind::Io, what))
}
