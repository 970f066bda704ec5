//! What the log says. Alone in its process: what one thread does not listen to, others may not hear either.

use std::sync::{Arc, Mutex};

use mcp_session::{EndReason, SessionManager, SessionOptions};
use tokio::time::Instant;

/// Too many are a loud matter, but not for each; logs give no id away.
// covers: S4.40, S4.44
#[tokio::test(start_paused = true)]
async fn logs_are_loud_once() {
    let log = Log::default();
    let lines = Arc::clone(&log.0);
    let _guard = tracing::subscriber::set_default(log);
    let manager = SessionManager::new(SessionOptions::default().idle_limit(2));
    let mut ids: Vec<_> = (0..10).map(|_| manager.create(None, |_| ()).unwrap().lease.id()).collect();
    assert_eq!(manager.sweep(Instant::now()).len(), 1);
    ids.extend((0..3).map(|_| manager.create(None, |_| ()).unwrap().lease.id()));
    let count = |level: &str| lines.lock().unwrap().iter().filter(|line| line.starts_with(level)).count();
    assert_eq!((count("ERROR"), count("WARN")), (1, 0));
    drop((manager.sweep(Instant::now()), manager.sweep(Instant::now())));
    assert_eq!((count("ERROR"), count("WARN")), (1, 1), "it is over");
    ids.extend((0..2).map(|_| manager.create(None, |_| ()).unwrap().lease.id()));
    assert_eq!(count("ERROR"), 2, "it begins again");
    let metrics = manager.metrics();
    assert_eq!(count("DEBUG") as u64, metrics.created + metrics.ended(EndReason::Evicted));
    let text = lines.lock().unwrap().join("\n");
    assert!(ids.iter().all(|id| !text.contains(&id.to_string()[..8])));
}

#[derive(Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "mcp"
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = event.metadata().level().to_string();
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            line.push_str(&format!(" {field}={value:?}"));
        });
        self.0.lock().expect("nobody panicked").push(line);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}
