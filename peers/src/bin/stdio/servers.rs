//! The contestants. To add one, put a package under `peers/servers` and an entry here.

use std::path::PathBuf;

use crate::dialect::Dialect;

/// A server that can be started.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) name: &'static str,
    /// The executable, which is built next to the one of this driver.
    executable: &'static str,
    pub(crate) arguments: &'static [&'static str],
    /// The package of the workspace of the benches that builds it; its dependencies are counted.
    pub(crate) package: &'static str,
    /// How clients may talk to it.
    pub(crate) dialects: &'static [Dialect],
    /// What it is, in a few words.
    pub(crate) about: &'static str,
}

pub(crate) const SERVERS: &[Server] = &[
    Server {
        name: "floor",
        executable: "stdio-floor",
        arguments: &[],
        package: "stdio-floor",
        dialects: &[Dialect::Legacy],
        about: "reads no JSON: what the pipes and the driver take",
    },
    Server {
        name: STRICT,
        executable: "stdio-strict",
        arguments: &[],
        package: "stdio-strict",
        dialects: &[Dialect::Legacy, Dialect::Modern],
        about: "a loop over lines with types that borrow, checks nothing: the reference",
    },
    Server {
        name: RAW,
        executable: "stdio-raw",
        arguments: &[],
        package: "stdio-raw",
        dialects: &[Dialect::Legacy, Dialect::Modern],
        about: "a loop over lines with serde_json::Value, checks nothing",
    },
    Server {
        name: "rmcp",
        executable: "stdio-rmcp",
        arguments: &[],
        package: "stdio-rmcp",
        dialects: &[Dialect::Legacy, Dialect::Modern],
        about: "macros and defaults, as documented; makes its router for each call",
    },
    Server {
        name: "rmcp, kept",
        executable: "stdio-rmcp-kept",
        arguments: &[],
        package: "stdio-rmcp",
        dialects: &[Dialect::Legacy, Dialect::Modern],
        about: "macros, with a router that is kept",
    },
    Server {
        name: "rmcp, handler",
        executable: "stdio-rmcp-handler",
        arguments: &[],
        package: "stdio-rmcp-handler",
        dialects: &[Dialect::Legacy, Dialect::Modern],
        about: "no macros, a handler by hand, one thread, pipes that do not block",
    },
    Server {
        name: OURS,
        executable: "stdio-ours",
        arguments: &[],
        package: "stdio-ours",
        dialects: &[Dialect::Legacy, Dialect::Modern],
        about: "this workspace's",
    },
];

/// The server to whose costs the others' are put in relation.
pub(crate) const STRICT: &str = "strict";
pub(crate) const RAW: &str = "raw with a Value";
pub(crate) const OURS: &str = "ours";

impl Server {
    /// Returns where the executable is, unless it was not built.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        let driver = std::env::current_exe().ok()?;
        let path = driver.with_file_name(format!("{}{}", self.executable, std::env::consts::EXE_SUFFIX));
        path.is_file().then_some(path)
    }
}
