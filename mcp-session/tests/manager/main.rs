//! Sessions on a clock that the tests own.

mod model;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_kernel::server::Principal;
use mcp_session::{
    CreatedSession, EndReason, EndedSession, SessionError, SessionId, SessionLease, SessionManager, SessionOptions,
    WrongOwnerPolicy,
};
use tokio::time::{Instant, advance};

type Manager = SessionManager<()>;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(60 * 60);

fn manager(options: SessionOptions) -> Manager {
    SessionManager::new(options)
}

fn ann() -> Principal {
    Principal::new(Some("https://here"), "ann")
}

fn create(manager: &Manager) -> SessionLease<()> {
    create_for(manager, None)
}

fn create_for(manager: &Manager, principal: Option<Principal>) -> SessionLease<()> {
    let CreatedSession { lease, evicted, .. } = manager.create(principal, |_| ()).expect("there is room");
    assert_eq!(reasons(&evicted), []);
    lease
}

/// A session that was used, and is idle now.
fn leave(manager: &Manager) -> SessionId {
    let id = create(manager).id();
    manager.enter(&id, None).expect("it was just created");
    id
}

fn sweep(manager: &Manager) -> Vec<(SessionId, EndReason)> {
    reasons(&manager.sweep(Instant::now()))
}

fn reasons(ended: &[EndedSession<()>]) -> Vec<(SessionId, EndReason)> {
    ended.iter().map(|ended| (ended.id, ended.reason)).collect()
}

/// Sessions that nobody uses for two hours end, and are not found any more.
// covers: S0.25, S4.36, S4.38
#[tokio::test(start_paused = true)]
async fn idle_sessions_end() {
    let manager = manager(SessionOptions::default());
    let id = leave(&manager);
    advance(2 * HOUR - SECOND).await;
    assert_eq!(sweep(&manager), []);
    advance(SECOND).await;
    assert_eq!(sweep(&manager), [(id, EndReason::Idle)]);
    assert_eq!(manager.enter(&id, None).unwrap_err(), SessionError::Unknown);
    assert_eq!(sweep(&manager), [], "it ends once");
    let metrics = manager.metrics();
    assert_eq!((metrics.live, metrics.ended(EndReason::Idle), metrics.refused(SessionError::Unknown)), (0, 1, 1));
}

/// A request is a use, and so is the end of its answer.
// covers: S0.26, S4.35
#[tokio::test(start_paused = true)]
async fn uses_begin_the_time_anew() {
    let manager = manager(SessionOptions::default());
    let id = leave(&manager);
    advance(HOUR).await;
    let lease = manager.enter(&id, None).unwrap();
    advance(HOUR).await;
    drop(lease);
    advance(2 * HOUR - SECOND).await;
    assert_eq!(sweep(&manager), []);
    advance(SECOND).await;
    assert_eq!(sweep(&manager), [(id, EndReason::Idle)]);
}

/// Whoever waits for a silent answer is not idle, and does not count as such.
// covers: S4.37, S4.41, RB-32
#[tokio::test(start_paused = true)]
async fn active_sessions_are_never_idle() {
    let manager = manager(SessionOptions::default().idle_limit(0).idle_timeout(Some(SECOND)));
    let lease = create(&manager);
    let other = lease.clone();
    drop(lease);
    for _ in 0..10 {
        advance(24 * HOUR).await;
        assert_eq!(sweep(&manager), []);
        assert!(!other.is_ended());
    }
    let more: Vec<_> = (0..100).map(|_| create(&manager)).collect();
    let metrics = manager.metrics();
    assert_eq!((metrics.live, metrics.idle, metrics.active), (101, 0, 101));
    drop((other, more));
    assert_eq!(manager.metrics().idle, 101);
    assert_eq!(sweep(&manager).len(), 101, "the limit is none");
}

/// Time can be without end.
// covers: S4.39
#[tokio::test(start_paused = true)]
async fn idle_sessions_may_stay() {
    for time in [None, Some(Duration::MAX)] {
        let manager = manager(SessionOptions::default().idle_timeout(time));
        let (used, unused) = (leave(&manager), create(&manager).id());
        advance(10_000 * HOUR).await;
        assert_eq!(sweep(&manager), []);
        assert!(manager.enter(&used, None).is_ok() && manager.enter(&unused, None).is_ok());
        assert_eq!(manager.next_sweep(Instant::now()), Instant::now() + 60 * SECOND);
    }
}

/// A session that was never used lives as long as others while there is room.
// covers: MIS-10, RB-53
#[tokio::test(start_paused = true)]
async fn mis_10_unused_sessions_live_as_long_as_others() {
    let manager = manager(SessionOptions::default());
    let (unused, used) = (create(&manager).id(), leave(&manager));
    advance(2 * HOUR - SECOND).await;
    assert_eq!(sweep(&manager), []);
    advance(SECOND).await;
    assert_eq!(sweep(&manager), [(unused, EndReason::NeverUsed), (used, EndReason::Idle)]);
}

/// Where there is no room, those that were never used go first, up to the last tenth of it.
// covers: MIS-10, RB-53
#[tokio::test(start_paused = true)]
async fn mis_10_unused_sessions_go_first() {
    let manager = manager(SessionOptions::default().idle_limit(20));
    let mut used = Vec::new();
    for _ in 0..18 {
        used.push(leave(&manager));
        advance(SECOND).await;
    }
    // However many only shake hands, they end each other.
    for _ in 0..100 {
        let created = manager.create(None, |_| ()).unwrap();
        assert!(created.evicted.iter().all(|ended| !used.contains(&ended.id)));
        advance(SECOND).await;
    }
    drop(sweep(&manager));
    assert_eq!(manager.metrics().idle, 20);
    let young = create(&manager).id();
    let ended = sweep(&manager);
    assert!(ended.len() == 1 && ended[0].0 != young && !used.contains(&ended[0].0), "{ended:?}");
    assert!(manager.enter(&young, None).is_ok() && used.iter().all(|id| manager.enter(id, None).is_ok()));
}

/// Where all sessions were used, a client that comes has time for its first request, as the oldest makes room.
// covers: MIS-10, RB-53
#[tokio::test(start_paused = true)]
async fn mis_10_new_sessions_are_not_locked_out() {
    for limit in [1, 5, 20] {
        let manager = manager(SessionOptions::default().idle_limit(limit));
        let mut used = Vec::new();
        for _ in 0..limit {
            used.push(leave(&manager));
            advance(SECOND).await;
        }
        let young = create(&manager).id();
        advance(SECOND).await;
        assert_eq!(sweep(&manager), [(used[0], EndReason::Evicted)]);
        assert!(manager.enter(&young, None).is_ok());
    }
}

/// Idle sessions keep so many bytes together, whatever their number; active ones do not count.
// covers: SEC-5, RB-53
#[tokio::test(start_paused = true)]
async fn sec_5_idle_sessions_keep_so_many_bytes() {
    let options = SessionOptions::default().idle_bytes_limit(1000);
    let manager = SessionManager::measured(options, |text: &Mutex<String>| text.lock().unwrap().len());
    let text = |bytes: usize| Mutex::new("x".repeat(bytes));
    let fat = manager.create(None, |_| text(5000)).unwrap().lease;
    assert_eq!((manager.metrics().idle_bytes, manager.sweep(Instant::now()).len()), (0, 0));
    assert_eq!(manager.next_sweep(Instant::now()), Instant::now() + 5 * SECOND, "it may be idle at any time");
    let mut ids = Vec::new();
    for _ in 0..10 {
        let id = manager.create(None, |_| text(100)).unwrap().lease.id();
        drop(manager.enter(&id, None).unwrap());
        ids.push(id);
        advance(SECOND).await;
    }
    assert_eq!((manager.metrics().idle_bytes, manager.metrics().idle), (1000, 10));
    // What it keeps is measured when it was used.
    manager.enter(&ids[9], None).unwrap().lock().unwrap().push_str("one byte more");
    let ended: Vec<_> = manager.sweep(Instant::now()).into_iter().map(|ended| ended.id).collect();
    assert_eq!(ended, ids[..1]);
    assert_eq!(manager.metrics().idle_bytes, 913);
    // Those that were never used go first.
    let unused = manager.create(None, |_| text(200)).unwrap().lease.id();
    let ended: Vec<_> = manager.sweep(Instant::now()).into_iter().map(|ended| ended.id).collect();
    assert_eq!(ended, [unused]);
    let id = fat.id();
    drop(fat);
    drop(manager.sweep(Instant::now()));
    assert!(manager.enter(&id, None).is_err() && manager.metrics().idle_bytes <= 1000);
    drop(manager.shutdown());
    assert_eq!((manager.metrics().idle_bytes, manager.metrics().live), (0, 0));
}

/// Beyond the limit the oldest idle ones end before their time, active ones never.
// covers: S0.25, S4.40, S4.41, RB-53
#[tokio::test(start_paused = true)]
async fn the_oldest_make_room() {
    let manager = manager(SessionOptions::default().idle_limit(2));
    let busy = create(&manager);
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(leave(&manager));
        advance(SECOND).await;
        // The first one is never the oldest.
        manager.enter(&ids[0], None).unwrap();
        advance(SECOND).await;
    }
    let created = manager.create(None, |_| ()).unwrap();
    assert_eq!(reasons(&created.evicted), [(ids[1], EndReason::Evicted)]);
    assert!(!busy.is_ended() && manager.enter(&ids[0], None).is_ok());
    advance(SECOND).await;
    let created_id = created.lease.id();
    drop((created, busy));
    assert_eq!(manager.metrics().idle, 4);
    let ended = sweep(&manager);
    // A sweep sees to it: one of two that were never used, and then the oldest.
    assert_eq!(ended, [(created_id, EndReason::Evicted), (ids[2], EndReason::Evicted)]);
    assert_eq!((manager.metrics().live, manager.metrics().ended(EndReason::Evicted)), (2, 3));
}

/// A principal has so many; its own oldest idle one makes room, and nobody else's.
// covers: RB-53
#[tokio::test(start_paused = true)]
async fn principals_have_so_many() {
    let manager = manager(SessionOptions::default().limit_per_principal(2));
    let bob = create_for(&manager, Some(Principal::new(None, "ann"))).id();
    advance(SECOND).await;
    let (first, second) = (create_for(&manager, Some(ann())), create_for(&manager, Some(ann())));
    assert_eq!(manager.create(Some(ann()), |_| ()).unwrap_err(), SessionError::TooMany);
    assert_eq!(manager.metrics().refused(SessionError::TooMany), 1);
    let (idle, busy) = (second.id(), first);
    drop(second);
    let created = manager.create(Some(ann()), |_| ()).unwrap();
    assert_eq!(reasons(&created.evicted), [(idle, EndReason::Evicted)]);
    assert!(!busy.is_ended());
    assert_eq!(manager.create(Some(ann()), |_| ()).unwrap_err(), SessionError::TooMany);
    assert!(manager.create(None, |_| ()).is_ok(), "nobody is no principal");
    assert!(manager.enter(&bob, Some(&Principal::new(None, "ann"))).is_ok());
    assert!(manager.end(&busy.id(), Some(&ann()), EndReason::Deleted).is_ok());
    assert!(manager.create(Some(ann()), |_| ()).is_ok(), "what has ended does not count, though it is in use");
    let none = SessionManager::new(SessionOptions::default().limit_per_principal(0));
    assert_eq!(none.create(Some(ann()), |_| ()).unwrap_err(), SessionError::TooMany);
}

/// A session is its principal's, with whatever token, and nobody's if there was none.
// covers: S4.69..S4.72, RB-64
#[tokio::test(start_paused = true)]
async fn sessions_have_owners() {
    let open = manager(SessionOptions::default());
    let hidden = manager(SessionOptions::default().wrong_owner(WrongOwnerPolicy::Hidden));
    for (manager, refused) in [(&open, SessionError::WrongOwner), (&hidden, SessionError::Unknown)] {
        let id = create_for(manager, Some(ann())).id();
        let others = [Principal::new(Some("https://here"), "bob"), Principal::new(None, "ann")];
        for other in [Some(&others[0]), Some(&others[1]), None] {
            assert_eq!(manager.enter(&id, other).unwrap_err(), refused);
            assert_eq!(manager.end(&id, other, EndReason::Deleted).unwrap_err(), refused);
            assert_eq!(manager.adopt(id, other.cloned(), |_| ()).unwrap_err(), refused);
        }
        assert_eq!(manager.metrics().refused(SessionError::WrongOwner), 9);
        let again = Principal::new(Some("https://here"), "ann");
        assert_eq!(manager.enter(&id, Some(&again)).map(|lease| lease.id()), Ok(id));
        let free = create(manager).id();
        assert!(manager.enter(&free, Some(&again)).is_ok() && manager.enter(&free, None).is_ok());
    }
    let id = create_for(&open, Some(ann())).id();
    advance(2 * HOUR - SECOND).await;
    assert!(open.enter(&id, None).is_err());
    advance(SECOND).await;
    assert!(sweep(&open).contains(&(id, EndReason::NeverUsed)), "who may not use it does not keep it alive");
}

/// What was deleted is gone at once, whoever uses it.
// covers: S0.26, S4.38, S4.42, RB-35
#[tokio::test(start_paused = true)]
async fn deleted_sessions_are_gone() {
    let manager = SessionManager::new(SessionOptions::default());
    let lease = manager.create(Some(ann()), |id| id.to_string()).unwrap().lease;
    let id = lease.id();
    assert_eq!(*lease, id.to_string());
    let ended = manager.end(&id, Some(&ann()), EndReason::Deleted).unwrap();
    assert_eq!((ended.id, ended.reason, &*ended.value), (id, EndReason::Deleted, &*lease));
    assert!(lease.is_ended());
    assert_eq!(manager.enter(&id, Some(&ann())).unwrap_err(), SessionError::Unknown);
    assert_eq!(manager.end(&id, Some(&ann()), EndReason::Deleted).unwrap_err(), SessionError::Unknown);
    // Its place is taken by another one, with which its leases have nothing to do.
    let other = manager.create(None, |_| String::new()).unwrap().lease;
    drop((lease.clone(), lease));
    assert!(!other.is_ended());
    assert_eq!((manager.metrics().live, manager.metrics().active), (1, 1));
    assert_eq!(Arc::strong_count(&ended.value), 1, "nobody else has it");
}

/// The end of the server is the end of all sessions, and there are no new ones.
// covers: S4.42, S4.45
#[tokio::test(start_paused = true)]
async fn the_end_is_the_end_of_all() {
    let manager = manager(SessionOptions::default());
    let (busy, idle) = (create_for(&manager, Some(ann())), leave(&manager));
    let mut ended = reasons(&manager.shutdown());
    ended.sort();
    let mut all = [(busy.id(), EndReason::Shutdown), (idle, EndReason::Shutdown)];
    all.sort();
    assert_eq!(ended, all);
    assert!(busy.is_ended());
    assert_eq!(manager.create(None, |_| ()).unwrap_err(), SessionError::Closed);
    assert_eq!(manager.adopt(idle, None, |_| ()).unwrap_err(), SessionError::Closed);
    assert_eq!(manager.enter(&idle, None).unwrap_err(), SessionError::Unknown);
    assert_eq!(reasons(&manager.shutdown()), []);
    let during = SessionManager::new(SessionOptions::default());
    let refused = during.create(Some(ann()), |_| drop(during.shutdown())).unwrap_err();
    assert_eq!((refused, during.metrics().live), (SessionError::Closed, 0), "not even if it was on its way");
}

/// A session of elsewhere goes on here under its id; who is late finds it.
// covers: S4.43, S4.45, S4.115
#[tokio::test(start_paused = true)]
async fn sessions_move() {
    let (here, there) =
        (SessionManager::new(SessionOptions::default()), SessionManager::new(SessionOptions::default()));
    let id = there.create(Some(ann()), |_| "there").unwrap().lease.id();
    assert_eq!(here.enter(&id, Some(&ann())).unwrap_err(), SessionError::Unknown);
    let first = here.adopt(id, Some(ann()), |_| "first").unwrap().lease;
    let second = here.adopt(id, Some(ann()), |_| panic!("it is there")).unwrap().lease;
    assert_eq!((first.id(), *first, *second), (id, "first", "first"));
    let other = SessionId::random().unwrap();
    let meanwhile = |_| *here.adopt(other, Some(ann()), |_| "faster").unwrap().lease;
    let late = here.adopt(other, Some(ann()), |id| [meanwhile(id), "slower"][1]).unwrap().lease;
    assert_eq!(*late, "faster", "it appeared meanwhile");
    let metrics = here.metrics();
    assert_eq!((metrics.live, metrics.adopted, metrics.created), (2, 2, 0));
    drop((first, second, late));
    assert_eq!((here.metrics().idle, here.shutdown().len()), (2, 2));
}

/// What is not made leaves nothing behind, and whoever had to go for it is not forgotten.
// covers: RB-35, RB-53
#[tokio::test(start_paused = true)]
async fn failures_leave_nothing() {
    let manager = manager(SessionOptions::default().limit_per_principal(1));
    let first = create_for(&manager, Some(ann())).id();
    let made = catch_unwind(AssertUnwindSafe(|| manager.create(Some(ann()), |_| panic!("on purpose")).map(drop)));
    assert!(made.is_err());
    assert_eq!(manager.metrics().live, 0);
    assert_eq!(manager.next_sweep(Instant::now()), Instant::now() + 5 * SECOND);
    assert_eq!(sweep(&manager), [(first, EndReason::Evicted)], "it has to be torn down");
    let lease = create_for(&manager, Some(ann()));
    assert_eq!(manager.create(Some(ann()), |_| panic!("it is refused before")).unwrap_err(), SessionError::TooMany);
    drop(lease);
}

/// What is made or dropped may use the manager itself.
// covers: RB-33
#[tokio::test(start_paused = true)]
async fn nothing_waits_for_itself() {
    struct Nested(Option<SessionLease<Self>>);
    let manager: SessionManager<Nested> = SessionManager::new(SessionOptions::default());
    let outer = manager.create(None, |_| Nested(Some(manager.create(None, |_| Nested(None)).unwrap().lease))).unwrap();
    assert!(outer.lease.0.as_ref().is_some_and(|inner| !inner.is_ended()));
    let id = outer.lease.id();
    drop(outer);
    assert_eq!((manager.metrics().idle, manager.metrics().active), (1, 1));
    drop(manager.end(&id, None, EndReason::Deleted));
    assert_eq!((manager.metrics().idle, manager.metrics().active), (1, 0));
    drop(manager.shutdown());
}

/// A sweep comes every five seconds when something can end, and in time for the first that can.
// covers: S4.36
#[tokio::test(start_paused = true)]
async fn sweeps_come_in_time() {
    let manager = manager(SessionOptions::default());
    let begin = Instant::now();
    assert_eq!(manager.next_sweep(begin), begin + 60 * SECOND, "whoever comes now may be one too many then");
    drop(create(&manager));
    advance(2 * HOUR - 3 * SECOND).await;
    assert_eq!(
        manager.next_sweep(Instant::now()),
        begin + 2 * HOUR + 2 * SECOND,
        "not more often than every five seconds"
    );
    advance(5 * SECOND).await;
    assert_eq!(sweep(&manager).len(), 1);
    let limited = SessionManager::new(SessionOptions::default().idle_limit(0));
    let lease = limited.create(None, |_| ()).unwrap().lease;
    assert_eq!(limited.next_sweep(Instant::now()), Instant::now() + 5 * SECOND, "there may be too many at any time");
    drop(lease);
}

/// Many threads use the same sessions, and each session ends exactly once.
// covers: S0.5, RB-33, RB-53
#[test]
fn threads_share_sessions() {
    const THREADS: usize = 8;
    let options = SessionOptions::default().idle_limit(16).limit_per_principal(4).idle_timeout(Some(Duration::ZERO));
    let manager: SessionManager<AtomicUsize> = SessionManager::new(options);
    let (ids, created, ended) = (Mutex::new(Vec::new()), AtomicUsize::new(0), AtomicUsize::new(0));
    let end = |sessions: Vec<EndedSession<AtomicUsize>>| {
        for session in sessions {
            assert_eq!(session.value.fetch_add(1, Ordering::SeqCst), 0, "it ends once");
            ended.fetch_add(1, Ordering::SeqCst);
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (manager, ids, created, end) = (manager.clone(), &ids, &created, &end);
            scope.spawn(move || {
                let principal = (thread % 2 == 0).then(ann);
                for round in 0..2000_usize {
                    if let Ok(CreatedSession { lease, evicted, .. }) =
                        manager.create(principal.clone(), |_| AtomicUsize::new(0))
                    {
                        created.fetch_add(1, Ordering::SeqCst);
                        end(evicted);
                        ids.lock().unwrap().push(lease.id());
                    }
                    let id = ids.lock().unwrap().iter().rev().nth(round % 16).copied();
                    let Some(id) = id else { continue };
                    if let Ok(lease) = manager.enter(&id, Some(&ann())) {
                        let another = lease.clone();
                        drop(lease);
                        assert!(another.load(Ordering::SeqCst) == 0 || another.is_ended());
                    }
                    match round % 7 {
                        0 => end(manager.end(&id, Some(&ann()), EndReason::Deleted).into_iter().collect()),
                        1 => end(manager.sweep(Instant::now())),
                        _ => {}
                    }
                }
            });
        }
    });
    let metrics = manager.metrics();
    assert_eq!((metrics.active, metrics.created), (0, created.load(Ordering::SeqCst) as u64));
    end(manager.shutdown());
    assert_eq!(ended.load(Ordering::SeqCst), created.load(Ordering::SeqCst));
    assert_eq!(manager.metrics().live, 0);
}

/// A session ends at its deadline, in the sweep or when it is used next, unless there is a later one or it is in use.
// covers: AU-4
#[tokio::test(start_paused = true)]
async fn sessions_end_at_their_deadline() {
    type Deadline = Arc<Mutex<Option<Instant>>>;
    let manager = SessionManager::with_deadlines(
        SessionOptions::default(),
        |_: &Deadline| 0,
        |deadline: &Deadline| *deadline.lock().unwrap(),
    );
    let at = |seconds: u32| Some(Instant::now() + seconds * SECOND);
    let create = |deadline: Option<Instant>| {
        let deadline = Arc::new(Mutex::new(deadline));
        let created = manager.create(None, |_| Arc::clone(&deadline)).unwrap();
        (created.lease.id(), deadline)
    };
    let sweep = || manager.sweep(Instant::now()).iter().map(|ended| (ended.id, ended.reason)).collect::<Vec<_>>();
    let ((swept, _), (entered, _), (used, _)) = (create(at(60)), create(at(60)), create(at(60)));
    let ((moved, deadline), (lasting, _)) = (create(at(60)), create(None));
    let lease = manager.enter(&used, None).unwrap();
    *deadline.lock().unwrap() = at(90);
    advance(59 * SECOND).await;
    assert_eq!(sweep(), []);
    assert!(manager.next_sweep(Instant::now()) <= Instant::now() + 5 * SECOND);
    advance(SECOND).await;
    assert_eq!(manager.enter(&entered, None).unwrap_err(), SessionError::Unknown);
    assert_eq!(sweep(), [(entered, EndReason::Expired), (swept, EndReason::Expired)]);
    drop(manager.enter(&moved, None).unwrap());
    assert!(!lease.is_ended(), "it is in use");
    drop(lease);
    assert_eq!(sweep(), [(used, EndReason::Expired)]);
    advance(30 * SECOND).await;
    assert_eq!(sweep(), [(moved, EndReason::Expired)]);
    assert!(manager.contains(&lasting));
    assert_eq!((manager.metrics().live, manager.metrics().ended(EndReason::Expired)), (1, 4));
}
