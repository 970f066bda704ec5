//! A master that sentinels name, and a cluster.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use mcp_redis::{Redis, RedisOptions};
use mcp_server::bus::bus_tests::check_change_bus;
use mcp_server::mrtr::{NONCE_BYTES, ReplayGuard as _};
use mcp_session::store_tests::{check_event_store, check_session_store};
use tokio::time::sleep;

use crate::fixtures::{eventually, options};
use crate::server::{Server, limited};

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Whether something can be recorded, by each number once.
async fn can_claim(redis: &Redis, number: u8) -> bool {
    redis.replay_guard().claim(1000, [number; NONCE_BYTES], 2000).await
}

/// All stores work in a cluster, whatever node is asked, and follow their slot to another node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_has_a_prefix_in_one_slot() {
    let node = async || {
        let arguments = |_| words(&format!("--cluster-enabled yes --cluster-port {}", free_port()));
        Server::start_with(arguments).await
    };
    let (Some(first), Some(second)) = (node().await, node().await) else { return };
    limited(async {
        let _: redis::Value = first.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "8191"]).await;
        let _: redis::Value = second.command(&["CLUSTER", "ADDSLOTSRANGE", "8192", "16383"]).await;
        let setting: Vec<String> = second.command(&["CONFIG", "GET", "cluster-port"]).await;
        let (port, bus) = (second.port().to_string(), &setting[1]);
        let _: redis::Value = first.command(&["CLUSTER", "MEET", "127.0.0.1", &port, bus]).await;
        eventually("the cluster is complete", async || {
            let states: [String; 2] =
                [first.command(&["CLUSTER", "INFO"]).await, second.command(&["CLUSTER", "INFO"]).await];
            states.iter().all(|state| state.contains("cluster_state:ok") && state.contains("cluster_known_nodes:2"))
        })
        .await;

        let urls = [first.url(), second.url()];
        // Whichever is asked says where the slot is.
        for (number, url) in (1..).zip(&urls) {
            let redis = Redis::connect_cluster(&[url], options()).await.unwrap();
            assert!(can_claim(&redis, number).await && !can_claim(&redis, number).await);
        }
        let connect = async || Redis::connect_cluster(&[&urls[0], &urls[1]], options()).await.unwrap();
        check_session_store(async || connect().await.sessions()).await;
        check_event_store(async || connect().await.events()).await;
        let bus = async || connect().await.change_bus().await.unwrap();
        let interrupt = async |_: &_| {
            for node in [&first, &second] {
                let _: redis::Value = node.command(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
            }
        };
        check_change_bus(
            async || (bus().await, bus().await),
            interrupt,
            async || sleep(Duration::from_millis(5)).await,
        )
        .await;

        // The slot moves, as that of an empty cluster may.
        let redis = connect().await;
        assert!(can_claim(&redis, 3).await);
        let slot: u16 = first.command(&["CLUSTER", "KEYSLOT", "{mcp}"]).await;
        let (old, new) = if slot < 8192 { (&first, &second) } else { (&second, &first) };
        let _: redis::Value = old.command(&["FLUSHALL"]).await;
        let id: String = new.command(&["CLUSTER", "MYID"]).await;
        for node in [new, old] {
            let _: redis::Value = node.command(&["CLUSTER", "SETSLOT", &slot.to_string(), "NODE", &id]).await;
        }
        eventually("the new node is found", async || can_claim(&redis, 4).await).await;
        let keys = new.keys("{mcp}:states").await;
        assert_eq!(keys, ["{mcp}:states"]);

        for prefix in ["", "{}", "a{}b", "a{b"] {
            let error = Redis::connect_cluster(&[&urls[0]], RedisOptions::default().prefix(prefix)).await.unwrap_err();
            assert!(error.to_string().contains("hash tag"), "{prefix}: {error}");
        }
    })
    .await;
}

/// A sentinel, which ends with this value.
struct Sentinel {
    child: Child,
    directory: std::path::PathBuf,
    port: u16,
}

impl Sentinel {
    fn start(master: &Server) -> Self {
        let port = free_port();
        let directory = std::env::temp_dir().join(format!("mcp-sentinel-{}-{port}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let file = directory.join("sentinel.conf");
        let settings = format!(
            "port {port}\nbind 127.0.0.1\nsentinel monitor farm 127.0.0.1 {} 1\nsentinel down-after-milliseconds farm 1000\n\
             sentinel failover-timeout farm 5000\n",
            master.port()
        );
        std::fs::write(&file, settings).unwrap();
        let child = Command::new("redis-server").arg(&file).arg("--sentinel").stdout(Stdio::null()).spawn().unwrap();
        Self { child, directory, port }
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// When the master dies, the replica becomes the master, and all goes on there.
#[tokio::test]
async fn sentinels_name_the_master() {
    let Some(mut master) = Server::start().await else { return };
    let replica = Server::start_with(|_| words(&format!("--replicaof 127.0.0.1 {}", master.port()))).await.unwrap();
    limited(async {
        eventually("the replica is connected", async || {
            let info: String = master.command(&["INFO", "replication"]).await;
            info.contains("state=online")
        })
        .await;
        let sentinel = Sentinel::start(&master);
        let unavailable = format!("redis://127.0.0.1:{}/", free_port());
        let (urls, options) = (vec![unavailable, sentinel.url()], options());
        let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
        let connect = async |name: &str| Redis::connect_sentinels(&urls, name, options.clone()).await;
        eventually("the sentinel knows the master", async || connect("redis://farm/").await.is_ok()).await;
        let error = connect("redis://other/").await.unwrap_err().to_string();
        assert!(error.contains("do not know the master"), "{error}");
        let redis = connect("redis://farm/").await.unwrap();
        assert!(can_claim(&redis, 1).await);
        let sentinel_knows_replica = async || {
            let client = redis::Client::open(sentinel.url()).unwrap();
            let mut connection = client.get_multiplexed_async_connection().await.unwrap();
            let info: String = redis::cmd("INFO").arg("sentinel").query_async(&mut connection).await.unwrap();
            info.contains("slaves=1")
        };
        eventually("the sentinel knows the replica", sentinel_knows_replica).await;
        master.stop();
        let number = std::cell::Cell::new(1);
        eventually("the replica is the master", async || {
            number.set(number.get() + 1);
            can_claim(&redis, number.get()).await
        })
        .await;
        assert!(!can_claim(&redis, 1).await, "the replica has what the master had");
        let role: Vec<redis::Value> = replica.command(&["ROLE"]).await;
        assert_eq!(role.first(), Some(&redis::Value::BulkString(b"master".to_vec())));
    })
    .await;
}
