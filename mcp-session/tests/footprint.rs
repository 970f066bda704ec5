//! How much memory sessions take. Alone in its process, so that nobody else is measured.

use std::alloc::System;

use cap::Cap;
use mcp_kernel::server::Principal;
use mcp_session::{SessionManager, SessionOptions};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// An idle session is small, with an owner or without, and nothing is left of it.
// covers: S4.44, RB-53
#[test]
fn idle_sessions_are_small() {
    const COUNT: usize = 10_000;
    let principals: Vec<_> = (0..COUNT).map(|number| Principal::new(Some("here"), &number.to_string())).collect();
    for (kind, has_owner, most) in [("nobody's", false, 220), ("a principal's", true, 300)] {
        let before = ALLOCATOR.allocated();
        let manager = SessionManager::new(SessionOptions::default());
        for principal in &principals {
            let id = manager.create(has_owner.then(|| principal.clone()), |_| ()).unwrap().lease.id();
            drop(manager.enter(&id, Some(principal)).unwrap());
        }
        assert_eq!(manager.metrics().idle, COUNT);
        let each = (ALLOCATOR.allocated() - before) / COUNT;
        println!("{kind}: {each} bytes");
        assert!(each < most, "{kind}: {each} bytes");
        drop(manager.shutdown());
        let left = ALLOCATOR.allocated() - before;
        assert!(left < 4096, "{left} bytes are left of {COUNT} sessions");
        drop(manager);
    }
}
