//! Rounds of calls, which the clients take turns in.

use std::time::Duration;

use peers::process::Process;
use peers::statistics::{fastest, median};
use peers::usage;
use serde::Deserialize;

/// How many rounds each client has.
pub(crate) const ROUNDS: usize = 31;

/// How many calls are under way at a time, in the one table and in the other.
pub(crate) const DEPTHS: [u64; 2] = [1, 32];

/// How long a round should take: short, so that all clients meet the same moods of the machine.
const ROUND: Duration = Duration::from_millis(40);

/// The least number of calls in a round: its beginning and its end must not count for much.
const LEAST: u64 = 512;

/// In how many calls allocations are counted.
const COUNTED: u64 = 2000;

/// What the rounds of one client came to.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The nanoseconds per call, of each round.
    rounds: Vec<f64>,
    calls: u64,
    /// The processor's time that the client took for all the calls, where the system tells.
    busy: Option<Duration>,
    /// Per call.
    pub(crate) allocations: f64,
    pub(crate) bytes: f64,
}

impl Tally {
    /// The nanoseconds per call of the median round.
    pub(crate) fn median(&self) -> f64 {
        median(&self.rounds)
    }

    /// The nanoseconds per call of the fastest round, which had the machine most to itself.
    pub(crate) fn fastest(&self) -> f64 {
        fastest(&self.rounds)
    }

    /// The nanoseconds of the processor's time per call; not a number where that is unknown.
    pub(crate) fn busy(&self) -> f64 {
        self.busy.map_or(f64::NAN, |busy| busy.as_nanos() as f64 / self.calls as f64)
    }

    /// How many times as fast this is as another one, in the median of the turns, in each of which both met the same
    /// conditions.
    pub(crate) fn speed(&self, other: &Self) -> f64 {
        let turns: Vec<f64> = self.rounds.iter().zip(&other.rounds).map(|(time, other)| other / time).collect();
        median(&turns)
    }
}

/// What a client says about a round.
#[derive(Debug, Deserialize)]
struct Round {
    nanoseconds: u64,
    allocations: u64,
    bytes: u64,
}

/// Has all clients take turns.
pub(crate) fn take_turns(clients: &mut [Process], depth: u64) -> Result<Vec<Tally>, String> {
    let lengths = clients.iter_mut().map(|client| length_of_round(client, depth)).collect::<Result<Vec<_>, _>>()?;
    let mut tallies: Vec<Tally> = clients.iter().map(|_| Tally::default()).collect();
    let before: Vec<Option<Duration>> = clients.iter().map(|client| usage::processor_time(client.id())).collect();
    for turn in 0..ROUNDS {
        for offset in 0..clients.len() {
            // Each comes after another one in every round.
            let index = (turn + offset) % clients.len();
            let (tally, calls) = (&mut tallies[index], lengths[index]);
            let round = round(&mut clients[index], calls, depth, "time")?;
            tally.rounds.push(round.nanoseconds as f64 / calls as f64);
            tally.calls += calls;
        }
    }
    for ((tally, client), before) in tallies.iter_mut().zip(clients).zip(before) {
        tally.busy = usage::processor_time(client.id()).zip(before).map(|(after, before)| after.saturating_sub(before));
        let counted = round(client, COUNTED, depth, "count")?;
        tally.allocations = counted.allocations as f64 / COUNTED as f64;
        tally.bytes = counted.bytes as f64 / COUNTED as f64;
    }
    Ok(tallies)
}

/// Finds how many calls make a round, which also warms up.
fn length_of_round(client: &mut Process, depth: u64) -> Result<u64, String> {
    let mut calls = LEAST;
    loop {
        let elapsed = Duration::from_nanos(round(client, calls, depth, "time")?.nanoseconds);
        if elapsed * 2 > ROUND {
            let calls = calls as f64 * ROUND.as_secs_f64() / elapsed.as_secs_f64();
            return Ok((calls as u64).max(LEAST));
        }
        calls *= 2;
    }
}

fn round(client: &mut Process, calls: u64, depth: u64, how: &str) -> Result<Round, String> {
    let line = client.ask(&format!("{calls} {depth} {how}"))?;
    serde_json::from_str(&line).map_err(|error| format!("a client says `{}`: {error}", line.trim()))
}
