//! Events in memory, against a store that has all the time in the world.

use std::collections::BTreeMap;
use std::time::Duration;

use mcp_session::{EventStore, MemoryEventLimits, MemoryEventStore, Replay, SessionId, StoredEvent};
use tokio::time::{Instant, advance};

const AGE: Duration = Duration::from_millis(300);
const EVENTS: usize = 12;
const BYTES_OF_ONE: usize = 4000;
const BYTES: usize = 9000;

/// What the store should keep; streams number their events without gaps.
#[derive(Default)]
struct Naive {
    kept: Vec<Kept>,
    /// Of each stream of a session the last number, and the last one that is gone.
    streams: BTreeMap<(usize, u64), (u64, u64)>,
}

struct Kept {
    stream: (usize, u64),
    number: u64,
    size: usize,
    at: Instant,
}

impl Naive {
    fn drop_first(&mut self, is_meant: impl Fn(&Kept) -> bool) {
        let first = self.kept.iter().position(is_meant).expect("there is too much");
        let Kept { stream, number, .. } = self.kept.remove(first);
        let gone = &mut self.streams.entry(stream).or_default().1;
        *gone = number.max(*gone);
    }

    fn expire(&mut self, now: Instant) {
        while self.kept.first().is_some_and(|first| first.at + AGE <= now) {
            self.drop_first(|_| true);
        }
    }

    fn bytes(&self) -> usize {
        self.kept.iter().map(|event| event.size).sum()
    }

    fn is_too_much(&self, session: usize) -> bool {
        let own = self.kept.iter().filter(|event| event.stream.0 == session);
        own.clone().count() > EVENTS || own.map(|event| event.size).sum::<usize>() > BYTES_OF_ONE
    }

    /// Returns the number of the event.
    fn append(&mut self, stream: (usize, u64), length: usize, at: Instant) -> u64 {
        let known = self.streams.entry(stream).or_default();
        known.0 += 1;
        let (number, size) = (known.0, length + MemoryEventLimits::EVENT_OVERHEAD);
        if size > BYTES_OF_ONE {
            known.1 = number;
        } else {
            self.kept.push(Kept { stream, number, size, at });
        }
        while self.is_too_much(stream.0) {
            self.drop_first(|event| event.stream.0 == stream.0);
        }
        while self.bytes() > BYTES {
            self.drop_first(|_| true);
        }
        number
    }

    /// What is left, and whether that is all.
    fn replay(&self, stream: (usize, u64), after: u64) -> (Vec<u64>, bool) {
        let own = self.kept.iter().filter(|event| event.stream == stream).map(|event| event.number);
        let gone = self.streams.get(&stream).map_or(0, |known| known.1);
        let is_whole = own.clone().next().is_some() && after >= gone;
        (own.filter(|number| *number > after).collect(), is_whole)
    }

    fn forget(&mut self, session: usize) {
        self.kept.retain(|event| event.stream.0 != session);
        self.streams.retain(|stream, _| stream.0 != session);
    }
}

/// Whatever is sent in whatever order, what is kept is what a naive store keeps.
// covers: S4.117, RB-55
#[tokio::test(start_paused = true)]
async fn any_order_is_kept() {
    let limits = MemoryEventLimits::default().max_session_events(EVENTS).max_session_bytes(BYTES_OF_ONE);
    let limits = limits.max_bytes(BYTES).max_age(AGE);
    for seed in 1..=40_u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) % below
        };
        let (store, mut naive) = (MemoryEventStore::new(limits.clone()), Naive::default());
        let mut sessions = [(); 4].map(|()| SessionId::random().unwrap());
        let (mut whole, mut partial) = (0, 0);
        for step in 0..1500 {
            let context = format!("seed {seed}, step {step}");
            advance(Duration::from_millis(random(10))).await;
            let (session, stream) = (random(4) as usize, random(5));
            let id = sessions[session];
            naive.expire(Instant::now());
            match random(20) {
                0 => {
                    store.forget(id);
                    naive.forget(session);
                    // What comes late is not kept, and another one takes its place.
                    store.append(id, stream, StoredEvent { number: u64::MAX, message: "late".into() });
                    sessions[session] = SessionId::random().unwrap();
                }
                1..15 => {
                    let length = if random(30) == 0 { BYTES_OF_ONE } else { random(700) as usize };
                    let number = naive.append((session, stream), length, Instant::now());
                    store.append(id, stream, StoredEvent { number, message: vec![b'x'; length].into() });
                }
                _ => {
                    let last = naive.streams.get(&(session, stream)).map_or(0, |known| known.0);
                    let after = last.saturating_sub(random(5));
                    let Replay { events, is_whole } = store.replay(id, stream, after).await.unwrap();
                    let numbers: Vec<_> = events.iter().map(|event| event.number).collect();
                    assert_eq!((numbers, is_whole), naive.replay((session, stream), after), "{context}");
                    *if is_whole { &mut whole } else { &mut partial } += 1;
                    let usage = store.usage();
                    assert_eq!((usage.events, usage.bytes), (naive.kept.len(), naive.bytes()), "{context}");
                }
            }
        }
        assert!(whole > 50 && partial > 50, "both are tested: {whole}, {partial}");
        sessions.into_iter().for_each(|session| store.forget(session));
        assert_eq!((store.usage().events, store.usage().bytes, store.usage().sessions), (0, 0, 0));
    }
}
