//! Sources of current values, which transports provide.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use mcp_kernel::observe::{Gauge, Gauges};

/// The sources of all transports, and the totals of those that ended.
#[derive(Default)]
pub(crate) struct Sources(Mutex<Known>);

#[derive(Default)]
struct Known {
    live: Vec<Source>,
    /// What sources had counted when they were last read. Without it a counter would decrease when a transport ends.
    ended: Values,
}

struct Source {
    gauges: Weak<dyn Gauges>,
    counted: Values,
}

impl Sources {
    pub(crate) fn add(&self, gauges: Weak<dyn Gauges>) {
        let mut known = self.lock();
        known.forget_ended();
        known.live.push(Source { gauges, counted: Values::default() });
    }

    /// Returns the sums over all sources.
    pub(crate) fn read(&self) -> Values {
        let live: Vec<Arc<dyn Gauges>> = {
            let mut known = self.lock();
            known.forget_ended();
            known.live.iter().filter_map(|source| source.gauges.upgrade()).collect()
        };
        let mut read = Vec::with_capacity(live.len());
        for gauges in live {
            // Without the lock, as a source takes locks of its own.
            let mut values = Values::default();
            gauges.read(&mut |gauge, value| values.add(gauge, value));
            read.push((Arc::downgrade(&gauges), values));
        }
        let mut known = self.lock();
        let mut sum = Values::default();
        for (gauges, values) in read {
            sum.add_all(&values);
            if let Some(source) = known.live.iter_mut().find(|source| source.gauges.ptr_eq(&gauges)) {
                source.counted = values.only_counters();
            }
        }
        sum.add_all(&known.ended);
        sum
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn forget_ended(&mut self) {
        let Self { live, ended } = self;
        live.retain(|source| {
            let is_live = source.gauges.strong_count() > 0;
            if !is_live {
                ended.add_all(&source.counted);
            }
            is_live
        });
    }
}

/// A few values, each with what it measures.
#[derive(Default)]
pub(crate) struct Values(Vec<(Gauge, u64)>);

impl Values {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Gauge, u64)> {
        self.0.iter().copied()
    }

    fn add(&mut self, gauge: Gauge, value: u64) {
        match self.0.iter_mut().find(|(other, _)| *other == gauge) {
            Some((_, sum)) => *sum = sum.saturating_add(value),
            None => self.0.push((gauge, value)),
        }
    }

    fn add_all(&mut self, others: &Self) {
        for (gauge, value) in others.iter() {
            self.add(gauge, value);
        }
    }

    fn only_counters(mut self) -> Self {
        self.0.retain(|(gauge, _)| match gauge {
            Gauge::ActiveSessions | Gauge::IdleSessions | Gauge::IdleSessionBytes => false,
            Gauge::SessionsEnded(_) | Gauge::SessionsRefused(_) | Gauge::EventsReplayed | Gauge::EventsLost => true,
            _ => false,
        });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed(u64);

    impl Gauges for Fixed {
        fn read(&self, report: &mut dyn FnMut(Gauge, u64)) {
            report(Gauge::IdleSessions, self.0);
            report(Gauge::EventsLost, self.0);
        }
    }

    fn value(sources: &Sources, gauge: Gauge) -> Option<u64> {
        sources.read().iter().find(|(other, _)| *other == gauge).map(|(_, value)| value)
    }

    #[test]
    fn sources_are_summed_and_keep_their_counters_when_they_end() {
        let (first, second) = (Arc::new(Fixed(1)), Arc::new(Fixed(2)));
        let sources = Sources::default();
        let weak: Weak<Fixed> = Arc::downgrade(&first);
        sources.add(weak);
        let weak: Weak<Fixed> = Arc::downgrade(&second);
        sources.add(weak);
        assert_eq!(value(&sources, Gauge::IdleSessions), Some(3));
        assert_eq!(value(&sources, Gauge::EventsLost), Some(3));

        drop(first);
        assert_eq!(value(&sources, Gauge::IdleSessions), Some(2));
        assert_eq!(value(&sources, Gauge::EventsLost), Some(3));
        assert_eq!(sources.lock().live.len(), 1);
    }
}
