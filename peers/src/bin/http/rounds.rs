//! Rounds of calls, which the servers take turns in.

use std::time::Duration;

use peers::statistics::{fastest, median, percentile};
use peers::usage;

use crate::client::Client;
use crate::process::now;

/// How many rounds each server has.
pub(crate) const ROUNDS: usize = 31;

/// How long a round should take: short, so that all servers meet the same moods of the machine.
const ROUND: Duration = Duration::from_millis(40);

/// The least number of calls in a round.
const LEAST: usize = 256;

/// What the rounds of one server came to.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The nanoseconds per call, of each round.
    pub(crate) rounds: Vec<f64>,
    /// The nanoseconds of each call.
    trips: Vec<u64>,
    /// The time that all rounds took together.
    elapsed: Duration,
    /// The time of it in which the driver had nothing to do.
    idle: Duration,
    /// The processor's time that the server took, where the system tells.
    busy: Option<Duration>,
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

    /// The nanoseconds that so many of a hundred calls do not exceed.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        percentile(&self.trips, percent)
    }

    /// The nanoseconds of the processor's time per call; not a number where that is unknown.
    pub(crate) fn busy(&self) -> f64 {
        self.busy.map_or(f64::NAN, |busy| busy.as_nanos() as f64 / self.trips.len() as f64)
    }

    /// The share of the time in which the driver had nothing to do.
    pub(crate) fn idle(&self) -> f64 {
        self.idle.as_secs_f64() / self.elapsed.as_secs_f64()
    }
}

/// Has all servers take turns; each is a client and the id of the server's process.
pub(crate) fn take_turns(clients: &mut [(Client, u32)]) -> Result<Vec<Tally>, String> {
    let lengths = clients.iter_mut().map(|(client, _)| length_of_round(client)).collect::<Result<Vec<_>, _>>()?;
    let mut tallies: Vec<Tally> = clients.iter().map(|_| Tally::default()).collect();
    let before: Vec<Option<Duration>> = clients.iter().map(|(_, process)| usage::processor_time(*process)).collect();
    for (client, _) in &mut *clients {
        client.idle = Duration::ZERO;
    }
    for turn in 0..ROUNDS {
        for offset in 0..clients.len() {
            // Each comes after another one in every round.
            let index = (turn + offset) % clients.len();
            let (tally, calls) = (&mut tallies[index], lengths[index]);
            tally.trips.reserve(calls);
            let elapsed = time(&mut clients[index].0, calls, &mut tally.trips)?;
            tally.rounds.push(elapsed.as_nanos() as f64 / calls as f64);
            tally.elapsed += elapsed;
        }
    }
    for ((tally, (client, process)), before) in tallies.iter_mut().zip(clients).zip(before) {
        tally.idle = client.idle;
        tally.busy = usage::processor_time(*process).zip(before).map(|(after, before)| after.saturating_sub(before));
    }
    Ok(tallies)
}

/// Finds how many calls make a round, which also warms up.
fn length_of_round(client: &mut Client) -> Result<usize, String> {
    let mut calls = LEAST;
    loop {
        let elapsed = time(client, calls, &mut Vec::new())?;
        if elapsed * 2 > ROUND {
            let calls = calls as f64 * ROUND.as_secs_f64() / elapsed.as_secs_f64();
            return Ok((calls as usize).max(LEAST));
        }
        calls *= 2;
    }
}

fn time(client: &mut Client, calls: usize, trips: &mut Vec<u64>) -> Result<Duration, String> {
    let start = now();
    client.run(calls, trips)?;
    Ok(start.elapsed())
}
