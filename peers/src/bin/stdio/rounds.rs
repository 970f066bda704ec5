//! Rounds of calls, which the servers take turns in.

use std::time::Duration;

use peers::statistics::{fastest, median, percentile};
use peers::usage;

use crate::process::{Process, now};

/// How many rounds each server has.
pub(crate) const ROUNDS: usize = 31;

/// How many calls are under way in a pipelined round.
pub(crate) const DEPTH: usize = 64;

/// How long a round should take: short, so that all servers meet the same moods of the machine.
const ROUND: Duration = Duration::from_millis(25);

/// The least number of calls in a round: filling and draining the pipeline must not count for much.
const LEAST: usize = DEPTH * 8;

/// What the rounds of one server came to.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The nanoseconds per call, of each round.
    rounds: Vec<f64>,
    /// The nanoseconds of each round trip; only where one call is under way at a time.
    trips: Vec<u64>,
    calls: u64,
    /// The processor's time that the server took for all the calls, where the system tells.
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

    /// How many times as fast this is as another one, in the median of the turns, in each of which both met the same
    /// conditions.
    pub(crate) fn speed(&self, other: &Self) -> f64 {
        let turns: Vec<f64> = self.rounds.iter().zip(&other.rounds).map(|(time, other)| other / time).collect();
        median(&turns)
    }

    /// The nanoseconds that so many of a hundred round trips do not exceed.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        percentile(&self.trips, percent)
    }

    /// The nanoseconds of the processor's time per call; not a number where that is unknown.
    pub(crate) fn busy(&self) -> f64 {
        self.busy.map_or(f64::NAN, |busy| busy.as_nanos() as f64 / self.calls as f64)
    }
}

/// One kind of rounds: does so many calls, and notes the round trips if it wants to.
type Round = fn(&mut Process, usize, &mut Vec<u64>) -> Result<(), String>;

/// One call at a time.
pub(crate) fn ping_pong(processes: &mut [Process]) -> Result<Vec<Tally>, String> {
    take_turns(processes, |process, calls, trips| {
        let mut request = Vec::new();
        for _ in 0..calls {
            request.clear();
            let expected = process.write_call(&mut request);
            let start = now();
            process.send(&request)?;
            process.receive(|id| match id == expected {
                true => Ok(()),
                false => Err(format!("answered {id} when asked {expected}")),
            })?;
            trips.push(start.elapsed().as_nanos() as u64);
        }
        Ok(())
    })
}

/// Many calls under way: as soon as some are answered, as many follow.
pub(crate) fn pipelined(processes: &mut [Process]) -> Result<Vec<Tally>, String> {
    take_turns(processes, |process, calls, _| {
        let first = process.next_id();
        let mut answered = vec![false; calls];
        let (mut sent, mut received) = (0, 0);
        let mut requests = Vec::new();
        while received < calls {
            requests.clear();
            while sent < calls && sent - received < DEPTH {
                process.write_call(&mut requests);
                sent += 1;
            }
            if !requests.is_empty() {
                process.send(&requests)?;
            }
            process.receive(|id| {
                let index = id.checked_sub(first).and_then(|index| usize::try_from(index).ok());
                let Some(answered) = index.filter(|index| *index < sent).and_then(|index| answered.get_mut(index))
                else {
                    return Err(format!("answered {id}, which was not asked"));
                };
                if std::mem::replace(answered, true) {
                    return Err(format!("answered {id} twice"));
                }
                received += 1;
                Ok(())
            })?;
        }
        Ok(())
    })
}

fn take_turns(processes: &mut [Process], round: Round) -> Result<Vec<Tally>, String> {
    let lengths = processes.iter_mut().map(|process| length_of_round(process, round)).collect::<Result<Vec<_>, _>>()?;
    let mut tallies: Vec<Tally> = processes.iter().map(|_| Tally::default()).collect();
    let before: Vec<Option<Duration>> = processes.iter().map(|process| usage::processor_time(process.id())).collect();
    for turn in 0..ROUNDS {
        for offset in 0..processes.len() {
            // Each comes after another one in every round.
            let index = (turn + offset) % processes.len();
            let (tally, calls) = (&mut tallies[index], lengths[index]);
            tally.trips.reserve(calls);
            let elapsed = time(&mut processes[index], round, calls, &mut tally.trips)?;
            tally.rounds.push(elapsed.as_nanos() as f64 / calls as f64);
            tally.calls += calls as u64;
        }
    }
    for ((tally, process), before) in tallies.iter_mut().zip(processes).zip(before) {
        tally.busy =
            usage::processor_time(process.id()).zip(before).map(|(after, before)| after.saturating_sub(before));
    }
    Ok(tallies)
}

/// Finds how many calls make a round, which also warms up.
fn length_of_round(process: &mut Process, round: Round) -> Result<usize, String> {
    let mut calls = LEAST;
    loop {
        let elapsed = time(process, round, calls, &mut Vec::new())?;
        if elapsed * 2 > ROUND {
            let calls = calls as f64 * ROUND.as_secs_f64() / elapsed.as_secs_f64();
            return Ok((calls as usize).max(LEAST));
        }
        calls *= 2;
    }
}

fn time(process: &mut Process, round: Round, calls: usize, trips: &mut Vec<u64>) -> Result<Duration, String> {
    process.limited(|process| {
        let start = now();
        round(process, calls, trips)?;
        Ok(start.elapsed())
    })
}
