//! The keys of tasks in Redis.

/// The keys of the tasks of one prefix: the documentation of the crate lists them.
#[derive(Clone, Debug)]
pub(crate) struct TaskKeys {
    /// The beginning of all keys.
    pub(crate) base: String,
}

impl TaskKeys {
    pub(crate) fn new(prefix: &str) -> Self {
        Self { base: format!("{prefix}:") }
    }

    /// The keys that each script gets.
    pub(crate) fn common(&self) -> [String; 4] {
        ["queue", "expiry", "index", "counts"].map(|name| format!("{}tasks:{name}", self.base))
    }

    pub(crate) fn changes(&self) -> String {
        format!("{}tasks:changes", self.base)
    }
}
