//! Sessions that end with the tokens of their user.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use mcp_server::{AuthInfo, Principal, Renewal};
use mcp_session::{EndReason, MemorySessionStore};
use mcp_transport_http::HttpService;
use serde_json::json;

use crate::raw_http::Post;
use crate::session_client::{Client, NEWEST, Shop, initialize, metrics, pass, stateful};

/// The tokens of one user with one client.
#[derive(Default)]
struct User(Renewal);

impl User {
    /// A token that expires after some seconds, or never.
    fn token(&self, seconds: Option<u64>) -> Arc<AuthInfo> {
        #[expect(clippy::disallowed_methods, reason = "the expiry of tokens is wall-clock time")]
        let now = SystemTime::now();
        let auth = AuthInfo::builder(Principal::new(None, "ann")).renewal(self.0.clone());
        let auth = match seconds {
            Some(seconds) => auth.expires_at(now + Duration::from_secs(seconds)).build(),
            None => auth.build(),
        };
        self.0.renew(&auth);
        Arc::new(auth)
    }
}

async fn open(service: &HttpService, token: &Arc<AuthInfo>) -> Client {
    let post = initialize(NEWEST, json!({})).extension(Arc::clone(token));
    Client::shake_hands(service, NEWEST, post, None).await
}

async fn status(client: &Client, token: &Arc<AuthInfo>) -> u16 {
    with(client.tool("hello"), token).to(&client.service).await.status.as_u16()
}

fn with(post: Post, token: &Arc<AuthInfo>) -> Post {
    post.extension(Arc::clone(token))
}

const MINUTE: Duration = Duration::from_secs(60);

/// A session ends with its token, with everything that it held, although its idle timeout is much longer.
// covers: AU-4
#[tokio::test(start_paused = true)]
async fn a_session_ends_with_its_token() {
    let (shop, ann) = (Shop::default(), User::default());
    let service = shop.service();
    let token = ann.token(Some(600));
    let client = open(&service, &token).await;
    with(client.tool("leave"), &token).to(&service).await.json(200).await;
    pass(10 * MINUTE).await;
    assert_eq!(status(&client, &token).await, 200, "clocks differ, and clients need some time for a new token");
    pass(4 * MINUTE).await;
    assert_eq!(shop.demo.notes.take(), ["closed"], "nobody had to ask for it");
    assert_eq!(metrics(&service).ended(EndReason::Expired), 1);
    assert_eq!(status(&client, &ann.token(Some(600))).await, 404);
}

/// Also before the sweep.
// covers: AU-4
#[tokio::test(start_paused = true)]
async fn an_expired_session_is_refused() {
    let (shop, ann) = (Shop::default(), User::default());
    let service = shop.service();
    let client = open(&service, &ann.token(Some(600))).await;
    tokio::time::advance(13 * MINUTE).await;
    // The newer token does not count any more.
    assert_eq!(status(&client, &User::default().token(Some(3600))).await, 404);
    pass(MINUTE).await;
    assert_eq!((metrics(&service).live, metrics(&service).ended(EndReason::Expired)), (0, 1));
}

/// A newer token extends the session, whether it came with a request in it or with another one.
// covers: AU-4
#[tokio::test(start_paused = true)]
async fn newer_tokens_extend_a_session() {
    for lifetime in [Some(3600), None] {
        let (shop, ann) = (Shop::default(), User::default());
        let service = shop.service();
        let first = ann.token(Some(600));
        let (here, elsewhere, without) = (
            open(&service, &first).await,
            open(&service, &first).await,
            open(&service, &User::default().token(Some(600))).await,
        );
        pass(MINUTE).await;
        let newer = ann.token(lifetime);
        assert_eq!(status(&here, &newer).await, 200);
        assert_eq!(status(&here, &first).await, 200, "the older one changes nothing");
        pass(20 * MINUTE).await;
        assert_eq!(metrics(&service).ended(EndReason::Expired), 1);
        for (client, expected) in [(&here, 200), (&elsewhere, 200), (&without, 404)] {
            assert_eq!(status(client, &newer).await, expected);
        }
        pass(50 * MINUTE).await;
        assert_eq!(status(&here, &newer).await, if lifetime.is_some() { 404 } else { 200 });
    }
}

/// A request in flight is not interrupted; the stream of the session ends with its token, and says so.
// covers: AU-4
#[tokio::test(start_paused = true)]
async fn requests_in_flight_finish_before_the_session_ends() {
    let (shop, ann) = (Shop::default(), User::default());
    let service = shop.service();
    let token = ann.token(Some(600));
    let client = open(&service, &token).await;
    let mut stream = with(client.get(), &token).to(&service).await;
    let waiting = tokio::spawn({
        let (post, service) = (with(client.tool("wait"), &token), service.clone());
        async move { post.to(&service).await.rest().await }
    });
    pass(11 * MINUTE).await;
    assert!(stream.rest().await.contains("the access token has expired"));
    pass(10 * MINUTE).await;
    assert_eq!(metrics(&service).live, 1);
    shop.demo.gate.open();
    assert!(waiting.await.expect("a response").contains("waited"));
    pass(2 * MINUTE).await;
    assert_eq!(metrics(&service).ended(EndReason::Expired), 1);
}

/// Instances that share a store keep a session as long as the newest token that one of them has seen.
// covers: AU-4
#[tokio::test(start_paused = true)]
async fn the_record_of_a_session_lives_as_long_as_its_token() {
    let (shop, store) = (Shop::default(), Arc::new(MemorySessionStore::default()));
    let instance = || {
        let options = stateful().session_store(Arc::clone(&store) as _, 600 * MINUTE);
        (HttpService::with_options(shop.server(), options), User::default())
    };
    // Instances do not know each other's tokens.
    let ((one, ann), (two, ann_elsewhere)) = (instance(), instance());
    let first = ann.token(Some(600));
    let (client, left) = (open(&one, &first).await, open(&one, &first).await);
    // Its stream makes the first instance look after the record all the time.
    let mut stream = with(client.get(), &first).to(&one).await;
    let elsewhere = Client { service: two.clone(), ..client.clone() };
    pass(5 * MINUTE).await;
    let newer = ann_elsewhere.token(Some(3600));
    assert_eq!(status(&elsewhere, &newer).await, 200);
    pass(20 * MINUTE).await;
    assert!(stream.rest().await.contains("the access token has expired"));
    drop(stream);
    pass(2 * MINUTE).await;
    assert_eq!(metrics(&one).ended(EndReason::Expired), 2);
    assert_eq!((status(&elsewhere, &newer).await, status(&client, &ann.token(Some(60))).await), (200, 200));
    assert_eq!(status(&left, &newer).await, 404);
    pass(60 * MINUTE).await;
    assert_eq!(status(&elsewhere, &ann_elsewhere.token(Some(3600))).await, 404);
}
