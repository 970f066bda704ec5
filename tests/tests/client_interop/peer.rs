//! The servers, and in what they differ.

use mcp_client::types::{Era, Revision};

/// A server, with the facts about it that decide what there is to check. They are about its package, not about us.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(crate) program: Program,
    /// Whether it serves the modern era as well as the legacy one, where there is no HTTP+SSE.
    pub(crate) is_dual: bool,
    /// How it refuses what is unknown, in the legacy and the modern era: by an error with this code, or by a result that
    /// says so.
    pub(crate) unknown_tool: [Refusal; 2],
    pub(crate) unknown_resource: [Refusal; 2],
    /// Whether a legacy server answers modern calls on a pipe as if nothing was wrong with them.
    pub(crate) answers_everybody: bool,
    /// Whether tools can close the stream of a legacy response.
    pub(crate) can_drop: bool,
}

#[derive(Clone, Copy)]
pub(crate) enum Refusal {
    Code(i64),
    IsError,
}

/// What is run: what `interop/install` has installed, with a script, or a program in Rust.
pub(crate) enum Program {
    Script { interpreter: &'static str, script: &'static str },
    Rmcp,
    Ours,
}

use Refusal::{Code, IsError};

pub(crate) const PYTHON1: Peer = Peer {
    name: "python1",
    program: Program::Script { interpreter: "python1/bin/python", script: "python1/server.py" },
    is_dual: false,
    unknown_tool: [IsError, IsError],
    unknown_resource: [Code(0), Code(0)],
    answers_everybody: false,
    can_drop: true,
};

pub(crate) const PYTHON2: Peer = Peer {
    name: "python2",
    program: Program::Script { interpreter: "python/bin/python", script: "python2/server.py" },
    is_dual: true,
    unknown_tool: [Code(0), Code(-32603)],
    unknown_resource: [Code(0), Code(-32603)],
    answers_everybody: false,
    can_drop: true,
};

pub(crate) const TYPESCRIPT1: Peer = Peer {
    name: "typescript1",
    program: Program::Script { interpreter: "bin/node", script: "typescript1/server.mjs" },
    is_dual: false,
    unknown_tool: [IsError, IsError],
    unknown_resource: [Code(-32602), Code(-32602)],
    answers_everybody: true,
    can_drop: true,
};

pub(crate) const TYPESCRIPT2: Peer = Peer {
    name: "typescript2",
    program: Program::Script { interpreter: "bin/node", script: "typescript2/server.mjs" },
    is_dual: true,
    unknown_tool: [Code(-32602), Code(-32602)],
    unknown_resource: [Code(-32602), Code(-32602)],
    answers_everybody: false,
    can_drop: true,
};

pub(crate) const RMCP: Peer = Peer {
    name: "rmcp",
    program: Program::Rmcp,
    is_dual: true,
    unknown_tool: [Code(-32602), Code(-32602)],
    unknown_resource: [Code(-32002), Code(-32602)],
    answers_everybody: false,
    // Its tools have no way to do so.
    can_drop: false,
};

pub(crate) const OURS: Peer = Peer {
    name: "ours",
    program: Program::Ours,
    is_dual: true,
    unknown_tool: [Code(-32602), Code(-32602)],
    unknown_resource: [Code(-32002), Code(-32602)],
    answers_everybody: false,
    can_drop: true,
};

/// Which of two facts holds.
pub(crate) fn in_era<T: Copy>(facts: [T; 2], revision: Revision) -> T {
    match revision.era() {
        Era::Modern => facts[1],
        _ => facts[0],
    }
}
