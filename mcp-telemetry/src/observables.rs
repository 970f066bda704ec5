//! The instruments whose values are read when metrics are collected.

use std::cell::Cell;
use std::sync::Arc;

use mcp_kernel::observe::{Role, SourceMetric};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Meter};

use crate::active::Active;
use crate::names::{
    CLIENT_ACTIVE_REQUESTS, CLIENT_SESSION_COUNT, METHOD_NAME, SERVER_ACTIVE_REQUESTS, SERVER_DROPPED_EVENTS,
    SERVER_HTTP_SESSION_COUNT, SERVER_HTTP_SESSION_ENDED, SERVER_HTTP_SESSION_IDLE_SIZE, SERVER_HTTP_SESSION_REFUSED,
    SERVER_LOST_EVENTS, SERVER_QUEUED_REQUESTS, SERVER_REPLAYED_EVENTS, SERVER_SESSION_COUNT, SERVER_STREAM_COUNT,
    SERVER_TASK_COUNT, SERVER_TASK_CREATED, SERVER_TASK_FINISHED, SERVER_TASK_INPUT_ROUNDS, SERVER_TASK_QUEUED,
    SERVER_TASK_REFUSED, SERVER_TASK_TAKEN_OVER, SESSION_REASON, SESSION_STATE, STREAM_KIND, TASK_REASON, TASK_STATUS,
};
use crate::sources::{Sources, Values};

/// The attribute of a series, or none.
type Attribute = Option<KeyValue>;

/// Registers the instruments of what has started and not ended.
pub(crate) fn register_active(meter: &Meter, active: &Arc<Active>) {
    let register = |name: &'static str, unit: &'static str, description: &'static str, read: ReadActive| {
        let active = Arc::clone(active);
        let instrument = meter.i64_observable_up_down_counter(name).with_unit(unit).with_description(description);
        instrument.with_callback(move |instrument| read(&active, instrument)).build();
    };
    register(SERVER_ACTIVE_REQUESTS, "{request}", "Requests that the server is processing.", |active, instrument| {
        observe_requests(active, Role::Server, instrument);
    });
    register(
        CLIENT_ACTIVE_REQUESTS,
        "{request}",
        "Requests of the client without a response.",
        |active, instrument| {
            observe_requests(active, Role::Client, instrument);
        },
    );
    register(SERVER_SESSION_COUNT, "{session}", "Open sessions of the server.", |active, instrument| {
        observe_all(instrument, active.sessions(Role::Server));
    });
    register(CLIENT_SESSION_COUNT, "{session}", "Open sessions of the client.", |active, instrument| {
        observe_all(instrument, active.sessions(Role::Client));
    });
    register(SERVER_QUEUED_REQUESTS, "{request}", "Requests that wait for others to finish.", |active, instrument| {
        observe_all(instrument, active.queued.get());
    });
    register(SERVER_STREAM_COUNT, "{stream}", "Open streams of events.", |active, instrument| {
        for (kind, count) in active.streams() {
            instrument.observe(count, &[KeyValue::new(STREAM_KIND, kind)]);
        }
    });
}

/// Reports values to an instrument.
type ReadActive = fn(&Active, &dyn AsyncInstrument<i64>);

fn observe_requests(active: &Active, role: Role, instrument: &dyn AsyncInstrument<i64>) {
    for (method, count) in active.requests(role) {
        instrument.observe(count, &[KeyValue::new(METHOD_NAME, method.name())]);
    }
}

fn observe_all(instrument: &dyn AsyncInstrument<i64>, count: Option<i64>) {
    if let Some(count) = count {
        instrument.observe(count, &[]);
    }
}

/// Registers the instruments of what transports and the runtime of tasks count.
#[expect(clippy::wildcard_enum_match_arm, reason = "each instrument selects the values that it reports")]
pub(crate) fn register_sources(meter: &Meter, sources: &Arc<Sources>) {
    let number = Cell::new(0);
    let next_number = || number.replace(number.get() + 1);
    let register_count = |name: &'static str, unit: &'static str, description: &'static str, select: Select| {
        let (sources, number) = (Arc::clone(sources), next_number());
        let instrument = meter.i64_observable_up_down_counter(name).with_unit(unit).with_description(description);
        let read = move |instrument: &dyn AsyncInstrument<i64>| {
            observe_sources(&sources.collect(number), select, |value, attributes| {
                instrument.observe(value.try_into().unwrap_or(i64::MAX), attributes);
            });
        };
        instrument.with_callback(read).build();
    };
    register_count(SERVER_HTTP_SESSION_COUNT, "{session}", "Sessions over HTTP.", |metric| match metric {
        SourceMetric::ActiveSessions => Some(Some(KeyValue::new(SESSION_STATE, "active"))),
        SourceMetric::IdleSessions => Some(Some(KeyValue::new(SESSION_STATE, "idle"))),
        _ => None,
    });
    register_count(SERVER_HTTP_SESSION_IDLE_SIZE, "By", "Memory of idle sessions over HTTP.", |metric| {
        (metric == SourceMetric::IdleSessionBytes).then_some(None)
    });
    register_count(SERVER_TASK_COUNT, "{task}", "Tasks whose handlers are in this process.", |metric| match metric {
        SourceMetric::WorkingTasks => Some(Some(KeyValue::new(TASK_STATUS, "working"))),
        SourceMetric::WaitingTasks => Some(Some(KeyValue::new(TASK_STATUS, "input_required"))),
        _ => None,
    });
    register_count(SERVER_TASK_QUEUED, "{task}", "Tasks in the queue of the store.", |metric| {
        (metric == SourceMetric::QueuedTasks).then_some(None)
    });

    let register_total = |name: &'static str, unit: &'static str, description: &'static str, select: Select| {
        let (sources, number) = (Arc::clone(sources), next_number());
        let instrument = meter.u64_observable_counter(name).with_unit(unit).with_description(description);
        let read = move |instrument: &dyn AsyncInstrument<u64>| {
            observe_sources(&sources.collect(number), select, |value, attributes| {
                instrument.observe(value, attributes);
            });
        };
        instrument.with_callback(read).build();
    };
    register_total(SERVER_HTTP_SESSION_ENDED, "{session}", "Sessions over HTTP that ended.", |metric| match metric {
        SourceMetric::SessionsEnded(reason) => Some(Some(KeyValue::new(SESSION_REASON, reason))),
        _ => None,
    });
    let description = "Refused attempts to begin or enter a session over HTTP.";
    register_total(SERVER_HTTP_SESSION_REFUSED, "{session}", description, |metric| match metric {
        SourceMetric::SessionsRefused(reason) => Some(Some(KeyValue::new(SESSION_REASON, reason))),
        _ => None,
    });
    register_total(SERVER_REPLAYED_EVENTS, "{event}", "Events that were sent again to clients.", |metric| {
        (metric == SourceMetric::EventsReplayed).then_some(None)
    });
    register_total(SERVER_LOST_EVENTS, "{event}", "Messages of sessions without a stream to send them on.", |metric| {
        (metric == SourceMetric::EventsLost).then_some(None)
    });
    let description = "Stored events that were dropped because of a limit, and cannot be replayed.";
    register_total(SERVER_DROPPED_EVENTS, "{event}", description, |metric| {
        (metric == SourceMetric::EventsDropped).then_some(None)
    });
    register_total(SERVER_TASK_CREATED, "{task}", "Tasks that were created.", |metric| {
        (metric == SourceMetric::TasksCreated).then_some(None)
    });
    register_total(SERVER_TASK_FINISHED, "{task}", "Tasks that finished.", |metric| match metric {
        SourceMetric::TasksFinished(status) => Some(Some(KeyValue::new(TASK_STATUS, status))),
        _ => None,
    });
    register_total(SERVER_TASK_REFUSED, "{task}", "Calls that could not become tasks.", |metric| match metric {
        SourceMetric::TasksRefused(reason) => Some(Some(KeyValue::new(TASK_REASON, reason))),
        _ => None,
    });
    register_total(SERVER_TASK_INPUT_ROUNDS, "{round}", "Times that tasks began to wait for input.", |metric| {
        (metric == SourceMetric::TaskInputRounds).then_some(None)
    });
    register_total(SERVER_TASK_TAKEN_OVER, "{task}", "Tasks that were run again as a lease had expired.", |metric| {
        (metric == SourceMetric::TasksTakenOver).then_some(None)
    });
}

/// Returns the attribute of a value, if the instrument reports it.
type Select = fn(SourceMetric) -> Option<Attribute>;

fn observe_sources(values: &Values, select: Select, mut observe: impl FnMut(u64, &[KeyValue])) {
    for (metric, value) in values.iter() {
        if let Some(attribute) = select(metric) {
            observe(value, attribute.as_slice());
        }
    }
}
