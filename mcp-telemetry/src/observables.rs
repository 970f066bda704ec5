//! The instruments whose values are read when metrics are collected.

use std::sync::Arc;

use mcp_kernel::observe::{Gauge, Role};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Meter};

use crate::active::Active;
use crate::names::{
    CLIENT_ACTIVE_REQUESTS, CLIENT_SESSION_COUNT, METHOD_NAME, SERVER_ACTIVE_REQUESTS, SERVER_HTTP_SESSION_COUNT,
    SERVER_HTTP_SESSION_ENDED, SERVER_HTTP_SESSION_IDLE_SIZE, SERVER_HTTP_SESSION_REFUSED, SERVER_LOST_EVENTS,
    SERVER_QUEUED_REQUESTS, SERVER_REPLAYED_EVENTS, SERVER_SESSION_COUNT, SERVER_STREAM_COUNT, SESSION_REASON,
    SESSION_STATE, STREAM_KIND,
};
use crate::sources::Sources;

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

/// Registers the instruments of what transports count.
#[expect(clippy::wildcard_enum_match_arm, reason = "each instrument selects the values that it reports")]
pub(crate) fn register_sources(meter: &Meter, sources: &Arc<Sources>) {
    let register_count = |name: &'static str, unit: &'static str, description: &'static str, select: Select| {
        let sources = Arc::clone(sources);
        let instrument = meter.i64_observable_up_down_counter(name).with_unit(unit).with_description(description);
        let read = move |instrument: &dyn AsyncInstrument<i64>| {
            observe_sources(&sources, select, |value, attributes| {
                instrument.observe(value.try_into().unwrap_or(i64::MAX), attributes);
            });
        };
        instrument.with_callback(read).build();
    };
    register_count(SERVER_HTTP_SESSION_COUNT, "{session}", "Sessions over HTTP.", |gauge| match gauge {
        Gauge::ActiveSessions => Some(Some(KeyValue::new(SESSION_STATE, "active"))),
        Gauge::IdleSessions => Some(Some(KeyValue::new(SESSION_STATE, "idle"))),
        _ => None,
    });
    register_count(SERVER_HTTP_SESSION_IDLE_SIZE, "By", "Memory of idle sessions over HTTP.", |gauge| {
        (gauge == Gauge::IdleSessionBytes).then_some(None)
    });

    let register_total = |name: &'static str, unit: &'static str, description: &'static str, select: Select| {
        let sources = Arc::clone(sources);
        let instrument = meter.u64_observable_counter(name).with_unit(unit).with_description(description);
        let read = move |instrument: &dyn AsyncInstrument<u64>| {
            observe_sources(&sources, select, |value, attributes| instrument.observe(value, attributes));
        };
        instrument.with_callback(read).build();
    };
    register_total(SERVER_HTTP_SESSION_ENDED, "{session}", "Sessions over HTTP that ended.", |gauge| match gauge {
        Gauge::SessionsEnded(reason) => Some(Some(KeyValue::new(SESSION_REASON, reason))),
        _ => None,
    });
    let description = "Refused attempts to begin or enter a session over HTTP.";
    register_total(SERVER_HTTP_SESSION_REFUSED, "{session}", description, |gauge| match gauge {
        Gauge::SessionsRefused(reason) => Some(Some(KeyValue::new(SESSION_REASON, reason))),
        _ => None,
    });
    register_total(SERVER_REPLAYED_EVENTS, "{event}", "Events that were sent again to clients.", |gauge| {
        (gauge == Gauge::EventsReplayed).then_some(None)
    });
    register_total(SERVER_LOST_EVENTS, "{event}", "Events that can no longer be replayed.", |gauge| {
        (gauge == Gauge::EventsLost).then_some(None)
    });
}

/// Returns the attribute of a value, if the instrument reports it.
type Select = fn(Gauge) -> Option<Attribute>;

fn observe_sources(sources: &Sources, select: Select, mut observe: impl FnMut(u64, &[KeyValue])) {
    for (gauge, value) in sources.read().iter() {
        if let Some(attribute) = select(gauge) {
            observe(value, attribute.as_slice());
        }
    }
}
