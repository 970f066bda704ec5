//! A subscriber that records spans and events.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Once;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_core::span::Current;

/// The fields of a span or an event, as text. A span also has its name, as `span`, and an event its `level`.
pub type TraceFields = BTreeMap<&'static str, String>;

/// Records the spans and events with the target `mcp` of the current thread, until [`finish`](Self::finish).
///
/// The subscriber is the global one of the process, as `tracing` remembers which spans are enabled for all threads. A test that
/// awaits needs a runtime with one thread.
///
/// # Panics
///
/// Starting panics if the process has another global subscriber.
///
/// # Examples
///
/// ```
/// use mcp_testkit::TraceRecorder;
///
/// let traces = TraceRecorder::record(|| {
///     let span = tracing::info_span!(target: "mcp", "request", method = "ping");
///     span.in_scope(|| tracing::info!(target: "mcp", "handled"));
/// });
/// assert_eq!(traces.spans[0]["method"], "ping");
/// assert_eq!((traces.events[0].0, &*traces.events[0].1["message"]), (Some(1), "handled"));
/// ```
#[derive(Debug)]
#[must_use = "dropping it does not stop recording"]
pub struct TraceRecorder(PhantomData<*const ()>);

/// What was recorded.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Traces {
    /// The spans, in the order in which they were created. The number of the first is 1.
    pub spans: Vec<TraceFields>,
    /// The events, with the number of the span that each happened in.
    pub events: Vec<(Option<u64>, TraceFields)>,
    entered: Vec<u64>,
    metadata: Vec<&'static Metadata<'static>>,
}

thread_local! {
    static RECORDED: RefCell<Option<Traces>> = const { RefCell::new(None) };
}

impl TraceRecorder {
    /// Starts to record.
    #[expect(clippy::expect_used, reason = "a test must not use another subscriber")]
    pub fn start() -> Self {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| tracing::subscriber::set_global_default(ThreadSubscriber).expect("no other subscriber"));
        RECORDED.set(Some(Traces::default()));
        Self(PhantomData)
    }

    /// Returns what was recorded.
    ///
    /// # Panics
    ///
    /// Panics if a span was entered and not exited.
    #[must_use]
    pub fn finish(self) -> Traces {
        let traces = RECORDED.take().unwrap_or_default();
        assert!(traces.entered.is_empty(), "a span was not exited");
        traces
    }

    /// Records while a function runs.
    pub fn record(run: impl FnOnce()) -> Traces {
        let recorder = Self::start();
        run();
        recorder.finish()
    }
}

/// Passes everything on to the recording of the current thread.
struct ThreadSubscriber;

fn with_recorded<R: Default>(record: impl FnOnce(&mut Traces) -> R) -> R {
    RECORDED.with_borrow_mut(|recorded| recorded.as_mut().map(record).unwrap_or_default())
}

impl Traces {
    fn index(span: &Id) -> usize {
        usize::try_from(span.into_u64() - 1).unwrap_or(usize::MAX)
    }
}

struct FieldReader<'a>(&'a mut TraceFields);

impl Visit for FieldReader<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl Subscriber for ThreadSubscriber {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "mcp" && RECORDED.with_borrow(Option::is_some)
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut fields = TraceFields::from([("span", attributes.metadata().name().to_owned())]);
        attributes.record(&mut FieldReader(&mut fields));
        let number = with_recorded(|recorded| {
            recorded.spans.push(fields);
            recorded.metadata.push(attributes.metadata());
            recorded.spans.len() as u64
        });
        Id::from_u64(number.max(1))
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        with_recorded(|recorded| {
            if let Some(fields) = recorded.spans.get_mut(Traces::index(span)) {
                values.record(&mut FieldReader(fields));
            }
        });
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = TraceFields::from([("level", event.metadata().level().to_string())]);
        event.record(&mut FieldReader(&mut fields));
        let parent = event.parent().map(Id::into_u64);
        with_recorded(|recorded| {
            recorded.events.push((parent.or_else(|| recorded.entered.last().copied()), fields));
        });
    }

    fn enter(&self, span: &Id) {
        with_recorded(|recorded| recorded.entered.push(span.into_u64()));
    }

    fn exit(&self, _: &Id) {
        with_recorded(|recorded| recorded.entered.pop());
    }

    fn current_span(&self) -> Current {
        let current = with_recorded(|recorded| {
            let id = Id::from_u64(*recorded.entered.last()?);
            let metadata = *recorded.metadata.get(Traces::index(&id))?;
            Some(Current::new(id, metadata))
        });
        current.unwrap_or_else(Current::none)
    }
}
