//! Hearing of changes.

use std::time::Duration;

use mcp_client::Change;
use mcp_client::types::SubscriptionFilter;
use tokio::time::timeout;

use crate::body::{call, read};
use crate::report::{OrSay as _, Outcome, same};
use crate::scene::Scene;

const COUNTER: &str = "test://counter";

/// Changes of a resource and of a list are heard of, until the listener is dropped.
pub(crate) async fn touch(scene: &Scene) -> Outcome {
    let filter =
        SubscriptionFilter::default().tools_list_changed(true).resource_subscriptions(vec![COUNTER.to_owned()]);
    let mut listener = scene.client.listen(filter.clone()).await.or_say("listen")?;
    same(listener.acknowledged(), &filter)?;
    let mut missing = vec![Change::Tools, Change::Resource(COUNTER.to_owned())];
    // Nobody tells when the stream of a session is open, and before that some servers tell nobody.
    let mut count = String::new();
    while !missing.is_empty() {
        count = call(scene, "touch").await?;
        while let Ok(change) = timeout(Duration::from_millis(200), listener.next()).await {
            let change = change.or_say("the listener ended")?.or_say("listener")?;
            missing.retain(|missing| *missing != change);
            if missing.is_empty() {
                break;
            }
        }
    }
    same(read(scene, COUNTER).await?, count)?;
    drop(listener);
    // Nothing is wrong with the connection afterwards.
    call(scene, "touch").await.map(drop)
}
