//! States that were changed, or that are used for something else.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use mcp_mrtr::{Binding, InvalidState, Key, KeyRing, MemoryReplayGuard, NONCE_BYTES, Sealer};
use mcp_types::jsonrpc::{Limits, PayloadBuf};

const NOW: u64 = 1_000_000;
const NONCE: [u8; NONCE_BYTES] = [7; NONCE_BYTES];

/// Nothing in memory has to wait.
fn ready<T>(future: impl Future<Output = T>) -> T {
    let Poll::Ready(output) = pin!(future).poll(&mut Context::from_waker(Waker::noop())) else { panic!("it waits") };
    output
}

fn key(id: u32) -> Key {
    let mut secret = [0; 32];
    secret[..4].copy_from_slice(&id.to_le_bytes());
    Key::new(id, secret)
}

fn sealer(id: u32) -> Sealer {
    Sealer::new(KeyRing::new(key(id)))
}

fn params(text: &str) -> PayloadBuf {
    PayloadBuf::parse(text, &Limits::default()).expect("an object")
}

fn binding() -> Binding {
    bound(Some((Some("https://issuer"), "alice")), "server", "tools/call", r#"{"name":"delete","arguments":{"n":3}}"#)
}

fn bound(principal: Option<(Option<&str>, &str)>, audience: &str, method: &str, text: &str) -> Binding {
    Binding::new(principal, audience, method, &params(text))
}

fn sealed() -> String {
    sealer(1).seal(NOW, NONCE, &binding(), b"content").expect("a state")
}

#[test]
fn a_state_comes_back_as_it_was() {
    let opened = sealer(1).open(NOW + 599, &binding(), &sealed()).expect("our own");
    assert_eq!(opened.content, b"content");
    assert_eq!((opened.nonce, opened.expires), (NONCE, NOW + 600));
}

/// Not one bit may change, and nothing may be added or taken away.
// covers: R-7
#[test]
fn no_byte_may_change() {
    let (state, sealer, binding) = (sealed(), sealer(1), binding());
    for index in 0..state.len() {
        for bit in 0..8 {
            let mut bytes = state.clone().into_bytes();
            bytes[index] ^= 1 << bit;
            let Ok(changed) = String::from_utf8(bytes) else { continue };
            assert!(sealer.open(NOW, &binding, &changed).is_err(), "byte {index}, bit {bit}");
        }
        assert!(sealer.open(NOW, &binding, &state[..index]).is_err(), "cut at {index}");
    }
    for more in ["A", "AAAA", "=", "-TAMPERED", " ", "\n"] {
        assert!(sealer.open(NOW, &binding, &format!("{state}{more}")).is_err(), "{more:?}");
        assert!(sealer.open(NOW, &binding, &format!("{more}{state}")).is_err(), "{more:?}");
    }
    for nonsense in ["", "x", "====", "AQ==", "null", "\u{0}"] {
        assert!(sealer.open(NOW, &binding, nonsense).is_err(), "{nonsense:?}");
    }
}

/// A state is good for its principal, its server and its request alone, and for a while.
// covers: R-8, R-29, S3.F11, EL-22
#[test]
fn a_state_is_good_for_nothing_else() {
    let alice = Some((Some("https://issuer"), "alice"));
    let call = r#"{"name":"delete","arguments":{"n":3}}"#;
    for (other, rejected) in [
        (bound(Some((Some("https://issuer"), "bob")), "server", "tools/call", call), InvalidState::OtherPrincipal),
        (bound(Some((Some("https://other"), "alice")), "server", "tools/call", call), InvalidState::OtherPrincipal),
        (bound(None, "server", "tools/call", call), InvalidState::OtherPrincipal),
        (bound(alice, "another", "tools/call", call), InvalidState::OtherAudience),
        (bound(alice, "server", "prompts/get", call), InvalidState::OtherRequest),
        (bound(alice, "server", "tools/call", r#"{"name":"keep","arguments":{"n":3}}"#), InvalidState::OtherRequest),
        (
            bound(alice, "server", "tools/call", r#"{"name":"delete","arguments":{"n":300}}"#),
            InvalidState::OtherRequest,
        ),
        (bound(alice, "server", "tools/call", r#"{"name":"delete"}"#), InvalidState::OtherRequest),
    ] {
        assert_eq!(sealer(1).open(NOW, &other, &sealed()), Err(rejected));
    }
    assert_eq!(sealer(1).open(NOW + 600, &binding(), &sealed()), Err(InvalidState::Expired));
}

/// Keys are changed without breaking what is under way; a retired or foreign one opens nothing.
// covers: R-29
#[test]
fn keys_rotate() {
    let both = Sealer::new(KeyRing::new(key(2)).open_with(key(1)));
    assert!(both.open(NOW, &binding(), &sealed()).is_ok());
    let newer = both.seal(NOW, NONCE, &binding(), b"newer").expect("a state");
    assert!(Sealer::new(KeyRing::new(key(1)).open_with(key(2))).open(NOW, &binding(), &newer).is_ok());
    assert_eq!(sealer(2).open(NOW, &binding(), &sealed()), Err(InvalidState::UnknownKey));
    let impostor = Sealer::new(KeyRing::new(Key::new(1, [9; 32])));
    assert_eq!(impostor.open(NOW, &binding(), &sealed()), Err(InvalidState::NotAuthentic));
}

/// With a replay guard a state is good once; without one it is good until it expires.
// covers: R-9, R-29, RB-56
#[test]
fn a_replay_guard_makes_it_once() {
    let (state, guard, sealer) = (sealed(), MemoryReplayGuard::new(10), sealer(1));
    assert!(sealer.open(NOW, &binding(), &state).is_ok() && sealer.open(NOW, &binding(), &state).is_ok());
    assert!(ready(sealer.open_once(NOW, &binding(), &state, &guard)).is_ok());
    assert_eq!(ready(sealer.open_once(NOW, &binding(), &state, &guard)), Err(InvalidState::Replayed));
    let other = sealer.seal(NOW, [8; NONCE_BYTES], &binding(), b"content").expect("a state");
    assert!(ready(sealer.open_once(NOW, &binding(), &other, &guard)).is_ok());
    // What is not authentic must not use anything up.
    let foreign = bound(None, "server", "tools/call", "{}");
    let fresh = sealer.seal(NOW, [9; NONCE_BYTES], &binding(), b"content").expect("a state");
    assert!(ready(sealer.open_once(NOW, &foreign, &fresh, &guard)).is_err());
    assert!(ready(sealer.open_once(NOW, &binding(), &fresh, &guard)).is_ok());
}

#[test]
fn large_states_are_neither_made_nor_read() {
    let small = sealer(1).max_bytes(200);
    assert!(small.seal(NOW, NONCE, &binding(), &[0; 200]).is_err());
    let large = sealer(1).seal(NOW, NONCE, &binding(), &[0; 200]).expect("a state");
    assert_eq!(small.open(NOW, &binding(), &large), Err(InvalidState::TooLarge));
}

/// Whoever tries learns nothing from the refusal.
// covers: R-25
#[test]
fn all_refusals_look_the_same() {
    let all = [
        InvalidState::TooLarge,
        InvalidState::Malformed,
        InvalidState::UnknownVersion,
        InvalidState::UnknownKey,
        InvalidState::NotAuthentic,
        InvalidState::Expired,
        InvalidState::OtherPrincipal,
        InvalidState::OtherAudience,
        InvalidState::OtherRequest,
        InvalidState::Replayed,
    ];
    let first = InvalidState::Malformed.to_error_object();
    assert_eq!(first.code.get(), -32602);
    assert!(all.iter().all(|rejected| rejected.to_error_object() == first));
}
