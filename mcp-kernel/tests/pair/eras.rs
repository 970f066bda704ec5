//! Finding each other.

use std::time::Duration;

use mcp_kernel::client::{self, ConnectError, DetectedRevision, Mode};
use mcp_types::{Method, Revision};

use mcp_testkit::Pair;

fn of(revisions: &[Revision]) -> Vec<Revision> {
    revisions.to_vec()
}

const LEGACY: [Revision; 4] =
    [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25];

/// The probe finds a modern server, and learns what it offers.
// covers: DU-1, DU-3, DU-30, DU-40, V-4, V-6, X-15
#[test]
fn a_modern_server_is_found() {
    let mut pair = Pair::new(Pair::client_config(), Pair::server_config());
    pair.client.start(pair.now, None);
    pair.drive();
    let Some(client::Event::Ready { revision, server }) = pair.client_events.pop_front() else { panic!("ready") };
    assert_eq!(revision, Revision::V2026_07_28);
    assert!(server.capabilities.is_some_and(|capabilities| capabilities.tools.is_some()));
    assert_eq!(server.info.map(|info| info.name), Some("server".to_owned()));
    assert_eq!(pair.client.detected_revision(), Some(DetectedRevision::new(Revision::V2026_07_28)));
    pair.assert_idle();
}

/// A legacy server refuses the probe, and the handshake follows on the same pipe.
// covers: DU-4, DU-33, DU-43
#[test]
fn a_legacy_server_is_found() {
    for newest in LEGACY {
        let mut server = Pair::server_config();
        server.revisions = LEGACY.into_iter().filter(|revision| *revision <= newest).collect();
        let mut pair = Pair::new(Pair::client_config(), server);
        pair.client.start(pair.now, None);
        pair.drive();
        let ready = pair.client_events.pop_front();
        assert!(
            matches!(ready, Some(client::Event::Ready { revision, .. }) if revision == newest),
            "{newest}: {ready:?}"
        );
        assert_eq!(pair.server.negotiated(), Some(newest));
        pair.server_events.clear();
        pair.assert_idle();
    }
}

/// A client that is set to legacy does not probe.
// covers: DU-6, DU-7, DU-42
#[test]
fn a_legacy_client_shakes_hands_at_once() {
    let mut client = Pair::client_config();
    client.mode = Mode::Legacy;
    let mut pair = Pair::new(client, Pair::server_config());
    pair.client.start(pair.now, None);
    pair.collect();
    assert!(String::from_utf8(pair.to_server[0].clone()).expect("text").contains(r#""method":"initialize""#));
    pair.drive();
    assert_eq!(pair.client.detected_revision(), Some(DetectedRevision::new(Revision::V2025_11_25)));
    pair.client_events.clear();
    pair.server_events.clear();
    pair.assert_idle();
}

/// Where there is no common revision, both sides can say so.
// covers: DU-2, DU-5
#[test]
fn strangers_part_with_a_reason() {
    let mut client = Pair::client_config();
    client.mode = Mode::Modern;
    let mut server = Pair::server_config();
    server.revisions = of(&LEGACY);
    let mut pair = Pair::new(client, server);
    pair.client.start(pair.now, None);
    pair.drive();
    assert!(matches!(pair.client_events.pop_front(), Some(client::Event::Failed(_))));

    let mut client = Pair::client_config();
    client.mode = Mode::Legacy;
    let mut server = Pair::server_config();
    server.revisions = of(&[Revision::V2026_07_28]);
    let mut pair = Pair::new(client, server);
    pair.client.start(pair.now, None);
    pair.drive();
    let failed = pair.client_events.pop_front();
    let Some(client::Event::Failed(why @ ConnectError::NoCommonVersion { .. })) = failed else { panic!("{failed:?}") };
    assert!(why.to_string().contains("2026-07-28"), "V-9: the versions are named");
}

/// Silence means legacy, and the answer to the probe does no harm after the handshake.
// covers: DU-33, RB-8
#[test]
fn a_late_answer_to_the_probe_is_no_offence() {
    let mut pair = Pair::new(Pair::client_config(), Pair::server_config());
    pair.client.start(pair.now, None);
    pair.collect();
    let probe = pair.to_server.pop_front().expect("the probe");
    pair.advance(Duration::from_secs(6));
    pair.drive();
    pair.server.handle_bytes(pair.now, &probe, None);
    pair.drive();
    assert_eq!(pair.client.detected_revision(), Some(DetectedRevision::new(Revision::V2025_11_25)));
    pair.client_events.clear();
    pair.server_events.clear();
    pair.assert_idle();
}

/// A server that is silent is sent the handshake after a second.
// covers: INT-7
#[test]
fn int_7_silence_costs_a_second() {
    let mut pair = Pair::new(Pair::client_config(), Pair::server_config());
    pair.client.start(pair.now, None);
    pair.collect();
    assert_eq!(pair.to_server.len(), 1);
    pair.advance(Duration::from_millis(999));
    pair.collect();
    assert_eq!(pair.to_server.len(), 1);
    pair.advance(Duration::from_millis(1));
    pair.collect();
    let handshake = String::from_utf8_lossy(&pair.to_server[1]);
    assert!(handshake.contains(r#""method":"initialize""#), "{handshake}");
}

/// A server of both eras that only started slowly answers the probe before the handshake, and ends up modern.
// covers: INT-7
#[test]
fn int_7_a_slow_server_of_both_eras_ends_up_modern() {
    let mut pair = Pair::new(Pair::client_config(), Pair::server_config());
    pair.client.start(pair.now, None);
    pair.collect();
    let probe = pair.to_server.pop_front().expect("the probe");
    pair.advance(Duration::from_secs(6));
    pair.server.handle_bytes(pair.now, &probe, None);
    pair.drive();
    assert_eq!(pair.client.detected_revision(), Some(DetectedRevision::new(Revision::V2026_07_28)));
    let news: Vec<_> = pair.client_events.drain(..).collect();
    assert_eq!(news.iter().filter(|event| matches!(event, client::Event::Ready { .. })).count(), 1, "{news:?}");
    assert!(!news.iter().any(|event| matches!(event, client::Event::Failed(_))), "{news:?}");
    pair.server_events.clear();
    pair.assert_idle();
}

/// Where there are doubts about a legacy detected revision, the probe and the handshake are sent at once, and nobody waits.
// covers: INT-7
#[test]
fn int_7_a_doubtful_detected_revision_costs_no_time() {
    for (revision, expected) in
        [(Revision::V2026_07_28, Revision::V2026_07_28), (Revision::V2025_11_25, Revision::V2025_11_25)]
    {
        let mut server = Pair::server_config();
        server.revisions = of(&[Revision::V2025_11_25, revision]);
        let mut pair = Pair::new(Pair::client_config(), server);
        pair.client.start(pair.now, Some(DetectedRevision::new(Revision::V2025_11_25).probe_again(true)));
        pair.collect();
        assert_eq!(pair.to_server.len(), 2);
        pair.drive();
        assert_eq!(pair.client.detected_revision(), Some(DetectedRevision::new(expected)));
        pair.client_events.clear();
        pair.server_events.clear();
        pair.assert_idle();
    }
}

/// A server that is gone without having read the probe did not die of it.
// covers: INT-7
#[test]
fn int_7_who_has_read_nothing_is_not_started_again() {
    let mut pair = Pair::new(Pair::client_config(), Pair::server_config());
    pair.client.start(pair.now, None);
    pair.client.handle_disconnect_unread();
    pair.collect();
    let news: Vec<_> = pair.client_events.drain(..).collect();
    assert!(matches!(news[..], [client::Event::Failed(_), client::Event::Closed]), "{news:?}");
    // One that read it, and was slow to, may have.
    let mut pair = Pair::new(Pair::client_config(), Pair::server_config());
    pair.client.start(pair.now, None);
    pair.advance(Duration::from_secs(6));
    pair.client.handle_disconnect();
    pair.collect();
    let news: Vec<_> = pair.client_events.drain(..).collect();
    assert!(matches!(news[..], [client::Event::RestartNeeded { .. }, client::Event::Closed]), "{news:?}");
}

/// A modern server that only started slowly is found when it refuses the handshake.
// covers: DU-33, DU-41
#[test]
fn a_slow_modern_server_is_found_after_all() {
    let mut server = Pair::server_config();
    server.revisions = of(&[Revision::V2026_07_28]);
    let mut pair = Pair::new(Pair::client_config(), server);
    pair.client.start(pair.now, None);
    pair.collect();
    let probe = pair.to_server.pop_front().expect("the probe");
    pair.advance(Duration::from_secs(6));
    pair.server.handle_bytes(pair.now, &probe, None);
    pair.drive();
    assert_eq!(pair.client.detected_revision(), Some(DetectedRevision::new(Revision::V2026_07_28)));
    pair.client_events.clear();
    pair.server_events.clear();
    pair.assert_idle();
}

/// A server that refuses the handshake and stays silent otherwise is given up.
// covers: DU-33
#[test]
fn doubts_about_silence_end() {
    let mut server = Pair::server_config();
    server.revisions = of(&[Revision::V2026_07_28]);
    let mut pair = Pair::new(Pair::client_config(), server);
    pair.client.start(pair.now, None);
    let mut probes = 0;
    for _ in 0..20 {
        pair.collect();
        if let Some(message) = pair.to_server.pop_front() {
            if String::from_utf8_lossy(&message).contains("server/discover") {
                probes += 1;
                pair.advance(Duration::from_secs(6));
            } else {
                pair.server.handle_bytes(pair.now, &message, None);
            }
        } else if let Some(message) = pair.to_client.pop_front() {
            pair.client.handle_bytes(pair.now, &message);
        }
    }
    assert_eq!(probes, 2);
    let news: Vec<_> = pair.client_events.drain(..).collect();
    assert!(news.iter().any(|event| matches!(event, client::Event::Failed(_))), "{news:?}");
    assert!(pair.client.is_idle());
}

/// A server that dies of the probe needs a new process.
// covers: DU-34
#[test]
fn a_server_that_dies_of_the_probe_is_restarted() {
    let mut pair = Pair::new(Pair::client_config(), Pair::server_config());
    pair.client.start(pair.now, None);
    pair.collect();
    pair.client.handle_disconnect();
    pair.collect();
    let Some(client::Event::RestartNeeded { detected }) = pair.client_events.pop_front() else { panic!("a restart") };
    assert!(matches!(pair.client_events.pop_front(), Some(client::Event::Closed)));

    let mut pair = Pair::new(Pair::client_config(), Pair::server_config());
    pair.client.start(pair.now, Some(detected));
    pair.drive();
    assert_eq!(pair.server.negotiated(), Some(Revision::V2025_11_25));
}

/// A detected revision that was kept saves the probe.
// covers: V-1, V-5, V-10, V-11, DU-41, S3.F13
#[test]
fn a_detected_revision_saves_the_probe() {
    let mut pair = Pair::new(Pair::client_config(), Pair::server_config());
    pair.client.start(pair.now, Some(DetectedRevision::new(Revision::V2026_07_28)));
    pair.collect();
    assert!(pair.to_server.is_empty());
    assert!(matches!(pair.client_events.pop_front(), Some(client::Event::Ready { .. })));
    let call = pair.call(&Method::TOOLS_LIST, "{}");
    pair.drive();
    let (scope, _, responder) = pair.expect_request();
    assert_eq!(scope.revision(), Revision::V2026_07_28);
    let _ = pair.server.respond(responder, Ok(mcp_types::ListToolsResult::new(Vec::new())));
    pair.drive();
    assert!(pair.finished(call).expect("a result").contains(r#""resultType":"complete""#));
    pair.assert_idle();
}

/// What HTTP says about the era, and what it does not.
// covers: DU-27, DU-35..DU-37, DU-39, AMB-10, AU-50
#[test]
fn statuses_are_evidence_only_where_they_are() {
    let probe = |status: u16, body: &str| {
        let mut pair = Pair::new(Pair::client_config(), Pair::server_config());
        pair.client.start(pair.now, None);
        let Some(client::Transmit::Send { call: Some(call), .. }) = pair.client.poll_transmit() else {
            panic!("a probe")
        };
        pair.client.handle_status(pair.now, call, status, body.as_bytes());
        pair.collect();
        (
            pair.client_events.pop_front(),
            pair.to_server.pop_front().map(|message| String::from_utf8(message).expect("text")),
        )
    };
    for (status, body) in [(400, ""), (404, "not found"), (405, ""), (406, ""), (400, r#"{"error":"x"}"#)] {
        let (event, sent) = probe(status, body);
        assert!(event.is_none() && sent.is_some_and(|sent| sent.contains("initialize")), "{status} {body}");
    }
    let unauthorized = r#"{"jsonrpc":"2.0","error":{"code":-32001,"message":"m"},"id":null}"#;
    for (status, body) in [(401, ""), (403, ""), (500, ""), (503, ""), (401, unauthorized), (503, unauthorized)] {
        let (event, sent) = probe(status, body);
        assert!(
            matches!(event, Some(client::Event::Failed(ConnectError::Status { status: seen, .. })) if seen == status)
                && sent.is_none()
        );
    }
    let mismatch = r#"{"jsonrpc":"2.0","error":{"code":-32020,"message":"m"}}"#;
    let (event, _) = probe(400, mismatch);
    assert!(matches!(event, Some(client::Event::Ready { revision: Revision::V2026_07_28, .. })));
}

/// A server that never answers `initialize` is given up.
// covers: RB-9, K-10
#[test]
fn the_handshake_has_an_end() {
    let mut client = Pair::client_config();
    client.mode = Mode::Legacy;
    let mut pair = Pair::new(client, Pair::server_config());
    pair.client.start(pair.now, None);
    let _ = pair.client.poll_transmit();
    pair.advance(Duration::from_secs(61));
    pair.collect();
    assert!(matches!(pair.client_events.pop_front(), Some(client::Event::Failed(ConnectError::TimedOut))));
    assert!(matches!(pair.client_events.pop_front(), Some(client::Event::Closed)));
    assert!(pair.client.is_idle());
}

/// A version that the client does not speak ends the handshake with a reason.
// covers: RB-7
#[test]
fn a_counter_offer_must_be_spoken() {
    let mut client = Pair::client_config();
    client.mode = Mode::Legacy;
    client.revisions = of(&[Revision::V2025_11_25]);
    let mut server = Pair::server_config();
    server.revisions = of(&[Revision::V2024_11_05]);
    let mut pair = Pair::new(client, server);
    pair.client.start(pair.now, None);
    pair.drive();
    let failed = pair.client_events.pop_front();
    assert!(matches!(failed, Some(client::Event::Failed(ConnectError::NoCommonVersion { .. }))), "{failed:?}");
}

/// Over HTTP silence is an outage, and who is set to one era does not leave it.
// covers: DU-27, DU-42
#[test]
fn silence_means_legacy_only_behind_a_pipe() {
    let mut client = Pair::client_config();
    client.silence_means_legacy = false;
    let mut pair = Pair::new(client.clone(), Pair::server_config());
    pair.client.start(pair.now, None);
    pair.advance(Duration::from_secs(6));
    pair.collect();
    assert!(matches!(pair.client_events.pop_front(), Some(client::Event::Failed(ConnectError::TimedOut))));
    for disconnects in [true, false] {
        let mut pair = Pair::new(client.clone(), Pair::server_config());
        pair.client.start(pair.now, None);
        let Some(client::Transmit::Send { call: Some(call), .. }) = pair.client.poll_transmit() else {
            panic!("a probe")
        };
        if disconnects {
            pair.client.handle_disconnect();
        } else {
            pair.client.handle_stream_closed(pair.now, call);
        }
        pair.collect();
        assert!(matches!(pair.client_events.pop_front(), Some(client::Event::Failed(ConnectError::Disconnected))));
    }
    let mut client = Pair::client_config();
    client.mode = Mode::Modern;
    let mut pair = Pair::new(client, Pair::server_config());
    pair.client.start(pair.now, Some(DetectedRevision::new(Revision::V2025_11_25)));
    pair.drive();
    assert_eq!(
        pair.client.detected_revision(),
        Some(DetectedRevision::new(Revision::V2026_07_28)),
        "a detected revision that does not fit is dropped"
    );
}

/// Progress does not keep the probe open.
// covers: K-13
#[test]
fn a_probe_has_an_end_whatever_the_server_says() {
    let mut pair = Pair::new(Pair::client_config(), Pair::server_config());
    pair.client.start(pair.now, None);
    let _ = pair.client.poll_transmit();
    for progress in 1..=3 {
        pair.advance(Duration::from_secs(2));
        let text = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":1,"progress":{progress}}}}}"#
        );
        pair.client.handle_bytes(pair.now, text.as_bytes());
    }
    pair.collect();
    assert!(pair.client_events.is_empty(), "{:?}", pair.client_events);
    assert!(String::from_utf8_lossy(&pair.to_server[0]).contains("initialize"), "the probe is over");
}

/// A server may ask for a sign of life during the handshake.
// covers: B-4
#[test]
fn a_ping_is_answered_during_the_handshake() {
    let mut client = Pair::client_config();
    client.mode = Mode::Legacy;
    let mut pair = Pair::new(client, Pair::server_config());
    pair.client.start(pair.now, None);
    let _ = pair.client.poll_transmit();
    pair.client.handle_bytes(pair.now, br#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
    pair.collect();
    assert_eq!(pair.to_server.pop_front().as_deref(), Some(br#"{"jsonrpc":"2.0","id":"p","result":{}}"#.as_slice()));
}
