//! Pauses, in which the timeouts of calls stand still.

use std::time::Duration;

use mcp_kernel::client::ConnectError;
use mcp_types::SubscriptionFilter;

use super::*;

const IDLE: Duration = Duration::from_secs(8);
const TOTAL: Duration = Duration::from_secs(20);
const LONG: Duration = Duration::from_secs(3600);
const ERAS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

impl Script {
    fn timed_call(&mut self, idle: Option<Duration>, total: Option<Duration>) -> CallId {
        let options = CallOptions::default().idle_timeout(idle).total_timeout(total);
        let call = self.client.call(self.now, &Method::TOOLS_LIST, &RawObject::empty(), options).expect("a call");
        self.sent();
        call
    }

    /// Lets time pass; returns the calls that timed out.
    fn pass(&mut self, time: Duration) -> Vec<CallId> {
        self.now += time;
        self.client.handle_timeout(self.now);
        let mut ended = Vec::new();
        while let Some(event) = self.client.poll_event() {
            if let Event::CallFinished { call, outcome: Err(CallError::TimedOut) } = event {
                ended.push(call);
            } else {
                assert!(matches!(event, Event::CallProgress { .. }), "{event:?}");
            }
        }
        ended
    }

    fn paused(&mut self, call: Option<CallId>, time: Duration) {
        self.client.pause_timeouts(self.now, call);
        assert_eq!(self.pass(time), []);
        self.client.resume_timeouts(self.now, call);
    }

    /// Reports progress of the first call in a session.
    fn progress(&mut self) {
        let params = json!({ "progressToken": 2, "progress": 1 });
        self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }));
    }
}

/// Both timeouts continue with what was left of them.
#[test]
fn a_pause_counts_towards_no_timeout() {
    for era in ERAS {
        for (idle, total, limit) in [(Some(IDLE), None, IDLE), (None, Some(TOTAL), TOTAL)] {
            for all in [false, true] {
                let mut script = Script::ready(era);
                let call = script.timed_call(idle, total);
                let paused = (!all).then_some(call);
                assert_eq!(script.pass(limit / 4), []);
                script.paused(paused, LONG);
                assert_eq!(script.pass(limit / 4), []);
                script.paused(paused, LONG);
                assert_eq!(script.pass(limit / 2 - Duration::from_millis(1)), []);
                assert_eq!(script.pass(Duration::from_millis(1)), [call]);
            }
        }
    }
}

/// The pause of one call does not affect others; that of all includes calls that are made in it.
#[test]
fn a_pause_is_of_one_call_or_of_all() {
    for era in ERAS {
        let mut script = Script::ready(era);
        let (one, other) = (script.timed_call(Some(IDLE), None), script.timed_call(Some(IDLE), None));
        script.client.pause_timeouts(script.now, Some(one));
        assert_eq!(script.pass(IDLE), [other]);
        script.client.pause_timeouts(script.now, None);
        let later = script.timed_call(Some(IDLE), Some(TOTAL));
        assert_eq!(script.pass(LONG), []);
        assert_eq!(script.client.poll_timeout(), None);
        script.client.resume_timeouts(script.now, None);
        assert_eq!(script.pass(IDLE), [later], "the other call is still in a pause of its own");
        script.client.resume_timeouts(script.now, Some(one));
        assert_eq!(script.pass(IDLE), [one]);
    }
}

/// Pauses that overlap are one.
#[test]
fn pauses_nest() {
    let mut script = Script::ready(Revision::V2026_07_28);
    let call = script.timed_call(Some(IDLE), None);
    assert_eq!(script.pass(IDLE / 2), []);
    for _ in 0..2 {
        script.client.pause_timeouts(script.now, Some(call));
        assert_eq!(script.pass(LONG), []);
    }
    script.client.resume_timeouts(script.now, Some(call));
    assert_eq!(script.pass(LONG), []);
    script.client.resume_timeouts(script.now, Some(call));
    assert_eq!(script.pass(IDLE / 2 - Duration::from_millis(1)), []);
    assert_eq!(script.pass(Duration::from_millis(1)), [call]);
}

/// A call that ends in a pause leaves nothing behind, and the end of its pause has no effect.
#[test]
fn a_call_may_end_in_a_pause() {
    for era in ERAS {
        let mut script = Script::ready(era);
        let (call, id) = script.call();
        script.client.pause_timeouts(script.now, Some(call));
        script.say(&json!({ "jsonrpc": "2.0", "id": id, "result": { "tools": [], "resultType": "complete" } }));
        assert!(matches!(script.event(), Event::CallFinished { outcome: Ok(_), .. }));
        script.client.resume_timeouts(script.now, Some(call));
        script.assert_nothing_left();
    }
}

/// Progress in a pause restarts the idle timeout, which begins with the end of the pause.
#[test]
fn progress_counts_in_a_pause() {
    let mut script = Script::ready(Revision::V2025_11_25);
    let call = script.timed_call(Some(IDLE), None);
    assert_eq!(script.pass(IDLE / 2), []);
    script.client.pause_timeouts(script.now, Some(call));
    script.progress();
    assert_eq!(script.pass(LONG), []);
    script.client.resume_timeouts(script.now, Some(call));
    assert_eq!(script.pass(IDLE - Duration::from_millis(1)), []);
    assert_eq!(script.pass(Duration::from_millis(1)), [call]);
}

/// A request of the server that has a response before or in a pause restarts the idle timeout as it does otherwise.
// covers: SEC-14
#[test]
fn requests_of_the_server_count_in_a_pause() {
    let mut script = Script::ready(Revision::V2025_11_25);
    let call = script.timed_call(Some(IDLE), None);
    for is_before in [true, false] {
        assert_eq!(script.pass(IDLE / 2), []);
        script.say(&roots("a"));
        let responder = script.asked();
        if is_before {
            assert!(script.client.respond(script.now, responder, Ok(&RawObject::empty())));
            script.paused(Some(call), LONG);
        } else {
            script.client.pause_timeouts(script.now, Some(call));
            assert_eq!(script.pass(LONG), []);
            assert!(script.client.respond(script.now, responder, Ok(&RawObject::empty())));
            assert_eq!(script.pass(LONG), []);
            script.client.resume_timeouts(script.now, Some(call));
        }
        script.sent();
        assert_eq!(script.pass(IDLE - Duration::from_millis(1)), []);
        script.progress();
    }
    assert_eq!(script.pass(IDLE), [call]);
}

/// The probe and the handshake can be paused, too.
#[test]
fn connecting_can_be_paused() {
    let mut config = ClientConfig::new(Implementation::new("client", "1"), ClientCapabilities::default());
    let timeout = config.handshake_timeout.max(config.probe_timeout);
    (config.probe_timeout, config.handshake_timeout) = (timeout, timeout);
    config.silence_means_legacy = false;
    let config = Arc::new(config);
    for detected in [None, Some(DetectedRevision::new(Revision::V2025_11_25))] {
        let mut script = Script { client: Connection::new(Arc::clone(&config)), now: Time::EPOCH };
        script.client.start(script.now, detected);
        let Some(Transmit::Send { call, .. }) = script.client.poll_transmit() else { panic!("nothing was sent") };
        script.paused(call, LONG);
        assert_eq!(script.pass(timeout - Duration::from_millis(1)), []);
        script.now += Duration::from_millis(1);
        script.client.handle_timeout(script.now);
        assert!(matches!(script.event(), Event::Failed(ConnectError::TimedOut)));
    }
}

/// The acknowledgement of a subscription has a timeout, which ends with it and can be paused; the subscription has none.
// covers: K-15
#[test]
fn the_acknowledgement_of_a_subscription_has_a_timeout() {
    for is_acknowledged in [false, true] {
        let mut script = Script::ready(Revision::V2026_07_28);
        let filter = SubscriptionFilter::default().tools_list_changed(true);
        let call = script.client.listen(script.now, filter, Some(IDLE)).expect("modern");
        let id = script.sent()["id"].clone();
        script.paused(Some(call), LONG);
        assert_eq!(script.pass(IDLE - Duration::from_millis(1)), []);
        if is_acknowledged {
            let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
            let params = json!({ "_meta": meta, "notifications": { "toolsListChanged": true } });
            let method = "notifications/subscriptions/acknowledged";
            script.say(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
            assert!(matches!(script.event(), Event::Listening { .. }));
            assert_eq!(script.pass(LONG), []);
        } else {
            assert_eq!(script.pass(Duration::from_millis(1)), [call]);
        }
    }
}
