//! Lists in pages.

use futures_util::TryStreamExt as _;
use mcp_client::types::{Revision, Tool};
use mcp_client::{Client, MemoryTransport};

use crate::demo::{limited, server};

/// All pages, as a stream, at once, or one by one.
// covers: G-1..G-4
#[tokio::test]
async fn pages_are_followed() {
    for revision in [Revision::V2024_11_05, Revision::V2026_07_28] {
        let server = server().page_size(2).build().unwrap();
        let client =
            limited(Client::builder("test", "1.0").revisions([revision]).connect(MemoryTransport::new(server)));
        let client = client.await.unwrap();
        let all = limited(client.tools().all()).await.unwrap();
        let streamed: Vec<Tool> = limited(client.tools().try_collect::<Vec<_>>()).await.unwrap();
        assert_eq!(all.len(), 7);
        assert_eq!(all, streamed);
        let first = limited(client.list_tools(None)).await.unwrap();
        assert_eq!(first.tools, all[..2]);
        let second = limited(client.list_tools(first.next_cursor)).await.unwrap();
        assert_eq!(second.tools, all[2..4]);
        assert_eq!(limited(client.prompts().all()).await.unwrap().len(), 1);
        assert_eq!(limited(client.resources().all()).await.unwrap().len(), 2);
        assert_eq!(limited(client.resource_templates().all()).await.unwrap().len(), 1);
    }
}
