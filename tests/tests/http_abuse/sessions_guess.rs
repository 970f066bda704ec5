//! Names of sessions and of events that are made up, or somebody else's.

use mcp_server::Change;

use crate::heap::alone;
use crate::mistreat::mistreat_sessions;
use crate::sessions::{HELLO, Session, all_of, ask, ids, request, short};
use crate::tally::repeated;
use crate::wire::post;

/// Whoever does not know the name of a session finds none, and makes none.
#[test]
fn names_of_sessions() {
    let alone = alone();
    mistreat_sessions(&alone, "names of sessions", 1, short(), async |arena| {
        let mine = Session::begin(arena).await;
        let id = mine.0.clone();
        let mut changed = id.clone().into_bytes();
        changed[0] = if changed[0] == b'0' { b'1' } else { b'0' };
        let names = [
            String::new(),
            " ".to_owned(),
            "a".to_owned(),
            "0".repeat(64),
            "../../etc/passwd".to_owned(),
            "null".to_owned(),
            id[..63].to_owned(),
            id[1..].to_owned(),
            format!("{id}0"),
            format!("{id},{id}"),
            format!("{id}, {id}"),
            format!("\"{id}\""),
            format!("{id}\r\nMcp-Session-Id: {id}"),
            format!("{id}\r\nMcp-Session-Id: "),
            id.to_uppercase().replace(char::is_numeric, "A"),
            "f".repeat(8000),
            String::from_utf8(changed).expect("text"),
            "\u{e4}\u{f6}\u{fc}".to_owned(),
        ];
        for name in &names {
            let other = Session(name.clone());
            for bytes in [other.call(1, "wait", "{}"), other.get(None), other.delete(), other.post(b"{}")] {
                let answer = ask(arena, &bytes).await;
                let case: String = name.chars().take(80).collect();
                assert!(matches!(answer.status, 400 | 404), "{case:?}: {answer:?}");
                assert!(answer.body.len() < 1024 && answer.header("mcp-session-id").is_none(), "{case:?}: {answer:?}");
            }
            assert_eq!(arena.sessions(), 1);
        }
        // What no header may hold is no request at all.
        for byte in [0, 1, 7, 10, 127] {
            let mut bytes = mine.call(1, "wait", "{}");
            let at = bytes.windows(8).position(|window| window == &id.as_bytes()[..8]).expect("it is there");
            bytes[at + 3] = byte;
            assert_eq!(arena.status(&bytes).await, Some(400), "{byte}");
        }
        // 1,000 guesses are as good as one.
        let mut client = arena.connect().await;
        for guess in 0..1000_u64 {
            client
                .send(&Session(format!("{:064x}", guess.wrapping_mul(0x9e37_79b9_7f4a_7c15))).call(1, "wait", "{}"))
                .await;
            assert_eq!(client.answer().await.map(|answer| answer.status), Some(404));
        }
        drop(client);
        assert_eq!(arena.sessions(), 1);
        // Without a name only a handshake gets anywhere.
        let nameless = post("MCP-Protocol-Version: 2025-11-25\r\n", request(1, "tools/list", "{}").as_bytes());
        assert_eq!(arena.status(&nameless).await, Some(400));
        mine.works(arena).await;
        mine.end(arena).await;
        repeated(names.len() * 4 + 5 + 1000, "requests")
    });
}

/// The name of one session with the revision of another, or none: it is refused, and the session goes on.
#[test]
fn revisions_that_differ() {
    let alone = alone();
    mistreat_sessions(&alone, "revisions that differ", 2, short(), async |arena| {
        let mine = Session::begin(arena).await;
        for version in ["2025-06-18", "2024-11-05", "1999-01-01", "x", ""] {
            for bytes in [mine.call(1, "wait", "{}"), mine.get(None), mine.delete()] {
                let bytes = String::from_utf8(bytes).expect("text").replace("2025-11-25", version);
                let answer = ask(arena, bytes.as_bytes()).await;
                assert_eq!(answer.status, 400, "{version}: {answer:?}");
            }
        }
        // A handshake in a session is another session, or is refused; it is not the end of the first.
        let answer = ask(arena, &mine.post(HELLO.as_bytes())).await;
        assert!(matches!(answer.status, 200 | 400), "{answer:?}");
        assert_ne!(answer.header("mcp-session-id"), Some(mine.0.as_str()));
        mine.works(arena).await;
        mine.end(arena).await;
        repeated(16, "requests")
    });
}

/// Event ids that were never sent, or sent to somebody else, get nothing of what was.
#[test]
fn names_of_events() {
    let alone = alone();
    mistreat_sessions(&alone, "names of events", 2, short(), async |arena| {
        let (mine, yours) = (Session::begin(arena).await, Session::begin(arena).await);
        // Each has a stream with events: one of a request, and one of the session.
        let mut known = Vec::new();
        for session in [&mine, &yours] {
            session.subscribe(arena).await;
            let (mut stream, first) = session.stream(arena, None).await;
            arena.server.publish(&Change::Resource("test:text".to_owned()));
            let event = String::from_utf8(stream.chunk().await.expect("an event")).expect("text");
            arena.gate.open(1);
            let mut client = arena.connect().await;
            client.send(&session.call(1, "flood", r#"{"messages":3,"bytes":9}"#)).await;
            assert_eq!(client.head().await.map(|head| head.status), Some(200));
            let events = all_of(&mut client).await;
            known.push([ids(&first), ids(&event), ids(&events)].concat());
        }
        assert!(known.iter().all(|ids| ids.len() >= 4), "{known:?}");
        let mut wrong: Vec<String> = known[1].clone();
        for id in &known[0] {
            wrong.extend([id[1..].to_owned(), id[..id.len() - 1].to_owned(), format!("{id}A"), format!("{id}=")]);
            wrong.push(id.to_lowercase());
            wrong.push(format!("{id}\r\nLast-Event-ID: {id}"));
            for at in (0..id.len()).step_by(5) {
                let mut bytes = id.clone().into_bytes();
                bytes[at] = if bytes[at] == b'B' { b'C' } else { b'B' };
                wrong.push(String::from_utf8(bytes).expect("text"));
            }
        }
        // The stream of one with the code of the other.
        let (one, other) = (&known[0][0], known[0].last().expect("there is one"));
        wrong.push(format!("{}{}", &one[..21], &other[21..]));
        let more = ["0", "1", "-1", "*", "null", "18446744073709551616", "%00", "\u{e4}"].map(str::to_owned);
        wrong.extend(more.into_iter().chain(["A".repeat(43), "A".repeat(8000)]));
        let count = wrong.len();
        for id in wrong {
            let answer = ask(arena, &mine.get(Some(&id))).await;
            let told = String::from_utf8_lossy(&answer.body);
            assert_eq!(answer.status, 400, "{id:?}: {answer:?}");
            assert!(!told.contains("jsonrpc\":\"2.0\",\"method") && told.len() < 1024, "{id:?}: {told}");
        }
        // Those that were sent still work, for whom they were sent to: what came after them in the same stream.
        let (mut stream, _) = mine.stream(arena, Some(&known[0][0])).await;
        let first = String::from_utf8(stream.chunk().await.expect("an event")).expect("text");
        assert!(first.contains("notifications/resources/updated") && !first.contains("progress"), "{first}");
        drop(stream);
        let mut client = arena.connect().await;
        client.send(&mine.get(Some(&known[0][2]))).await;
        assert_eq!(client.head().await.map(|head| head.status), Some(200));
        let events = all_of(&mut client).await;
        assert!(events.contains("reported 3 times") && !events.contains("updated"), "{events}");
        drop(client);
        for session in [mine, yours] {
            session.works(arena).await;
            session.end(arena).await;
        }
        repeated(count, "requests")
    });
}
