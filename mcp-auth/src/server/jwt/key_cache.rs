//! The keys of an issuer, loaded when they are needed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::algorithm::TokenAlgorithm;
use super::key_set::KeySet;
use super::key_source::KeySource;

/// The keys of an issuer.
///
/// They are loaded in a task of their own: a client that disconnects does not interrupt it, and cannot make the next one start
/// early. Everyone who needs a key waits for the same load.
pub(crate) struct KeyCache {
    shared: Arc<Shared>,
    pub(crate) intervals: Intervals,
}

/// When keys are loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Intervals {
    /// The age from which keys are loaded again. The old ones are used meanwhile.
    pub(crate) refresh: Duration,
    /// The time between two loads, whatever is needed: tokens with made-up keys must not become requests to the issuer.
    pub(crate) retry: Duration,
    /// The age from which keys are not used any more.
    pub(crate) max_age: Duration,
    /// How long a load may take.
    pub(crate) timeout: Duration,
}

impl Default for Intervals {
    fn default() -> Self {
        Self {
            refresh: Duration::from_secs(3600),
            retry: Duration::from_secs(30),
            max_age: Duration::from_secs(24 * 3600),
            timeout: Duration::from_secs(10),
        }
    }
}

struct Shared {
    source: Box<dyn KeySource>,
    state: Mutex<State>,
    /// Changes when a load ends.
    loads: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    /// The keys, and when they were loaded.
    keys: Option<(Arc<KeySet>, Instant)>,
    last_load: Option<Instant>,
    is_loading: bool,
}

/// Why there is no key for a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoKey {
    /// The issuer has no such key.
    Unknown,
    /// The keys of the issuer are not known.
    Unavailable,
}

impl KeyCache {
    pub(crate) fn new(source: impl KeySource + 'static) -> Self {
        let (loads, _) = watch::channel(());
        let shared = Shared { source: Box::new(source), state: Mutex::default(), loads };
        Self { shared: Arc::new(shared), intervals: Intervals::default() }
    }

    /// Returns keys among which there is one for a token, after loading them if necessary.
    pub(crate) async fn with_key(&self, id: Option<&str>, algorithm: TokenAlgorithm) -> Result<Arc<KeySet>, NoKey> {
        let is_known = |keys: &KeySet| keys.find(id, algorithm).is_some();
        let mut loaded = match self.look_up(is_known, true) {
            Ok(found) => return found,
            Err(loaded) => loaded,
        };
        // The sender lives as long as this.
        let _ = loaded.changed().await;
        self.look_up(is_known, false).unwrap_or(Err(NoKey::Unavailable))
    }

    /// Returns the keys, or what tells that a load has ended if that can help.
    fn look_up(
        &self,
        is_known: impl Fn(&KeySet) -> bool,
        may_wait: bool,
    ) -> Result<Result<Arc<KeySet>, NoKey>, watch::Receiver<()>> {
        let now = Instant::now();
        let mut state = self.shared.lock();
        let age = |loaded: Instant| now.duration_since(loaded);
        let keys = state.keys.as_ref().filter(|(_, loaded)| age(*loaded) < self.intervals.max_age);
        let is_fresh = keys.is_some_and(|(_, loaded)| age(*loaded) < self.intervals.refresh);
        let keys = keys.map(|(keys, _)| Arc::clone(keys));
        let is_found = keys.as_deref().is_some_and(&is_known);
        let is_needed = !is_fresh || !is_found;
        let is_early = state.last_load.is_some_and(|last| age(last) < self.intervals.retry);
        let starts = may_wait && is_needed && !is_early && !state.is_loading;
        if starts {
            (state.is_loading, state.last_load) = (true, Some(now));
        }
        // Subscribed under the lock, so that the end of the load is not missed.
        let loaded = (may_wait && state.is_loading).then(|| self.shared.loads.subscribe());
        drop(state);
        if starts {
            // Without the lock: a runtime that shuts down drops the task at once, which takes it.
            self.start_load();
        }
        match (keys, loaded) {
            (Some(keys), _) if is_found => Ok(Ok(keys)),
            (_, Some(loaded)) => Err(loaded),
            (Some(_), None) => Ok(Err(NoKey::Unknown)),
            (None, None) => Ok(Err(NoKey::Unavailable)),
        }
    }

    /// Loads the keys in a task.
    fn start_load(&self) {
        // Dropped if there is no runtime, which ends the load.
        let load = Load(Arc::clone(&self.shared));
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return tracing::error!(target: "mcp", "the keys of an issuer can only be loaded in a tokio runtime");
        };
        let limit = self.intervals.timeout;
        runtime.spawn(async move {
            let text = match timeout(limit, load.0.source.load()).await {
                Ok(Ok(text)) => text,
                Ok(Err(error)) => return tracing::warn!(target: "mcp", %error, "old keys stay in use for some time"),
                Err(_) => return tracing::warn!(target: "mcp", "loading the keys of an issuer took too long"),
            };
            match KeySet::parse(&text) {
                Ok(keys) if keys.len() > 0 => load.0.lock().keys = Some((Arc::new(keys), Instant::now())),
                // More likely a mistake than the end of all tokens.
                Ok(_) => tracing::warn!(target: "mcp", "the issuer has no keys that can be used"),
                Err(reason) => tracing::warn!(target: "mcp", reason, "the keys of an issuer are not valid"),
            }
        });
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A load in progress. It ends also if the source panics.
struct Load(Arc<Shared>);

impl Drop for Load {
    fn drop(&mut self) {
        self.0.lock().is_loading = false;
        self.0.loads.send_replace(());
    }
}
