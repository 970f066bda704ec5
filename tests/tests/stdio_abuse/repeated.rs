//! One request at a time that is wrong, again and again.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::harness::{LIMIT, Peer, SERVER, call, code, initialize, modern, request};
use crate::rounds::{processes, rounds};
use crate::tally::repeated;

/// How many requests there are in a round, and how many of them are on their way at once.
const ROUND: usize = 1000;
const AT_ONCE: usize = 100;

/// Sends lines again and again, each of which is answered once, and compares memory before and after.
fn repeat(name: &str, args: &[&str], line: impl Fn(usize) -> String, check: impl Fn(&Value)) {
    let mut peer = Peer::start_with(args);
    peer.handshake("2025-06-18");
    let mut sent = 0;
    rounds(name, &mut peer, |peer| {
        for _ in 0..ROUND / AT_ONCE {
            peer.write((sent..sent + AT_ONCE).map(|n| line(n) + "\n").collect::<String>());
            for _ in 0..AT_ONCE {
                check(&peer.recv());
            }
            sent += AT_ONCE;
        }
        repeated(ROUND, "requests")
    });
    peer.finish();
}

// covers: INT-1
#[test]
fn int_1_handshakes_again_and_again() {
    let same = |_: usize| initialize("same", "2025-06-18").to_string();
    repeat("same handshakes", &[], same, |answer| assert!(answer.get("result").is_some(), "{answer}"));
    let other = |n: usize| {
        let mut other = initialize(n, "2025-06-18");
        other["params"]["capabilities"] = json!({ "experimental": { format!("x{n}"): { "y": "z".repeat(1000) } } });
        other.to_string()
    };
    repeat("other handshakes", &[], other, |answer| assert_eq!(code(answer), -32600));
    let anew = |answer: &Value| assert!(answer.get("result").is_some(), "{answer}");
    repeat("handshakes on a shared pipe", &["--shared-pipe", "1"], other, anew);
}

/// What is skipped is scanned for its id, which must not add up.
// covers: INT-3
#[test]
fn int_3_long_lines_again_and_again() {
    let long = |n: usize| {
        let params = format!(r#""params":{{"id":"no","text":"{}"}}"#, "x".repeat(20_000));
        match n % 2 {
            0 => format!(r#"{{"jsonrpc":"2.0","id":"{n}","method":"ping",{params}}}"#),
            _ => format!(r#"{{"jsonrpc":"2.0","method":"ping",{params},"id":"{n}"}}"#),
        }
    };
    repeat("lines that are too long", &["--line-limit", "10000"], long, |answer| {
        assert_eq!(code(answer), -32600);
        assert!(answer["id"].as_str().is_some_and(|id| id.parse::<usize>().is_ok()), "{answer}");
    });
}

// covers: SEC-12
#[test]
fn sec_12_names_and_addresses_again_and_again() {
    let unknown = |n: usize| modern(call(n, &"x".repeat(10_000), json!({}))).to_string();
    repeat("unknown tools", &[], unknown, |answer| assert_eq!(code(answer), -32602));
    let address = |n: usize| request(n, "resources/read", json!({ "uri": format!("test:{}", "x".repeat(10_000)) }));
    repeat("long addresses", &[], |n| address(n).to_string(), |answer| assert_eq!(code(answer), -32602));
}

/// A server that is started for a connection to a network socket, as by inetd, ends at what is not for it.
// covers: SEC-3
#[test]
fn sec_3_standard_input_may_be_a_socket() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let run = |bytes: &str| {
        let mut client = TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
        let (theirs, _) = listener.accept().expect("a client");
        let (input, output) = (theirs.try_clone().expect("a socket"), theirs);
        let mut command = Command::new(SERVER);
        command.stdin(Stdio::from(OwnedFd::from(input))).stdout(Stdio::from(OwnedFd::from(output)));
        let mut server = command.stderr(Stdio::null()).spawn().expect("the server starts");
        drop(command);
        client.set_read_timeout(Some(LIMIT)).expect("a socket");
        let _ = client.write_all(bytes.as_bytes());
        let _ = client.shutdown(Shutdown::Write);
        let mut heard = Vec::new();
        let _ = client.read_to_end(&mut heard);
        assert!(server.wait().expect("it is ours").success());
        String::from_utf8(heard).expect("text")
    };
    let echo = modern(call(1, "echo", json!({ "text": "echoed" })));
    let post = format!("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9999\r\n\r\n{echo}\n");
    processes("requests of HTTP on standard input", || {
        assert!(!run(&post).contains("echoed"));
        assert!(run(&format!("{echo}\n")).contains("echoed"));
        repeated(2, "connections")
    });
}
