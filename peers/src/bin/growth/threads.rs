//! Several threads that share a server.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use peers::records::{self, Unit};
use peers::statistics::median;
use peers::table::{Table, known};

use crate::contention;
use crate::service::{Service, call, session_call};
use crate::tools;

/// What each thread does again and again.
const CASES: [&str; 3] = ["modern calls", "calls in a session of each thread", "calls in the same session"];

/// How often each number of threads has its turn, and for how long.
const TURNS: usize = 9;
const TURN: Duration = Duration::from_millis(100);

/// How many calls each thread makes while locks are looked at.
const CONTENDED: usize = 20_000;

pub(crate) fn report() -> Result<String, String> {
    let title =
        "Calls per second by threads that share a server; 2 threads on 2 idle processors could do twice as many";
    let mut table = Table::new(title, &["", "1 thread", "2 threads", "factor", "contended locks, per 1000 calls"]);
    let mut places = String::new();
    for case in CASES {
        let work = [1, 2].map(|threads| Work::new(case, threads));
        let mut rounds = [Vec::new(), Vec::new()];
        for _ in 0..TURNS {
            for (work, rounds) in work.iter().zip(&mut rounds) {
                rounds.push(work.run_for(TURN));
            }
        }
        let [one, two] = rounds.map(|rounds| median(&rounds));
        for (name, value) in [("1 thread", one), ("2 threads", two)] {
            records::figure(&format!("{case}, by threads"), Unit::PerSecond, name, Some(value));
        }
        let contention = contention::of(case)?;
        let per_thousand = |waits: usize| format!("{:.1}", waits as f64 / (2 * CONTENDED) as f64 * 1000.0);
        let waits = known(contention.as_ref().map(|contention| per_thousand(contention.waits)));
        table.add(vec![case.to_owned(), format!("{one:.0}"), format!("{two:.0}"), format!("{:.2}", two / one), waits]);
        for (place, count) in contention.iter().flat_map(|contention| &contention.places) {
            places.push_str(&format!("  {case}: {count} waits in {place}\n"));
        }
    }
    Ok(format!("{table}{places}"))
}

/// Makes a number of calls by two threads, for another process of this program that traces it.
pub(crate) fn contend(case: &str) -> Result<(), String> {
    let work = Work::new(case, 2);
    thread::scope(|scope| {
        for number in 0..2 {
            let work = &work;
            scope.spawn(move || (0..CONTENDED).for_each(|_| work.once(number)));
        }
    });
    Ok(())
}

/// A server, and what each thread asks of it.
struct Work {
    service: Service,
    /// The session of each thread, if there is one.
    sessions: Vec<Option<String>>,
}

impl Work {
    fn new(case: &str, threads: usize) -> Self {
        let service = Service::new(tools::server(10));
        let shared = service.session();
        let session = |_| match CASES.iter().position(|known| *known == case) {
            Some(0) => None,
            Some(1) => Some(service.session()),
            _ => Some(shared.clone()),
        };
        Self { sessions: (0..threads).map(session).collect(), service: service.clone() }
    }

    fn once(&self, number: usize) {
        let arguments = r#"{"text":"hello"}"#;
        let request = match &self.sessions[number] {
            None => call("echo", arguments),
            // Two calls in flight in a session have two ids.
            Some(session) => session_call(session, number, "echo", arguments),
        };
        drop(self.service.body(request));
    }

    /// Returns the calls per second.
    #[expect(clippy::disallowed_methods, reason = "a bench reads the clock and sleeps")]
    fn run_for(&self, duration: Duration) -> f64 {
        let (is_over, calls) = (AtomicBool::new(false), AtomicU64::new(0));
        let start = Instant::now();
        thread::scope(|scope| {
            for number in 0..self.sessions.len() {
                let (is_over, calls) = (&is_over, &calls);
                scope.spawn(move || {
                    let mut made = 0;
                    while !is_over.load(Ordering::Relaxed) {
                        self.once(number);
                        made += 1;
                    }
                    calls.fetch_add(made, Ordering::Relaxed);
                });
            }
            thread::sleep(duration);
            is_over.store(true, Ordering::Relaxed);
        });
        calls.into_inner() as f64 / start.elapsed().as_secs_f64()
    }
}
