//! The manager against a naive one, in any order of events.

use std::time::Duration;

use mcp_kernel::server::Principal;
use mcp_session::{EndReason, SessionError, SessionId, SessionLease, SessionOptions};
use tokio::time::{Instant, advance};

use crate::{SECOND, ann, manager, reasons, sweep};

/// What the manager should do, without any thought for time.
#[derive(Default)]
struct Model {
    live: Vec<Known>,
}

#[derive(Clone)]
struct Known {
    id: SessionId,
    owner: Option<Principal>,
    leases: usize,
    is_used: bool,
    since: Instant,
}

const MODEL_IDLE: Duration = Duration::from_millis(400);
const MODEL_LIMIT: usize = 12;
const MODEL_OWN: usize = 3;

impl Model {
    fn oldest(&self, owner: Option<&Principal>) -> Option<SessionId> {
        let idle = self.live.iter().filter(|known| known.leases == 0);
        let own = idle.filter(|known| owner.is_none() || known.owner.as_ref() == owner);
        own.min_by_key(|known| known.since).map(|known| known.id)
    }

    fn end(&mut self, id: SessionId) {
        self.live.retain(|known| known.id != id);
    }

    fn prune(&mut self) -> Vec<(SessionId, EndReason)> {
        let mut ended = Vec::new();
        while self.idle() > MODEL_LIMIT {
            let unused = || self.live.iter().filter(|known| known.leases == 0 && !known.is_used);
            let oldest_unused = unused().min_by_key(|known| known.since).map(|known| known.id);
            let is_flood = unused().count() > MODEL_LIMIT / 10;
            let id = oldest_unused.filter(|_| is_flood).or_else(|| self.oldest(None)).expect("some are idle");
            self.end(id);
            ended.push((id, EndReason::Evicted));
        }
        ended
    }

    fn idle(&self) -> usize {
        self.live.iter().filter(|known| known.leases == 0).count()
    }

    fn create(&mut self, owner: Option<&Principal>) -> Result<Vec<(SessionId, EndReason)>, SessionError> {
        let mut ended = Vec::new();
        let own = self.live.iter().filter(|known| owner.is_some() && known.owner.as_ref() == owner).count();
        if own >= MODEL_OWN {
            let id = self.oldest(owner).ok_or(SessionError::TooMany)?;
            self.end(id);
            ended.push((id, EndReason::Evicted));
        }
        ended.extend(self.prune());
        Ok(ended)
    }

    fn find(&mut self, id: SessionId, principal: Option<&Principal>) -> Result<&mut Known, SessionError> {
        let known = self.live.iter_mut().find(|known| known.id == id).ok_or(SessionError::Unknown)?;
        match &known.owner {
            Some(owner) if Some(owner) != principal => Err(SessionError::WrongOwner),
            _ => Ok(known),
        }
    }

    fn sweep(&mut self, now: Instant) -> Vec<(SessionId, EndReason)> {
        let mut ended = Vec::new();
        for known in self.live.clone() {
            let reason = if known.is_used { EndReason::Idle } else { EndReason::NeverUsed };
            if known.leases == 0 && known.since + MODEL_IDLE <= now {
                self.end(known.id);
                ended.push((known.id, reason));
            }
        }
        ended.extend(self.prune());
        ended
    }
}

/// Whatever happens in whatever order, the manager does what a naive one does.
// covers: S0.5, S0.25, S4.37, S4.40, S4.41, RB-53
#[tokio::test(start_paused = true)]
async fn any_order_is_right() {
    for seed in 1..=60_u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as usize % below
        };
        let options = SessionOptions::default().idle_timeout(Some(MODEL_IDLE));
        let manager = manager(options.idle_limit(MODEL_LIMIT).limit_per_principal(MODEL_OWN));
        let (mut model, mut leases, mut ids) = (Model::default(), Vec::<SessionLease<()>>::new(), Vec::new());
        let (mut created, mut ended) = (0, 0);
        let people = [None, Some(ann()), Some(Principal::new(None, "ann")), Some(Principal::new(None, "bob"))];
        for step in 0..1000 {
            advance(Duration::from_millis(1 + random(12) as u64)).await;
            let now = Instant::now();
            let context = format!("seed {seed}, step {step}");
            let principal = people[random(people.len())].clone();
            let id = if ids.is_empty() {
                SessionId::random().unwrap()
            } else {
                ids[ids.len() - 1 - random(ids.len().min(20))]
            };
            match random(10) {
                0..3 => {
                    let expected = model.create(principal.as_ref());
                    let found = manager.create(principal.clone(), |_| ()).map(|made| {
                        let id = made.lease.id();
                        model.live.push(Known { id, owner: principal, leases: 1, is_used: false, since: now });
                        ids.push(id);
                        leases.push(made.lease);
                        created += 1;
                        reasons(&made.evicted)
                    });
                    ended += found.as_ref().map_or(0, Vec::len);
                    assert_eq!(found, expected, "{context}");
                }
                3..5 => {
                    let expected = model.find(id, principal.as_ref()).map(|known| {
                        known.leases += 1;
                        known.is_used = true;
                    });
                    let found = manager.enter(&id, principal.as_ref()).map(|lease| leases.push(lease));
                    assert_eq!(found, expected, "{context}");
                }
                5..8 if !leases.is_empty() => {
                    let lease = leases.swap_remove(random(leases.len()));
                    let known = model.live.iter_mut().find(|known| known.id == lease.id());
                    assert_eq!(lease.is_ended(), known.is_none(), "{context}");
                    if let Some(known) = known {
                        known.leases -= 1;
                        known.since = now;
                    }
                }
                8 if !leases.is_empty() => {
                    let lease = leases[random(leases.len())].clone();
                    if let Some(known) = model.live.iter_mut().find(|known| known.id == lease.id()) {
                        known.leases += 1;
                    }
                    leases.push(lease);
                }
                9 if random(3) == 0 => {
                    let expected = model.find(id, principal.as_ref()).map(|_| ());
                    let found = manager.end(&id, principal.as_ref(), EndReason::Deleted).map(|_| ended += 1);
                    model.live.retain(|known| expected.is_err() || known.id != id);
                    assert_eq!(found, expected, "{context}");
                }
                _ => {
                    let (mut expected, mut found) = (model.sweep(now), sweep(&manager));
                    ended += found.len();
                    expected.sort();
                    found.sort();
                    assert_eq!(found, expected, "{context}");
                }
            }
            let metrics = manager.metrics();
            assert_eq!((metrics.live, metrics.idle), (model.live.len(), model.idle()), "{context}");
            assert_eq!(metrics.live + ended, created, "{context}: each ends once");
            let next = model.live.iter().filter(|known| known.leases == 0);
            let next = next.map(|known| known.since + MODEL_IDLE).min();
            let latest = next.map_or(now + MODEL_IDLE, |next| next.min(now + MODEL_IDLE)).max(now + 5 * SECOND);
            assert!(manager.next_sweep(now) <= latest, "{context}");
        }
        drop(leases);
        assert_eq!(manager.metrics().active, 0);
        assert_eq!(manager.shutdown().len() + ended, created);
        assert_eq!(manager.metrics().live, 0);
    }
}
