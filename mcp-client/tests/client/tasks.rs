//! Lists of tasks.

use mcp_client::types::Revision;
use mcp_client::{MemoryTransport, Started, TaskReference};
use mcp_server::tasks::TaskSupport;
use mcp_server::{NoArguments, Principal, Server, tool};
use mcp_tasks::{MemoryTaskStore, TaskSettings, Tasks};

use crate::demo::{builder, limited};

/// Each user sees their own tasks, over all pages, and can go on with them.
// covers: B-90
#[tokio::test]
async fn users_list_their_own_tasks() {
    let tasks = Tasks::with_settings(MemoryTaskStore::default(), TaskSettings::default().page_size(2));
    let hello = tool("hello", async |_, _: NoArguments| "hello").task(TaskSupport::Required);
    let server = Server::builder("farm", "1.0").tool(hello).tasks(tasks).build().unwrap();
    let connect = async |user: &str| {
        let transport = MemoryTransport::new(server.clone()).principal(Principal::new(None, user));
        limited(builder().revisions([Revision::V2025_11_25]).connect(transport)).await.unwrap()
    };
    let (ann, bob) = (connect("ann").await, connect("bob").await);
    let mut created = Vec::new();
    for _ in 0..5 {
        match limited(ann.call_tool("hello").as_task()).await.unwrap() {
            Started::Task(task) => created.push(task.detach().id),
            Started::Done(result) => panic!("not a task: {}", result.to_text()),
        }
    }
    let listed: Vec<TaskReference> = limited(ann.tasks().all()).await.unwrap();
    assert_eq!(listed.iter().map(|task| task.id.clone()).collect::<Vec<_>>(), created);
    assert_eq!(limited(ann.list_tasks(None)).await.unwrap().tasks.len(), 2, "a page");
    for task in listed {
        assert_eq!(limited(ann.resume_task(task).result()).await.unwrap().to_text(), "hello");
    }
    assert_eq!(limited(bob.tasks().all()).await.unwrap(), []);
}
