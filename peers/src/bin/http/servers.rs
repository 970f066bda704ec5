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
    /// Whether it takes part only if it is asked for, with `--peers all`.
    pub(crate) is_other: bool,
}

/// An entry for a server that is not built is left out.
pub(crate) const SERVERS: &[Server] = &[
    Server {
        name: STRICT,
        package: "http-strict",
        supports: Kind::ALL,
        about: "hyper and types that borrow, checks nothing: the reference",
        is_other: false,
    },
    Server {
        name: "raw with a Value",
        package: "http-raw",
        supports: Kind::ALL,
        about: "hyper and serde_json::Value, checks nothing",
        is_other: false,
    },
    Server {
        name: RMCP,
        package: "http-rmcp",
        supports: Kind::ALL,
        about: "no sessions but where it is said, plain JSON, a handler by hand",
        is_other: false,
    },
    Server { name: OURS, package: "http-ours", supports: Kind::ALL, about: "this workspace's", is_other: false },
    Server {
        name: PROTECTED,
        package: "http-ours-auth",
        supports: &[Kind::Token],
        about: "the same, behind the layer that verifies access tokens; counted only",
        is_other: false,
    },
    Server {
        name: MEASURED,
        package: "http-ours-metrics",
        supports: &[Kind::Modern],
        about: "ours with metrics of OpenTelemetry",
        is_other: false,
    },
    Server {
        name: "tower-mcp",
        package: "http-tower-mcp",
        supports: &[Kind::Modern, Kind::Legacy],
        about: "0.25 with axum, as documented, no checks of host and origin",
        is_other: true,
    },
    Server {
        name: "rust-mcp-sdk",
        package: "http-rust-mcp-sdk",
        supports: &[Kind::Modern],
        about: "2.0 with axum, as documented, plain JSON",
        is_other: true,
    },
    Server {
        name: "pmcp",
        package: "http-pmcp",
        supports: &[Kind::Modern, Kind::Legacy, Kind::Session],
        about: "2.23 with axum, as documented, plain JSON without sessions, no checks of host and origin",
        is_other: true,
    },
    Server {
        name: "turbomcp",
        package: "http-turbomcp",
        supports: &[Kind::Session, Kind::SessionProgress],
        about: "3.6 with axum, as documented, no check of the origin; it has no modern revision",
        is_other: true,
    },
];

/// The server to whose costs the others' are put in relation.
pub(crate) const STRICT: &str = "strict";
pub(crate) const RMCP: &str = "rmcp";
pub(crate) const OURS: &str = "ours";
/// Ours behind the layer of a resource server.
pub(crate) const PROTECTED: &str = "ours, protected";
/// Ours with metrics.
pub(crate) const MEASURED: &str = "ours, with metrics";

impl Server {
    /// Returns where the executable is, unless it was not built.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        peers::process::path(self.package)
    }

    pub(crate) fn supports(&self, kind: Kind) -> bool {
        self.supports.contains(&kind)
    }
}
