//! Configuration files that name servers, in the format of desktop clients.
//!
//! ```json
//! {
//!   "mcpServers": {
//!     "notes": { "command": "notes-server", "args": ["--stdio"], "env": { "NOTES": "/home/me/notes" }, "cwd": "/tmp" },
//!     "mail": { "type": "http", "url": "https://mail.example/mcp", "headers": { "Authorization": "Bearer ${TOKEN}" } }
//!   }
//! }
//! ```
//!
//! [`ServersConfig::parse`] reads it as plain data. With `mcp-transport-stdio`, a `ServerCommand` is made from a
//! [`CommandConfig`], and with `mcp-transport-http` an `HttpTransport` from a [`UrlConfig`].

mod expansion;

use std::fmt;

use mcp_types::{JsonObject, OrderedMap};
use serde::de::DeserializeOwned;

/// The servers of a configuration file, in their order.
///
/// # Examples
///
/// ```
/// use mcp_client::config::{ServerEntry, ServersConfig};
///
/// let text = r#"{ "mcpServers": { "notes": { "command": "notes-server", "env": { "KEY": "${NOTES_KEY:-none}" } } } }"#;
/// let config = ServersConfig::parse(text)?.expand(|name| std::env::var(name).ok())?;
/// let Some(ServerEntry::Command(notes)) = config.get("notes") else { panic!("no command") };
/// assert_eq!((notes.command.as_str(), notes.args.len()), ("notes-server", 0));
/// # Ok::<_, mcp_client::config::InvalidConfig>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServersConfig {
    servers: Vec<(String, ServerEntry)>,
}

/// How to connect to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerEntry {
    /// The server is a child process.
    Command(CommandConfig),
    /// The server is reached over HTTP.
    Url(UrlConfig),
}

/// A server that is a child process. `Debug` shows neither arguments nor the values of variables, which may be secrets.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandConfig {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Environment variables of the server, by name.
    pub env: Vec<(String, String)>,
    /// Its working directory.
    pub cwd: Option<String>,
}

/// A server over HTTP. `Debug` shows neither the path of the URL nor the values of headers, which may be secrets.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UrlConfig {
    /// The URL of the endpoint.
    pub url: String,
    /// The headers of each request, by name.
    pub headers: Vec<(String, String)>,
    /// The transport, if the file names it. An `HttpTransport` detects which one the server supports.
    pub transport: Option<UrlTransport>,
}

/// The transport of a server over HTTP, by the member `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UrlTransport {
    /// Streamable HTTP: `http` or `streamable-http`.
    StreamableHttp,
    /// HTTP+SSE of 2024-11-05: `sse`.
    Sse,
}

/// The error of a configuration that cannot be used. It contains names, and no values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidConfig {
    /// The text is not a JSON object with the member `mcpServers`.
    #[error("the configuration is not a JSON object with the member `mcpServers`, an object of objects")]
    NotServers,
    /// A member of a server is missing, or has another type.
    #[error("server `{server}`: {reason}")]
    Server {
        /// The name of the server.
        server: String,
        /// What is wrong.
        reason: String,
    },
}

impl ServersConfig {
    /// Reads a configuration. Unknown members are ignored, and `${...}` is not expanded.
    ///
    /// # Errors
    ///
    /// Returns an error that names the server and the member that cannot be used.
    pub fn parse(text: &str) -> Result<Self, InvalidConfig> {
        let file: JsonObject = serde_json::from_str(text).map_err(|_| InvalidConfig::NotServers)?;
        let servers = file.get("mcpServers").ok_or(InvalidConfig::NotServers)?;
        let servers: OrderedMap<JsonObject> =
            serde_json::from_str(servers.as_str()).map_err(|_| InvalidConfig::NotServers)?;
        let read = |(name, members): (String, JsonObject)| match read(&members) {
            Ok(server) => Ok((name, server)),
            Err(reason) => Err(InvalidConfig::Server { server: name, reason }),
        };
        Ok(Self { servers: servers.into_iter().map(read).collect::<Result<_, _>>()? })
    }

    /// Replaces `${NAME}` and `${NAME:-DEFAULT}` by the variables that `lookup` returns, such as those of the environment,
    /// in commands, arguments, values of variables, working directories, URLs and values of headers.
    ///
    /// A value is inserted as it is: it is not expanded again, and no shell sees it. Expand only configurations that the
    /// user trusts, as they can send any variable to any server.
    ///
    /// # Errors
    ///
    /// Returns an error that names a variable without a value and a default, or a `${` without a name and `}`.
    pub fn expand(mut self, lookup: impl Fn(&str) -> Option<String>) -> Result<Self, InvalidConfig> {
        for (name, server) in &mut self.servers {
            let expanded = server.texts().into_iter().try_for_each(|text| {
                *text = expansion::expand(text, &lookup)?;
                Ok(())
            });
            expanded.map_err(|reason| InvalidConfig::Server { server: name.clone(), reason })?;
        }
        Ok(self)
    }

    /// Returns the server of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&ServerEntry> {
        self.iter().find(|(other, _)| *other == name).map(|(_, server)| server)
    }

    /// Returns the names and servers.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ServerEntry)> {
        self.servers.iter().map(|(name, server)| (name.as_str(), server))
    }
}

impl ServerEntry {
    /// The texts that may have variables.
    fn texts(&mut self) -> Vec<&mut String> {
        match self {
            Self::Command(CommandConfig { command, args, env, cwd }) => {
                let values = env.iter_mut().map(|(_, value)| value);
                std::iter::once(command).chain(args).chain(values).chain(cwd).collect()
            }
            Self::Url(UrlConfig { url, headers, .. }) => {
                std::iter::once(url).chain(headers.iter_mut().map(|(_, value)| value)).collect()
            }
        }
    }
}

/// Reads the members of a server.
fn read(members: &JsonObject) -> Result<ServerEntry, String> {
    let command: Option<String> = member(members, "command", "a string")?;
    let url: Option<String> = member(members, "url", "a string")?;
    let kind: Option<String> = member(members, "type", "a string")?;
    let transport = match kind.as_deref() {
        None => None,
        Some("stdio") if command.is_none() => return Err("`type` is stdio, and `command` is missing".to_owned()),
        Some("stdio") => return Ok(ServerEntry::Command(read_command(members, command.unwrap_or_default())?)),
        Some("http" | "streamable-http" | "streamableHttp") => Some(UrlTransport::StreamableHttp),
        Some("sse") => Some(UrlTransport::Sse),
        Some(_) => return Err("`type` must be `stdio`, `http`, `streamable-http` or `sse`".to_owned()),
    };
    match (command, url, transport) {
        (Some(command), None, None) => Ok(ServerEntry::Command(read_command(members, command)?)),
        (Some(_), Some(_), None) => Err("has `command` and `url`; `type` must say which one counts".to_owned()),
        (_, Some(url), transport) => {
            let headers = member::<OrderedMap<String>>(members, "headers", "an object of strings")?;
            Ok(ServerEntry::Url(UrlConfig { url, headers: pairs(headers), transport }))
        }
        (_, None, Some(_)) => Err("`url` is missing".to_owned()),
        (None, None, None) => Err("`command` or `url` is missing".to_owned()),
    }
}

fn read_command(members: &JsonObject, command: String) -> Result<CommandConfig, String> {
    let args: Option<Vec<String>> = member(members, "args", "a list of strings")?;
    let env: Option<OrderedMap<String>> = member(members, "env", "an object of strings")?;
    let cwd = member(members, "cwd", "a string")?;
    Ok(CommandConfig { command, args: args.unwrap_or_default(), env: pairs(env), cwd })
}

fn pairs(map: Option<OrderedMap<String>>) -> Vec<(String, String)> {
    map.into_iter().flatten().collect()
}

/// Reads a member, which may be absent. The error does not contain the value, which may be a secret.
fn member<T: DeserializeOwned>(members: &JsonObject, name: &str, expected: &str) -> Result<Option<T>, String> {
    let Some(raw) = members.get(name) else { return Ok(None) };
    serde_json::from_str(raw.as_str()).map_err(|_| format!("`{name}` must be {expected}"))
}

impl fmt::Debug for CommandConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandConfig")
            .field("command", &self.command)
            .field("args", &self.args.len())
            .field("env", &names(&self.env))
            .field("cwd", &self.cwd)
            .finish()
    }
}

impl fmt::Debug for UrlConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UrlConfig")
            .field("origin", &origin(&self.url))
            .field("headers", &names(&self.headers))
            .field("transport", &self.transport)
            .finish()
    }
}

fn names(pairs: &[(String, String)]) -> Vec<&str> {
    pairs.iter().map(|(name, _)| name.as_str()).collect()
}

/// The scheme and host of a URL, without its user, password, path and query.
fn origin(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "...".to_owned() };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}")
}

#[cfg(test)]
mod tests;
