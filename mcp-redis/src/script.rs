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
    #[cfg(feature = "server")]
    Publish,
    #[cfg(any(feature = "auth", feature = "server"))]
    Claim,
    #[cfg(feature = "server")]
    InsertHandle,
    #[cfg(feature = "server")]
    ReplaceHandle,
    #[cfg(feature = "server")]
    TakeHandle,
    #[cfg(feature = "server")]
    ListHandles,
    #[cfg(feature = "tasks")]
    InsertTask,
    #[cfg(feature = "tasks")]
    LoadTask,
    #[cfg(feature = "tasks")]
    ReplaceTask,
    #[cfg(feature = "tasks")]
    ClaimTask,
    #[cfg(feature = "tasks")]
    RenewTask,
    #[cfg(feature = "tasks")]
    ReleaseTask,
    #[cfg(feature = "tasks")]
    ListTasks,
    #[cfg(feature = "tasks")]
    RemoveTask,
    #[cfg(feature = "tasks")]
    CountTasks,
}

/// The source of a script of tasks.
#[cfg(feature = "tasks")]
macro_rules! task_script {
    ($name:literal) => {
        concat!(include_str!("scripts/tasks/common.lua"), include_str!(concat!("scripts/tasks/", $name, ".lua")))
    };
}

impl Script {
    /// All scripts, in the order of their declaration.
    pub(crate) const ALL: &[Self] = &[
        Self::Save,
        Self::Touch,
        Self::Append,
        Self::Lose,
        Self::Forget,
        Self::Replay,
        #[cfg(feature = "server")]
        Self::Publish,
        #[cfg(any(feature = "auth", feature = "server"))]
        Self::Claim,
        #[cfg(feature = "server")]
        Self::InsertHandle,
        #[cfg(feature = "server")]
        Self::ReplaceHandle,
        #[cfg(feature = "server")]
        Self::TakeHandle,
        #[cfg(feature = "server")]
        Self::ListHandles,
        #[cfg(feature = "tasks")]
        Self::InsertTask,
        #[cfg(feature = "tasks")]
        Self::LoadTask,
        #[cfg(feature = "tasks")]
        Self::ReplaceTask,
        #[cfg(feature = "tasks")]
        Self::ClaimTask,
        #[cfg(feature = "tasks")]
        Self::RenewTask,
        #[cfg(feature = "tasks")]
        Self::ReleaseTask,
        #[cfg(feature = "tasks")]
        Self::ListTasks,
        #[cfg(feature = "tasks")]
        Self::RemoveTask,
        #[cfg(feature = "tasks")]
        Self::CountTasks,
    ];

    pub(crate) const fn source(self) -> &'static str {
        match self {
            Self::Save => include_str!("scripts/save.lua"),
            Self::Touch => include_str!("scripts/touch.lua"),
            Self::Append => concat!(include_str!("scripts/stream.lua"), include_str!("scripts/append.lua")),
            Self::Lose => concat!(include_str!("scripts/stream.lua"), include_str!("scripts/lose.lua")),
            Self::Forget => include_str!("scripts/forget.lua"),
            Self::Replay => include_str!("scripts/replay.lua"),
            #[cfg(feature = "server")]
            Self::Publish => include_str!("scripts/publish.lua"),
            #[cfg(any(feature = "auth", feature = "server"))]
            Self::Claim => concat!(include_str!("scripts/extend.lua"), include_str!("scripts/claim.lua")),
            #[cfg(feature = "server")]
            Self::InsertHandle => {
                concat!(include_str!("scripts/extend.lua"), include_str!("scripts/insert_handle.lua"))
            }
            #[cfg(feature = "server")]
            Self::ReplaceHandle => {
                concat!(include_str!("scripts/extend.lua"), include_str!("scripts/replace_handle.lua"))
            }
            #[cfg(feature = "server")]
            Self::TakeHandle => include_str!("scripts/take_handle.lua"),
            #[cfg(feature = "server")]
            Self::ListHandles => include_str!("scripts/list_handles.lua"),
            #[cfg(feature = "tasks")]
            Self::InsertTask => task_script!("insert"),
            #[cfg(feature = "tasks")]
            Self::LoadTask => task_script!("load"),
            #[cfg(feature = "tasks")]
            Self::ReplaceTask => task_script!("replace"),
            #[cfg(feature = "tasks")]
            Self::ClaimTask => task_script!("claim"),
            #[cfg(feature = "tasks")]
            Self::RenewTask => task_script!("renew"),
            #[cfg(feature = "tasks")]
            Self::ReleaseTask => task_script!("release"),
            #[cfg(feature = "tasks")]
            Self::ListTasks => task_script!("list"),
            #[cfg(feature = "tasks")]
            Self::RemoveTask => task_script!("remove"),
            #[cfg(feature = "tasks")]
            Self::CountTasks => task_script!("usage"),
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
