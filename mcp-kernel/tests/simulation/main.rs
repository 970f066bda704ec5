//! Both machines under random interleavings, checked against bookkeeping of what was asked and answered.
//!
//! `SEED=7` replays one run; `SIMULATION_RUNS=10000` makes more of them than the default.

mod actions;
mod link;
mod model;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use world::World;

const DEFAULT_RUNS: u64 = 1000;

/// A sequence of numbers that follows from its seed (SplitMix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("it is below a `usize`")
    }

    /// True `percent` times out of a hundred.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    pub(crate) fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }
}

/// What happened in a run, kept only when a run is repeated to be read.
#[derive(Clone, Default)]
pub(crate) struct Trace(Option<Arc<Mutex<Vec<String>>>>);

impl Trace {
    pub(crate) fn note(&self, text: impl FnOnce() -> String) {
        if let Some(lines) = &self.0 {
            lines.lock().unwrap_or_else(PoisonError::into_inner).push(text());
        }
    }
}

fn run(seed: u64, trace: Trace) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| World::new(seed, trace).run())).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
    })
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

// covers: RB-72
#[test]
fn nothing_breaks_whatever_the_order() {
    let seeds = match number("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SIMULATION_RUNS").unwrap_or(DEFAULT_RUNS),
    };
    for seed in seeds {
        if let Err(fault) = run(seed, Trace::default()) {
            let lines = Arc::default();
            let again = run(seed, Trace(Some(Arc::clone(&lines))));
            let lines = lines.lock().unwrap_or_else(PoisonError::into_inner).join("\n");
            let same = again == Err(fault.clone());
            panic!("SEED={seed} (repeatable: {same})\n{lines}\n{fault}");
        }
    }
}
