//! Sources of values that are read when metrics are collected, which transports and the runtime of tasks provide.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_kernel::observe::{MetricSource, SourceMetric};

/// All sources, and the totals of those that ended.
#[derive(Default)]
pub(crate) struct Sources(Mutex<Known>);

#[derive(Default)]
struct Known {
    live: Vec<Source>,
    /// What the sources that ended had counted. Without it a counter would decrease when a transport ends.
    ended: Values,
    /// The sums of the last collection.
    collected: Arc<Values>,
    /// Which instruments have used them.
    used: u32,
}

struct Source {
    source: Arc<dyn MetricSource>,
    /// The greatest counters that were read, as concurrent collections may end in another order than they began.
    counted: Values,
}

impl Sources {
    pub(crate) fn add(&self, source: Arc<dyn MetricSource>) {
        let mut known = self.lock();
        // Services may share a store.
        if !known.live.iter().any(|other| Arc::ptr_eq(&other.source, &source)) {
            known.live.push(Source { source, counted: Values::default() });
        }
    }

    /// Returns the sums over all sources for an instrument. Each collection asks once for each instrument, and all of them
    /// get the values that were read for the first.
    pub(crate) fn collect(&self, instrument: u32) -> Arc<Values> {
        let instrument = 1 << (instrument % u32::BITS);
        {
            let mut known = self.lock();
            // An instrument that has used the values belongs to a new collection.
            if known.used & instrument == 0 && known.used != 0 {
                known.used |= instrument;
                return Arc::clone(&known.collected);
            }
        }
        let values = Arc::new(self.read());
        let mut known = self.lock();
        (known.collected, known.used) = (Arc::clone(&values), instrument);
        values
    }

    fn read(&self) -> Values {
        let live: Vec<_> = self.lock().live.iter().map(|source| Arc::clone(&source.source)).collect();
        // Without the lock, as a source may take locks of its own. One that had ended before it was read does not change.
        let read: Vec<_> = live.into_iter().map(|source| (source.is_ended(), Values::of(&*source), source)).collect();
        let mut known = self.lock();
        let mut sum = Values::default();
        for (is_ended, values, source) in read {
            // If another collection has found its end meanwhile, its counters are among those of the others that ended.
            let Some(index) = known.live.iter().position(|other| Arc::ptr_eq(&other.source, &source)) else { continue };
            let Some(known_source) = known.live.get_mut(index) else { continue };
            known_source.counted.raise(&values);
            if is_ended {
                let Source { counted, .. } = known.live.swap_remove(index);
                known.ended.add_all(&counted);
            } else {
                sum.add_all(&known_source.counted);
                sum.add_all(&values.without_counters());
            }
        }
        sum.add_all(&known.ended);
        sum
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A few values, each with what it measures.
#[derive(Default)]
pub(crate) struct Values(Vec<(SourceMetric, u64)>);

impl Values {
    fn of(source: &dyn MetricSource) -> Self {
        let mut values = Self::default();
        source.read(&mut |metric, value| values.add(metric, value));
        values
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (SourceMetric, u64)> {
        self.0.iter().copied()
    }

    fn add(&mut self, metric: SourceMetric, value: u64) {
        let sum = self.get_mut(metric);
        *sum = sum.saturating_add(value);
    }

    fn add_all(&mut self, others: &Self) {
        for (metric, value) in others.iter() {
            self.add(metric, value);
        }
    }

    /// Sets each counter to the greater of two values.
    fn raise(&mut self, others: &Self) {
        for (metric, value) in others.iter().filter(|(metric, _)| metric.is_counter()) {
            let counted = self.get_mut(metric);
            *counted = value.max(*counted);
        }
    }

    fn without_counters(mut self) -> Self {
        self.0.retain(|(metric, _)| !metric.is_counter());
        self
    }

    fn get_mut(&mut self, metric: SourceMetric) -> &mut u64 {
        let index = self.0.iter().position(|(other, _)| *other == metric).unwrap_or_else(|| {
            self.0.push((metric, 0));
            self.0.len() - 1
        });
        &mut self.0[index].1
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use super::*;

    /// A source with one number for all values, which counts how often it is read.
    #[derive(Default)]
    struct Counted {
        value: AtomicU64,
        reads: AtomicU64,
        is_ended: AtomicBool,
    }

    impl Counted {
        fn add(sources: &Sources, value: u64) -> Arc<Self> {
            let source = Arc::new(Self { value: value.into(), ..Self::default() });
            sources.add(source.clone());
            source
        }

        fn end(&self, value: u64) {
            self.value.store(value, Ordering::Relaxed);
            self.is_ended.store(true, Ordering::Relaxed);
        }
    }

    impl MetricSource for Counted {
        fn read(&self, report: &mut dyn FnMut(SourceMetric, u64)) {
            self.reads.fetch_add(1, Ordering::Relaxed);
            let value = self.value.load(Ordering::Relaxed);
            let idle = if self.is_ended() { 0 } else { value };
            report(SourceMetric::IdleSessions, idle);
            report(SourceMetric::EventsLost, value);
        }

        fn is_ended(&self) -> bool {
            self.is_ended.load(Ordering::Relaxed)
        }
    }

    fn sums(values: &Values) -> (u64, u64) {
        let value = |metric| values.iter().find(|(other, _)| *other == metric).map_or(0, |(_, value)| value);
        (value(SourceMetric::IdleSessions), value(SourceMetric::EventsLost))
    }

    #[test]
    fn sources_are_summed_and_keep_their_counters_when_they_end() {
        let sources = Sources::default();
        let (first, _second) = (Counted::add(&sources, 1), Counted::add(&sources, 2));
        sources.add(first.clone());
        assert_eq!(sums(&sources.read()), (3, 3), "a source counts once");

        // What was counted after the last collection is not lost.
        first.end(5);
        assert_eq!(sums(&sources.read()), (2, 7));
        assert_eq!(sums(&sources.read()), (2, 7));
        assert_eq!(sources.lock().live.len(), 1);
        assert_eq!(Arc::strong_count(&first), 1);
    }

    /// A collection that ends after one that began later neither counts twice nor decreases a counter.
    #[test]
    fn concurrent_collections_agree() {
        let sources = Arc::new(Sources::default());
        let source = Counted::add(&sources, 1);
        // While it is read, another collection finds its end.
        struct Overtaken(Arc<Sources>, Arc<Counted>);
        impl MetricSource for Overtaken {
            fn read(&self, _: &mut dyn FnMut(SourceMetric, u64)) {
                if !self.1.is_ended() {
                    self.1.end(4);
                    assert_eq!(sums(&self.0.read()), (0, 4));
                }
            }

            fn is_ended(&self) -> bool {
                false
            }
        }
        sources.add(Arc::new(Overtaken(sources.clone(), source)));
        assert_eq!(sums(&sources.read()), (0, 4));
        assert_eq!(sums(&sources.read()), (0, 4));
    }

    /// However many instruments there are, a collection reads each source once.
    #[test]
    fn a_collection_reads_each_source_once() {
        let sources = Sources::default();
        let source = Counted::add(&sources, 1);
        for collection in 1..=3 {
            for instrument in 0..6 {
                assert_eq!(sums(&sources.collect(instrument)).1, collection);
                source.value.store(collection + 1, Ordering::Relaxed);
            }
            assert_eq!(source.reads.load(Ordering::Relaxed), collection);
        }
        // A view may drop the first instruments.
        assert_eq!(sums(&sources.collect(4)).1, 4);
    }
}
