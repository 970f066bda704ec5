//! The contestants. To add one, put a package under `peers/servers` and an entry here.

use std::path::PathBuf;

use crate::request::Kind;

/// A server that can be started.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) name: &'static str,
    /// The package of the workspace of the benches, and the executable that it builds.
    pub(crate) package: &'static str,
    /// What it can be asked.
    pub(crate) supports: &'static [Kind],
    /// What it is, in a few words.
    pub(crate) about: &'static str,
}

/// An entry for a server that is not built is left out.
pub(crate) const SERVERS: &[Server] = &[
    Server {
        name: RAW,
        package: "http-raw",
        supports: Kind::ALL,
        about: "hyper and serde_json::Value, checks nothing",
    },
    Server {
        name: "typed",
        package: "http-typed",
        supports: &[Kind::Modern, Kind::Legacy],
        about: "hyper and types that borrow, checks nothing and can do nothing but this call",
    },
    Server {
        name: RMCP,
        package: "http-rmcp",
        supports: Kind::ALL,
        about: "no sessions but where it is said, plain JSON, a handler by hand",
    },
    Server { name: OURS, package: "http-ours", supports: Kind::ALL, about: "this workspace's" },
];

pub(crate) const RAW: &str = "raw";
pub(crate) const RMCP: &str = "rmcp";
pub(crate) const OURS: &str = "ours";

impl Server {
    /// Returns where the executable is, unless it was not built.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        let driver = std::env::current_exe().ok()?;
        let path = driver.with_file_name(format!("{}{}", self.package, std::env::consts::EXE_SUFFIX));
        path.is_file().then_some(path)
    }

    pub(crate) fn supports(&self, kind: Kind) -> bool {
        self.supports.contains(&kind)
    }
}
