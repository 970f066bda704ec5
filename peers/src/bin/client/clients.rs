//! The contestants.

use std::fmt;

use peers::process::pinned;
use peers::processors::{DRIVER, SERVER};

/// A client that can be started.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) name: &'static str,
    /// The package of the workspace of the benches, and the executable that it builds.
    pub(crate) package: &'static str,
    pub(crate) way: Way,
    pub(crate) argument: &'static str,
    pub(crate) maker: Maker,
    /// What it is, in a few words.
    pub(crate) about: &'static str,
}

/// How client and server are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Memory,
    Stdio,
    Http,
}

/// Who made a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maker {
    Ours,
    /// The client of `rmcp`, with the server that ours has: what the others are put in relation to.
    Rmcp,
    /// The same with another server, or less fast.
    RmcpOther,
}

pub(crate) const CLIENTS: &[Client] = &[
    Client {
        name: "ours, Memory",
        package: "client-memory",
        way: Way::Memory,
        argument: "ours-memory",
        maker: Maker::Ours,
        about: "both ends in one task, messages handed over",
    },
    Client {
        name: "ours, pipe",
        package: "client-memory",
        way: Way::Memory,
        argument: "ours-duplex",
        maker: Maker::Ours,
        about: "a pipe of tokio's, our server at the other end",
    },
    Client {
        name: "rmcp, pipe",
        package: "client-memory",
        way: Way::Memory,
        argument: "rmcp-duplex",
        maker: Maker::Rmcp,
        about: "the same pipe, the same server",
    },
    Client {
        name: "rmcp, pipe, rmcp's server",
        package: "client-memory",
        way: Way::Memory,
        argument: "rmcp-alone",
        maker: Maker::RmcpOther,
        about: "the same pipe, a server by hand with rmcp",
    },
    Client {
        name: "ours, child",
        package: OURS,
        way: Way::Stdio,
        argument: "stdio",
        maker: Maker::Ours,
        about: "this workspace's, over standard streams",
    },
    Client {
        name: "rmcp, child",
        package: RMCP,
        way: Way::Stdio,
        argument: "stdio",
        maker: Maker::Rmcp,
        about: "TokioChildProcess, one thread",
    },
    Client {
        name: "ours, reqwest",
        package: OURS,
        way: Way::Http,
        argument: "http",
        maker: Maker::Ours,
        about: "this workspace's, over HTTP",
    },
    Client {
        name: "rmcp, reqwest, kept",
        package: RMCP,
        way: Way::Http,
        argument: "http-kept",
        maker: Maker::Rmcp,
        about: "StreamableHttpClientTransport with a reqwest client that keeps connections, one thread",
    },
    Client {
        name: "rmcp, reqwest",
        package: RMCP,
        way: Way::Http,
        argument: "http",
        maker: Maker::RmcpOther,
        about: "StreamableHttpClientTransport as it comes: a connection for each request",
    },
];

/// The packages whose size and crates are compared.
pub(crate) const OURS: &str = "client-ours";
pub(crate) const RMCP: &str = "client-rmcp";

impl Client {
    /// The command that starts it on its processor; `url` is that of the server over HTTP.
    pub(crate) fn command(&self, url: &str) -> Result<Vec<String>, String> {
        let mut command = pinned(DRIVER, self.package)?;
        command.push(self.argument.to_owned());
        match self.way {
            Way::Memory => {}
            Way::Stdio => command.extend(pinned(SERVER, "stdio-ours")?),
            Way::Http => command.push(url.to_owned()),
        }
        Ok(command)
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "in memory",
            Self::Stdio => "stdio",
            Self::Http => "HTTP",
        })
    }
}
