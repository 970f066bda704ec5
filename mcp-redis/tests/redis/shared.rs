//! What instances share beside sessions: handles, states and proofs that were used.

use std::time::{SystemTime, UNIX_EPOCH};

use mcp_auth::server::ledger_tests::check_proof_ledger;
use mcp_mrtr::guard_tests::check_replay_guard;
use mcp_server::handles::store_tests::check_handle_store;
use mcp_server::handles::{HandleKey, HandleOwner, HandleRecord, HandleStore as _, HandleStoreError};
use mcp_server::mrtr::{NONCE_BYTES, ReplayGuard as _};
use tokio::time::sleep;

use crate::fixtures::{connect, connect_with, options};
use crate::server::{Server, limited};

fn now() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "Redis has a clock of its own")]
    let now = SystemTime::now();
    now.duration_since(UNIX_EPOCH).unwrap().as_secs()
}

#[tokio::test]
async fn redis_does_what_stores_of_handles_do() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let make = async || {
            let _: redis::Value = server.command(&["FLUSHALL"]).await;
            connect(&server).await.handles()
        };
        check_handle_store(make, now, sleep).await;
    })
    .await;
}

#[tokio::test]
async fn redis_does_what_replay_guards_do() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let make = async |limit| {
            let _: redis::Value = server.command(&["FLUSHALL"]).await;
            connect_with(&server, options().max_used_states(limit)).await.replay_guard()
        };
        check_replay_guard(make, now()).await;
    })
    .await;
}

#[tokio::test]
async fn redis_does_what_ledgers_do() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let make = async |limit| {
            let _: redis::Value = server.command(&["FLUSHALL"]).await;
            connect_with(&server, options().max_used_proofs(limit)).await.proof_ledger()
        };
        check_proof_ledger(make, now()).await;
    })
    .await;
}

/// What one instance has used, another refuses; and so do all while Redis is away.
#[tokio::test]
async fn states_are_used_once_at_all_instances() {
    let Some(mut server) = Server::start().await else { return };
    limited(async {
        let guards = [connect(&server).await.replay_guard(), connect(&server).await.replay_guard()];
        let (now, used, unused) = (now(), [1; NONCE_BYTES], [2; NONCE_BYTES]);
        assert!(guards[0].claim(now, used, now + 60).await);
        assert!(!guards[1].claim(now, used, now + 60).await && guards[1].is_claimed(now, used).await);
        assert!(!guards[1].is_claimed(now, unused).await);
        server.stop();
        assert!(!guards[0].claim(now, unused, now + 60).await && guards[0].is_claimed(now, unused).await);
    })
    .await;
}

/// Handles are bounded, expire by themselves, and are found at all instances.
#[tokio::test]
async fn handles_are_bounded() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let options = options().max_handles(4).max_handles_per_principal(2);
        let [here, there] = [connect_with(&server, options.clone()).await, connect_with(&server, options).await]
            .map(|redis| redis.handles());
        let now = now();
        let record = |owner: Option<u8>| HandleRecord {
            owner: owner.map(|owner| HandleOwner([owner; 32])),
            content: b"value".to_vec(),
            expires: now + 60,
        };
        let key = |number| HandleKey([number; 32]);
        let full =
            |setting: &str, limit: usize| Err(HandleStoreError::Full(format!("`RedisOptions::{setting}` is {limit}")));
        for number in 1..=2 {
            here.insert(now, key(number), record(Some(1))).await.unwrap();
        }
        assert_eq!(there.insert(now, key(3), record(Some(1))).await, full("max_handles_per_principal", 2));
        there.insert(now, key(3), record(Some(2))).await.unwrap();
        here.insert(now, key(4), record(None)).await.unwrap();
        assert_eq!(there.insert(now, key(5), record(None)).await, full("max_handles", 4));
        assert_eq!(there.take(now, key(4)).await.unwrap(), Some(record(None)));
        there.insert(now, key(5), record(None)).await.unwrap();
        assert_eq!(here.list(now, HandleOwner([1; 32])).await.unwrap().len(), 2);
        let keys = server.keys("*").await;
        assert!(keys.len() >= 7, "four records and the indexes of all, of two owners: {keys:?}");
        for key in keys {
            let expires: i64 = server.command(&["PTTL", &key]).await;
            assert!(expires > 0, "{key} goes by itself");
        }
    })
    .await;
}

/// Records that are not valid are errors.
#[tokio::test]
async fn nonsense_is_no_handle() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let handles = connect(&server).await.handles();
        let (now, key) = (now(), HandleKey([1; 32]));
        let name = format!("mcp:handle:{}", "01".repeat(32));
        for fields in [
            ["version", "1", "owner", "", "content", "x"].as_slice(),
            &["version", "one", "owner", "", "content", "x", "expires", "99999999999"],
            &["version", "1", "owner", "me", "content", "x", "expires", "99999999999"],
            &["version", "1", "owner", "", "content", "x", "expires", "never"],
        ] {
            let _: redis::Value = server.command(&["DEL", &name]).await;
            let _: redis::Value = server.command(&[&["HSET", &name], fields].concat()).await;
            assert!(matches!(handles.load(now, key).await, Err(HandleStoreError::Failed(_))), "{fields:?}");
        }
        let _: redis::Value = server.command(&["DEL", &name]).await;
        let _: redis::Value = server.command(&["SET", &name, "text"]).await;
        assert!(matches!(handles.load(now, key).await, Err(HandleStoreError::Failed(_))));
    })
    .await;
}
