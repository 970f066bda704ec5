//! Hearing of changes.

use mcp_client::Change;
use mcp_client::types::{Revision, SubscriptionFilter};

use crate::demo::{connect, limited};

/// The same filter, the same changes, in both eras.
// covers: L-2, L-5, B-44
#[tokio::test]
async fn changes_are_heard_in_both_eras() {
    for revision in Revision::ALL {
        let client = connect(revision).await;
        let wanted = SubscriptionFilter::default().tools_list_changed(true).resource("test://counter");
        let mut listener = limited(client.listen(wanted.clone())).await.unwrap();
        assert_eq!(*listener.acknowledged(), wanted, "{revision}");
        limited(client.call_tool("touch")).await.unwrap();
        let mut heard = Vec::new();
        for _ in 0..2 {
            heard.push(limited(listener.next()).await.unwrap().unwrap());
        }
        assert!(heard.contains(&Change::Tools), "{revision}: {heard:?}");
        assert!(heard.contains(&Change::Resource("test://counter".to_owned())), "{revision}: {heard:?}");
    }
}

/// What was not asked for is not heard.
// covers: L-1
#[tokio::test]
async fn filters_hold() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let client = connect(revision).await;
        let filter = SubscriptionFilter::default().resource("test://counter");
        let mut listener = limited(client.listen(filter)).await.unwrap();
        limited(client.call_tool("touch")).await.unwrap();
        let heard = limited(listener.next()).await.unwrap().unwrap();
        assert_eq!(heard, Change::Resource("test://counter".to_owned()), "{revision}");
    }
}
