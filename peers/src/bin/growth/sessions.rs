//! Many sessions.

use crate::dimension::Dimension;
use crate::service::{Service, session_call};
use crate::tools;

const SIZES: [usize; 3] = [1000, 10_000, 100_000];

const ARGUMENTS: &str = r#"{"text":"hello"}"#;

pub(crate) fn dimensions() -> Vec<Dimension> {
    let calls = Dimension::new(
        "a call in one of many sessions, each time in another one",
        "sessions",
        "the table is looked up by id",
    );
    let creation = Dimension::new(
        "a session created among many, and ended",
        "sessions",
        "now and then the table is rehashed, to grow or to reuse the places of sessions that ended",
    );
    vec![SIZES.into_iter().fold(calls, call), SIZES.into_iter().fold(creation, create)]
}

fn call(dimension: Dimension, size: usize) -> Dimension {
    dimension.at(size, 1, 500, move || {
        let (service, sessions) = sessions(size);
        // The first call in a session costs more than the next one.
        for session in &sessions {
            drop(service.body(session_call(session, 1, "echo", ARGUMENTS)));
        }
        let mut next = 0;
        move || {
            // A stride that visits all of them, far apart.
            next = (next + 7919) % size;
            drop(service.body(session_call(&sessions[next], 2, "echo", ARGUMENTS)));
        }
    })
}

fn create(dimension: Dimension, size: usize) -> Dimension {
    dimension.at(size, 1, 500, move || {
        let (service, _) = sessions(size);
        move || service.end(&service.session())
    })
}

fn sessions(number: usize) -> (Service, Vec<String>) {
    let service = Service::new(tools::server(10));
    let sessions = (0..number).map(|_| service.session()).collect();
    (service, sessions)
}
