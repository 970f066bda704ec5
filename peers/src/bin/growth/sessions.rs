//! Many sessions.

use crate::dimension::Dimension;
use crate::service::{Service, session_call};
use crate::tools;

const SIZES: [usize; 3] = [1000, 10_000, 100_000];

pub(crate) fn dimensions() -> Vec<Dimension> {
    let calls = Dimension::new(
        "a call in one of many sessions, each time in another one",
        "sessions",
        "the table is looked up by id; what is above 1 in time is due to caches",
    );
    let creation = Dimension::new(
        "a session created among many, and ended",
        "sessions",
        "the table is looked up by id; what is above 1 in time is due to caches",
    );
    vec![SIZES.into_iter().fold(calls, call), SIZES.into_iter().fold(creation, create)]
}

fn call(dimension: Dimension, size: usize) -> Dimension {
    dimension.at(size, 1, 500, move || {
        let (service, sessions) = sessions(size);
        let mut next = 0;
        move || {
            // A stride that visits all of them, far apart.
            next = (next + 7919) % size;
            drop(service.body(session_call(&sessions[next], "echo", r#"{"text":"hello"}"#)));
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
