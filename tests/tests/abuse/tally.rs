//! How often an abuse is repeated.
//!
//! `cargo test` repeats each abuse a few times. With `MCP_ABUSE_REQUESTS=100000` each is repeated at least that often, and
//! fails if it does not get there in time. An abuse in [`SLOW`] is repeated less often, and says so.
#![allow(unreachable_pub, reason = "shared by test targets, none of which has a public interface")]

use std::fmt::Display;
use std::time::{Duration, Instant};

/// The abuses that are repeated less often than requested: how often at most, and why.
const SLOW: &[(&str, usize, &str)] = &[
    // A server over HTTP.
    ("10,000 addresses", 20_000, "each request names 10,000 addresses"),
    ("answers that nobody reads", 500, "each response has 20 MB"),
    ("answers that are dropped", 30_000, "each round of 300 requests waits six times for the grace of its calls"),
    ("as long as may be", 2000, "each request has 4 MB, and so has its response"),
    ("calls that are left", 4000, "each round of 84 requests waits 1 s for the grace of its calls"),
    ("events that are not read", 20, "each stream waits 5 s for the stall timeout"),
    ("events that nobody reads", 5000, "each response has 20 MB of events"),
    ("in the middle of an answer", 5000, "each response has 8 MB"),
    ("large answers that nobody reads", 20_000, "each response has 4 MB"),
    ("large headers", 30_000, "each round of 3 requests encodes 10,000 headers"),
    ("last bytes that are not read", 20, "each stream waits 5 s for the stall timeout"),
    ("more than the limit", 20_000, "each request has 4 MB"),
    ("progress that nobody reads", 10_000, "each round of 7 requests has a response of 15 MB that is read"),
    ("questions without end", 20_000, "each round of 62 requests waits for the grace of its calls"),
    ("refusals of those who send first", 1000, "each request has 24 MB"),
    ("tiny chunks", 5000, "each request has 30,000 chunks"),
    ("windows of one byte", 15_000, "each round of 3,000 streams waits 10 s for the stall timeout"),
    ("windows that never open", 15_000, "each round of 1,500 streams waits 5 s for the stall timeout"),
    // A server over standard streams.
    ("a whole message and the end", 5000, "each connection is a process"),
    ("blank lines", 1000, "each line has 16 MB"),
    ("half a message and the end", 1000, "each connection is a process, which has to wait for a call of 50 ms"),
    ("large results that nobody reads", 10_000, "each result has 1 MB"),
    ("lines at the limit", 100, "each line has 16 MB, and so has its response"),
    ("lines beyond the limit", 300, "each line has 16 MB or more"),
    ("lines of a gigabyte", 30, "each line has 1 GB"),
    ("listeners of a megabyte", 10_000, "each request has 1 MB"),
    ("nothing and the end", 1000, "each connection is a process, and gets 16 MB"),
    ("questions that nobody reads", 40, "each round of 2 requests waits 1.5 s for the time of a question"),
    ("requests of HTTP on standard input", 5000, "each connection is a process"),
    // A client.
    ("giant results", 2000, "each result has 4 MB"),
    ("long lines", 1000, "each line has 20 MB"),
    ("pages with long cursors", 20_000, "each cursor has 500 KB"),
    ("pages with many items", 2000, "each page has 150,000 items"),
];

/// The time limit of an abuse: this, and some more for each repetition.
const TIME: Duration = Duration::from_secs(600);
const TIME_EACH: Duration = Duration::from_millis(20);

/// What `MCP_ABUSE_REQUESTS` says, if it is set.
pub fn requested() -> Option<usize> {
    let text = std::env::var("MCP_ABUSE_REQUESTS").ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("MCP_ABUSE_REQUESTS must be a number, not {text:?}")))
}

/// What a round of an abuse repeats, and how often.
#[derive(Clone, Copy, Debug)]
pub struct Repeated {
    count: usize,
    unit: &'static str,
}

pub fn repeated(count: usize, unit: &'static str) -> Repeated {
    Repeated { count, unit }
}

/// Counts the repetitions of an abuse.
pub struct Tally {
    name: String,
    rounds_left: usize,
    wanted: usize,
    slow: Option<&'static str>,
    since: Instant,
    limit: Duration,
    done: usize,
    unit: &'static str,
}

impl Tally {
    /// Begins to count: there are so many rounds at least, and as many repetitions as requested. What comes behind a comma
    /// in the name is a variant of the abuse.
    #[expect(clippy::disallowed_methods, reason = "the limit is one of real time, also where the clock is paused")]
    pub fn start(name: &str, rounds: usize) -> Self {
        let requested = requested().unwrap_or(0);
        let abuse = name.split_once(", ").map_or(name, |(abuse, _)| abuse);
        let slow = SLOW.iter().find(|(slow, most, _)| *slow == abuse && *most < requested);
        let wanted = slow.map_or(requested, |(_, most, _)| *most);
        Self {
            name: name.to_owned(),
            rounds_left: rounds,
            wanted,
            slow: slow.map(|(_, _, why)| *why),
            since: Instant::now(),
            limit: TIME + TIME_EACH * u32::try_from(wanted).expect("no more than 2^32"),
            done: 0,
            unit: "",
        }
    }

    /// Whether there is more to do.
    ///
    /// # Panics
    ///
    /// Panics if there is, and no time is left for it.
    pub fn goes_on(&self) -> bool {
        let is_done = self.rounds_left == 0 && self.done >= self.wanted;
        let Self { name, wanted, limit, done, unit, .. } = self;
        assert!(is_done || self.since.elapsed() < *limit, "{name}: only {done} of {wanted} {unit} in {limit:?}");
        !is_done
    }

    /// Counts a round.
    pub fn add(&mut self, round: Repeated) {
        assert!(round.count > 0, "{}: a round without repetitions", self.name);
        self.rounds_left = self.rounds_left.saturating_sub(1);
        self.done += round.count;
        self.unit = round.unit;
    }

    /// Prints what was done, and what memory there was.
    #[expect(clippy::print_stderr, reason = "the figures of a run by hand")]
    pub fn print(&self, memory: impl Display) {
        let Self { name, done, unit, .. } = self;
        let elapsed = self.since.elapsed();
        let slow = self.slow.map(|why| format!("; fewer than requested: {why}")).unwrap_or_default();
        eprintln!("abuse: {name}: {done} {unit} in {elapsed:.1?}; {memory}{slow}");
    }
}
