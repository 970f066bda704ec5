//! Transports that break.

use std::sync::Arc;

use mcp_client::types::Revision;
use mcp_client::{Clock, DetectedRevision, Error, Time, Transport, TransportCommand, TransportHandle, TransportKind};
use serde_json::json;
use tokio::sync::oneshot;

use crate::demo::{builder, limited};

/// Leaves its work to a test.
struct ByHand(oneshot::Sender<TransportHandle>);

impl Transport for ByHand {
    fn kind(&self) -> TransportKind {
        TransportKind::RequestPerCall
    }

    fn clock(&self) -> Clock {
        Arc::new(|| Time::EPOCH)
    }

    fn start(self, handle: TransportHandle) {
        let _ = self.0.send(handle);
    }
}

/// Takes orders until there is a call to be made.
async fn next_call(handle: &mut TransportHandle) -> mcp_client::CallId {
    loop {
        if let Some(TransportCommand::Send(outgoing)) = limited(handle.next_command()).await {
            return outgoing.call.unwrap();
        }
    }
}

/// Why a call broke that nobody waits for any more is not why another one did.
#[tokio::test]
async fn each_call_breaks_for_its_own_reason() {
    let (sender, receiver) = oneshot::channel();
    let client = builder()
        .detected_revision(DetectedRevision::new(Revision::V2026_07_28))
        .connect(ByHand(sender))
        .await
        .unwrap();
    let mut handle = receiver.await.unwrap();

    let given_up = tokio::spawn(client.call_tool("t").arguments(&json!({})).into_future());
    let call = next_call(&mut handle).await;
    given_up.abort();
    assert!(given_up.await.is_err());
    handle.responses().handle_stream_ended(call, Some("a reason of its own".to_owned()));

    let broken = tokio::spawn(client.call_tool("t").arguments(&json!({})).into_future());
    let call = next_call(&mut handle).await;
    handle.responses().handle_stream_ended(call, None);
    let error = limited(broken).await.unwrap().unwrap_err();
    assert!(matches!(&error, Error::Interrupted(why) if why.contains("without a response")), "{error:?}");
}
