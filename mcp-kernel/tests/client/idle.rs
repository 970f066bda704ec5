//! The idle deadline of a call, which stands still while the server waits for the client.

use std::time::Duration;

use super::*;

const IDLE: Duration = Duration::from_secs(8);

impl Script {
    /// Makes a call that may be silent for a while.
    fn idle_call(&mut self) -> CallId {
        let options = CallOptions::default().idle_timeout(Some(IDLE));
        let call = self.client.call(self.now, &Method::TOOLS_LIST, &RawObject::empty(), options).expect("a call");
        self.sent();
        call
    }

    /// Lets time pass; returns whether it ended a call.
    fn times_out(&mut self, call: CallId, time: Duration) -> bool {
        self.now += time;
        self.client.handle_timeout(self.now);
        match self.client.poll_event() {
            None => false,
            Some(Event::CallFinished { call: ended, outcome: Err(CallError::TimedOut) }) => ended == call,
            other => panic!("{other:?}"),
        }
    }

    fn answer(&mut self, responder: Responder) {
        assert!(self.client.respond(self.now, responder, Ok(&RawObject::empty())));
        self.sent();
    }
}

/// An answer that comes before the idle deadline does starts it anew, too.
// covers: SEC-14
#[test]
fn sec_14_an_early_answer_starts_the_time_anew() {
    let mut script = Script::ready(Revision::V2025_11_25);
    let call = script.idle_call();
    assert!(!script.times_out(call, IDLE / 2));
    script.say(&roots("a"));
    let responder = script.asked();
    assert!(!script.times_out(call, IDLE / 4));
    script.answer(responder);
    assert!(!script.times_out(call, IDLE * 3 / 4));
    assert!(script.times_out(call, IDLE / 4));
}

/// The deadline stands still until the last request of the server is answered.
// covers: SEC-14
#[test]
fn sec_14_each_request_of_the_server_is_waited_for() {
    let mut script = Script::ready(Revision::V2025_11_25);
    let call = script.idle_call();
    script.say(&roots("a"));
    let first = script.asked();
    script.say(&roots("b"));
    let second = script.asked();
    script.answer(first);
    assert!(!script.times_out(call, IDLE * 4));
    script.answer(second);
    assert!(!script.times_out(call, IDLE / 2));
    assert!(script.times_out(call, IDLE / 2));
}

/// With its session, what a server asked is over; calls that stay open are timed again.
// covers: SEC-14
#[test]
fn sec_14_a_lost_session_waits_for_nothing() {
    let mut script = Script::ready(Revision::V2025_11_25);
    let call = script.idle_call();
    script.say(&roots("a"));
    let _unanswered = script.asked();
    assert!(!script.times_out(call, IDLE * 4));
    let now = script.now;
    script.client.handle_session_lost(now, None, true);
    assert_eq!(script.sent()["method"], "initialize");
    assert!(matches!(script.event(), Event::RequestCancelled { .. }));
    assert!(!script.times_out(call, IDLE / 2));
    assert!(script.times_out(call, IDLE / 2));
}

/// Nor does a server that was started again wait for what the one before asked.
// covers: SEC-14
#[test]
fn sec_14_a_restarted_server_waits_for_nothing() {
    let revision = Revision::V2025_11_25;
    let mut script = Script::ready(revision);
    script.say(&roots("a"));
    let _unanswered = script.asked();
    let now = script.now;
    script.client.restart(now, Some(DetectedRevision::new(revision)));
    assert!(matches!(script.event(), Event::RequestCancelled { .. }));
    script.shake_hands(revision);
    let call = script.idle_call();
    assert!(script.times_out(call, IDLE));
}
