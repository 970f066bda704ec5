//! Who asks.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use mcp_client::{CloseReason, ConnectError, Error};
use mcp_testkit::envelope::tool_result;
use mcp_transport_http::{AuthorizationError, Authorizer, Challenge, Credential, HttpTransport, async_trait};

use crate::scripted::{Reply, Scripted, Seen, answer, call, modern};

/// Counts up with each challenge.
#[derive(Clone, Default)]
struct Counting {
    tokens: Arc<AtomicUsize>,
    challenges: Arc<Mutex<Vec<Challenge>>>,
    gives_up: bool,
}

#[async_trait]
impl Authorizer for Counting {
    async fn credential(&self) -> Result<Option<Credential>, AuthorizationError> {
        let number = self.tokens.load(Ordering::SeqCst);
        Ok((number > 0).then(|| Credential::bearer(&format!("t{number}")).expect("a token")))
    }

    async fn challenged(&self, challenge: &Challenge) -> Result<Option<Credential>, AuthorizationError> {
        self.challenges.lock().expect("nobody panicked").push(challenge.clone());
        if self.gives_up {
            return Ok(None);
        }
        self.tokens.fetch_add(1, Ordering::SeqCst);
        self.credential().await
    }
}

fn refused(status: u16) -> Reply {
    Reply::new(status, &[("www-authenticate", "Bearer scope=\"a\""), ("www-authenticate", "DPoP")], "")
}

/// Lets in who has one of some tokens.
fn guarded(tokens: &'static [&'static str]) -> impl FnMut(&Seen) -> Reply + Send {
    let mut inside = modern(|seen| Reply::json(&answer(seen, &tool_result("in"))));
    move |seen| match seen.header("authorization") {
        Some(token) if tokens.contains(&token) => inside(seen),
        _ => refused(401),
    }
}

/// A challenge reaches the authorizer with all it says, and the request is sent again; later requests show the new
/// credential at once.
// covers: DU-27
#[tokio::test]
async fn a_challenge_is_met() {
    let server = Scripted::start(guarded(&["Bearer t2"])).await;
    let authorizer = Counting::default();
    let client = server.connect(server.transport().authorizer(authorizer.clone())).await.unwrap();
    assert_eq!(call(&client).await.unwrap(), "in");
    let challenges = authorizer.challenges.lock().expect("nobody panicked").clone();
    assert_eq!(challenges.len(), 2);
    assert_eq!(challenges[0].status, 401);
    assert_eq!(challenges[0].www_authenticate, ["Bearer scope=\"a\"", "DPoP"]);
    assert_eq!(challenges[0].refused, None);
    assert_eq!(challenges[1].refused, Some(Credential::bearer("t1").unwrap()));
    let shown: Vec<_> = server.seen().iter().map(|seen| seen.header("authorization").map(str::to_owned)).collect();
    let shown: Vec<_> = shown.iter().map(Option::as_deref).collect();
    assert_eq!(shown, [None, Some("Bearer t1"), Some("Bearer t2"), Some("Bearer t2")]);
}

/// A server that refuses everything is asked three times, and its status is the answer, which is not legacy.
#[tokio::test]
async fn a_refusal_ends() {
    for (gives_up, requests) in [(false, 3), (true, 1)] {
        for status in [401, 403] {
            let server = Scripted::start(move |_| refused(status)).await;
            let authorizer = Counting { gives_up, ..Counting::default() };
            let error = server.connect(server.transport().authorizer(authorizer)).await.unwrap_err();
            let Error::Closed(CloseReason::ConnectFailed(ConnectError::Status { status: said, .. })) = error else {
                panic!("{error:?}")
            };
            assert_eq!((said, server.seen().len()), (status, requests));
        }
    }
}

/// Without anybody to ask, a token is shown as it is; nothing of it is ever shown to people.
#[tokio::test]
async fn a_token_is_shown_to_the_server_alone() {
    let server = Scripted::start(guarded(&["Bearer secret"])).await;
    let url = server.url().replace("http://", "http://user:secret@") + "?key=secret";
    let transport = HttpTransport::new(url).unwrap().bearer("secret").unwrap();
    let shown = format!("{transport:?} {:?}", Credential::bearer("secret"));
    assert!(!shown.contains("secret"), "{shown}");
    let client = server.connect(server.transport().bearer("secret").unwrap()).await.unwrap();
    assert_eq!(call(&client).await.unwrap(), "in");
    assert!(Credential::bearer("a\r\nb").is_err());
}

/// A name and a password in the address are shown as such, unless something else is to be shown.
#[tokio::test]
async fn an_address_may_have_a_password() {
    let server = Scripted::start(modern(|seen| Reply::json(&answer(seen, &tool_result("in"))))).await;
    let url = server.url().replace("http://", "http://me:a%20secret@");
    let transport = || HttpTransport::new(&url).unwrap();
    for (transport, shown) in
        [(transport(), "Basic bWU6YSBzZWNyZXQ="), (transport().bearer("token").unwrap(), "Bearer token")]
    {
        server.connect(transport).await.unwrap();
        assert_eq!(server.seen().pop().unwrap().header("authorization"), Some(shown));
    }
}
