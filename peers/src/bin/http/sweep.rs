//! What it takes to look for sessions whose time is over.

use std::hint::black_box;
use std::time::Duration;

use mcp_session::{SessionManager, SessionOptions};
use peers::statistics::median;
use tokio::time::Instant;

use crate::process::now;

/// How many sessions there are, with few and with many.
pub(crate) const LIVE: [usize; 2] = [10_000, 100_000];

/// How many end at a time.
pub(crate) const ENDING: usize = 100;

/// How often each is measured.
const TIMES: usize = 301;

/// How long sessions may be idle.
const IDLE: Duration = Duration::from_secs(3600);

/// The nanoseconds of a sweep, in the median.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    /// Of one that ends nothing.
    pub(crate) nothing: f64,
    /// Of one that ends [`ENDING`] sessions.
    pub(crate) some: f64,
}

/// Measures with each number of sessions, in turns.
pub(crate) fn costs() -> Result<[Cost; 2], String> {
    let mut crowds = [Crowd::of(LIVE[0])?, Crowd::of(LIVE[1])?];
    let mut times = [const { (Vec::new(), Vec::new()) }; 2];
    for _ in 0..TIMES {
        for (crowd, (nothing, some)) in crowds.iter_mut().zip(&mut times) {
            nothing.push(crowd.end_nothing()?);
            some.push(crowd.end_some()?);
        }
    }
    Ok(times.map(|(nothing, some)| Cost { nothing: median(&nothing), some: median(&some) }))
}

/// Sessions that are all idle.
struct Crowd {
    sessions: SessionManager<u64>,
    /// Moments at each of which [`ENDING`] more had become idle.
    moments: std::collections::VecDeque<Instant>,
}

impl Crowd {
    fn of(live: usize) -> Result<Self, String> {
        let options = SessionOptions::default().idle_timeout(Some(IDLE)).idle_limit(usize::MAX);
        let mut crowd = Self { sessions: SessionManager::new(options), moments: [].into() };
        for _ in 0..live / ENDING {
            crowd.add()?;
        }
        Ok(crowd)
    }

    fn add(&mut self) -> Result<(), String> {
        for value in 0..ENDING {
            drop(self.sessions.create(None, |_| value as u64).map_err(|refused| refused.to_string())?);
        }
        let moment = Instant::from_std(now());
        // Those who come next are younger.
        while Instant::from_std(now()) == moment {}
        self.moments.push_back(moment);
        Ok(())
    }

    /// Times many sweeps that end nothing, since one is too short; returns the nanoseconds of one.
    fn end_nothing(&self) -> Result<f64, String> {
        const SWEEPS: usize = 100;
        let moment = Instant::from_std(now());
        let start = now();
        let ended: usize = (0..SWEEPS).map(|_| black_box(self.sessions.sweep(black_box(moment))).len()).sum();
        let elapsed = start.elapsed();
        if ended == 0 { Ok(elapsed.as_nanos() as f64 / SWEEPS as f64) } else { Err(format!("{ended} ended")) }
    }

    /// Times a sweep that ends some sessions, which are replaced.
    fn end_some(&mut self) -> Result<f64, String> {
        let moment = self.moments.pop_front().ok_or("nobody is left")? + IDLE;
        let start = now();
        let ended = black_box(self.sessions.sweep(moment));
        let elapsed = start.elapsed();
        if ended.len() != ENDING {
            return Err(format!("{} ended and not {ENDING}", ended.len()));
        }
        drop(ended);
        self.add()?;
        Ok(elapsed.as_nanos() as f64)
    }
}
