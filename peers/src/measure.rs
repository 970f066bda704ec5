//! Contestants, timed in turns.
//!
//! On a shared machine the speed changes from one moment to the next. So the contestants take
//! turns in short rounds and meet the same conditions, and the median round speaks for each.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::allocations::{self, Allocations};

/// How many rounds each contestant has.
pub const ROUNDS: usize = 101;

/// How long a round should take; an operation that takes longer is a round of its own.
const ROUND: Duration = Duration::from_millis(1);

/// What one operation costs, including the time to drop what it returns.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Cost {
    /// The time of the median round, per operation.
    pub nanoseconds: f64,
    /// What one operation allocates.
    pub allocations: Allocations,
}

/// The costs of the same work, done in two ways.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Comparison {
    /// Done by this workspace.
    pub ours: Cost,
    /// Done by the peer.
    pub theirs: Cost,
}

impl Comparison {
    /// How long ours takes for what theirs does in a unit of time.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.ours.nanoseconds / self.theirs.nanoseconds
    }
}

/// Measures two operations in turns.
pub fn compare<A, B>(mut ours: impl FnMut() -> A, mut theirs: impl FnMut() -> B) -> Comparison {
    let our_length = length_of_round(&mut ours);
    let their_length = length_of_round(&mut theirs);
    let mut our_rounds = Vec::with_capacity(ROUNDS);
    let mut their_rounds = Vec::with_capacity(ROUNDS);
    for round in 0..ROUNDS {
        // Whoever comes second finds the caches as the other left them, so that changes, too.
        if round % 2 == 0 {
            our_rounds.push(time(&mut ours, our_length));
            their_rounds.push(time(&mut theirs, their_length));
        } else {
            their_rounds.push(time(&mut theirs, their_length));
            our_rounds.push(time(&mut ours, our_length));
        }
    }
    Comparison {
        ours: Cost { nanoseconds: median(our_rounds), allocations: allocations::count(ours) },
        theirs: Cost { nanoseconds: median(their_rounds), allocations: allocations::count(theirs) },
    }
}

/// Measures any number of operations in turns.
pub fn each(operations: &mut [Box<dyn FnMut()>]) -> Vec<Cost> {
    let lengths: Vec<u32> = operations.iter_mut().map(length_of_round).collect();
    let mut rounds = vec![Vec::with_capacity(ROUNDS); operations.len()];
    for round in 0..ROUNDS {
        for turn in 0..operations.len() {
            // Each comes after another one in every round, as above.
            let index = (turn + round) % operations.len();
            rounds[index].push(time(&mut operations[index], lengths[index]));
        }
    }
    let costs = operations.iter_mut().zip(rounds);
    costs
        .map(|(operation, rounds)| Cost { nanoseconds: median(rounds), allocations: allocations::count(operation) })
        .collect()
}

/// Finds how many operations make a round, which also warms up.
fn length_of_round<T>(operation: &mut impl FnMut() -> T) -> u32 {
    let mut length = 1;
    loop {
        let nanoseconds = time(operation, length) * f64::from(length);
        if nanoseconds * 2.0 > ROUND.as_nanos() as f64 {
            return length;
        }
        length *= 2;
    }
}

/// Returns the nanoseconds per operation of one round.
#[expect(clippy::disallowed_methods, reason = "a bench reads the clock")]
fn time<T>(operation: &mut impl FnMut() -> T, length: u32) -> f64 {
    let start = Instant::now();
    for _ in 0..length {
        drop(black_box(operation()));
    }
    start.elapsed().as_nanos() as f64 / f64::from(length)
}

fn median(mut rounds: Vec<f64>) -> f64 {
    rounds.sort_unstable_by(f64::total_cmp);
    rounds[rounds.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_ignores_outliers() {
        assert_eq!(median(vec![5.0, 1.0, 900.0]), 5.0);
    }

    #[test]
    fn a_ratio_below_one_means_that_ours_is_faster() {
        let allocations = allocations::count(|| ());
        let cost = |nanoseconds| Cost { nanoseconds, allocations };
        assert_eq!(Comparison { ours: cost(1.0), theirs: cost(2.0) }.ratio(), 0.5);
    }
}
