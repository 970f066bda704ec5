//! Scripts that Redis executes atomically.

use std::sync::Arc;

use redis::Cmd;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Script {
    Save,
    Touch,
    Append,
    Lose,
    Forget,
    Replay,
}

impl Script {
    pub(crate) const ALL: [Self; 6] = [Self::Save, Self::Touch, Self::Append, Self::Lose, Self::Forget, Self::Replay];

    pub(crate) const fn source(self) -> &'static str {
        match self {
            Self::Save => include_str!("scripts/save.lua"),
            Self::Touch => include_str!("scripts/touch.lua"),
            Self::Append => concat!(include_str!("scripts/stream.lua"), include_str!("scripts/append.lua")),
            Self::Lose => concat!(include_str!("scripts/stream.lua"), include_str!("scripts/lose.lua")),
            Self::Forget => include_str!("scripts/forget.lua"),
            Self::Replay => include_str!("scripts/replay.lua"),
        }
    }
}

/// How scripts are called on a connection.
#[derive(Clone, Debug)]
pub(crate) enum Scripts {
    /// By their hashes, in the order of [`Script::ALL`].
    Loaded(Arc<[String]>),
    /// By their source.
    Source,
}

impl Scripts {
    /// Returns a call without its arguments, the keys first.
    pub(crate) fn call(&self, script: Script, keys: usize) -> Cmd {
        let name = match self {
            Self::Loaded(names) => names.get(script as usize),
            Self::Source => None,
        };
        let mut command = match name {
            Some(name) => redis::cmd("EVALSHA").arg(name).to_owned(),
            None => redis::cmd("EVAL").arg(script.source()).to_owned(),
        };
        command.arg(keys);
        command
    }
}
