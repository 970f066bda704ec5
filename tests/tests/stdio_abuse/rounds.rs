//! Abuses of a server that are repeated, and how much memory it has before and after.

use crate::harness::{MIB, Peer};
use crate::tally::{Repeated, Tally, requested};

/// How much an abuse may leave behind, in KiB: what an allocator keeps.
pub(crate) const LEFT: u64 = 4 * MIB;

/// Repeats an abuse of one server, and compares its memory before and after.
pub(crate) fn rounds(name: &str, peer: &mut Peer, mut round: impl FnMut(&mut Peer) -> Repeated) {
    // What is allocated once is allocated in the first of many rounds.
    if requested().is_some() {
        round(peer);
    }
    let before = peer.settled();
    let mut tally = Tally::start(name, 1);
    while tally.goes_on() {
        tally.add(round(peer));
    }
    let after = peer.settled();
    tally.print(format_args!("{} KiB resident before, {} after", before.now, after.now));
    assert!(after.now < before.now + LEFT, "{name}: {before:?} {after:?}");
}

/// Repeats an abuse that ends its server: there is a new one each time, and no memory to compare.
pub(crate) fn processes(name: &str, round: impl Fn() -> Repeated) {
    let mut tally = Tally::start(name, 1);
    while tally.goes_on() {
        tally.add(round());
    }
    tally.print("each in a process of its own");
}
