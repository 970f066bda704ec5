//! Tasks of 2025-11-25 with the package `mcp` 1.x of Python: our client with its server, and its client with ours.
//!
//! `interop/install` has to be run before.

mod interop;

use std::path::Path;
use std::time::Duration;

use interop::{ALONE, SERVER, drive, script};
use mcp_client::types::{ElicitAction, ElicitResult, ErrorObject, Revision, TaskStatus};
use mcp_client::{Client, ClientBuilder, Error, Started, TaskError};
use mcp_transport_stdio::{ChildTransport, ServerCommand};
use tokio::time::timeout;

const PYTHON: &str = "python1/bin/python";

/// Nothing takes that long, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

async fn connect(builder: ClientBuilder) -> Client {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let interpreter = package.join("../target/interop").join(PYTHON);
    assert!(interpreter.exists(), "{} is missing: run `bash tests/interop/install`", interpreter.display());
    let command = ServerCommand::new(interpreter).arg(package.join("interop/tasks/server.py"));
    let connecting = builder.connect(ChildTransport::new(command));
    timeout(PATIENCE, connecting).await.expect("the server starts").expect("a connection")
}

fn builder() -> ClientBuilder {
    Client::builder("interop", "1.0")
        .on_form_elicitation(async |_, _| ElicitResult::accepted([("name", "Ada".to_owned())]))
}

async fn text(client: &Client, tool: &str) -> Result<String, Error> {
    let result = timeout(PATIENCE, client.call_tool(tool).into_future()).await.expect("an end in time")?;
    Ok(result.to_text())
}

/// A call of a tool that has to be a task follows it to its end, and answers its elicitation.
// covers: B-81, B-82, B-85
#[tokio::test]
async fn calls_follow_tasks_of_python() {
    let _alone = ALONE.lock().await;
    let client = connect(builder()).await;
    assert_eq!(client.revision(), Some(Revision::V2025_11_25));
    // The package refuses a call that is no task by a result with `isError`, from which nothing can be learned.
    timeout(PATIENCE, client.tools().all()).await.expect("in time").expect("a list");
    assert_eq!(text(&client, "render").await.unwrap(), "rendered");
    assert_eq!(text(&client, "ask").await.unwrap(), "accept Ada");
    // The package keeps no result of a task that failed, and responds with an empty one.
    let failed = text(&client, "broken").await;
    assert!(matches!(failed, Err(Error::InvalidResponse(_))), "{failed:?}");
    assert_eq!(text(&client, "render").await.unwrap(), "rendered");
    client.close().await;
}

/// A handle has the states of a task, and cancels it; the list has its tasks.
// covers: B-84, B-88
#[tokio::test]
async fn handles_of_tasks_of_python() {
    let _alone = ALONE.lock().await;
    let client = connect(builder().on_form_elicitation(async |_, _| ElicitResult::new(ElicitAction::Decline))).await;
    let start = async |tool: &str| {
        let started = timeout(PATIENCE, client.call_tool(tool).as_task()).await.expect("in time");
        match started.expect("a response") {
            Started::Task(task) => task,
            Started::Done(result) => panic!("not a task: {}", result.to_text()),
        }
    };
    let mut render = start("render").await;
    let updates = async {
        let mut messages = Vec::new();
        while let Some(state) = render.next_update().await {
            messages.extend(state.expect("a state").message);
        }
        messages
    };
    let messages = timeout(PATIENCE, updates).await.expect("an end in time");
    assert!(messages.iter().any(|message| message == "rendering"), "{messages:?}");
    let result = timeout(PATIENCE, render.result()).await.expect("in time").expect("a result");
    assert_eq!((result.to_text().as_str(), render.state().status), ("rendered", TaskStatus::Completed));

    let mut asking = start("ask").await;
    let result = timeout(PATIENCE, asking.result()).await.expect("in time").expect("a result");
    assert_eq!(result.to_text(), "decline None");

    let mut endless = start("endless").await;
    timeout(PATIENCE, endless.cancel()).await.expect("in time").expect("it is cancelled");
    let end = timeout(PATIENCE, endless.result()).await.expect("in time");
    assert!(matches!(end, Err(Error::Task(TaskError::Cancelled { .. }))), "{end:?}");

    let listed = timeout(PATIENCE, client.tasks().all()).await.expect("in time").expect("a list");
    for id in [render.id(), asking.id(), endless.id()] {
        assert!(listed.iter().any(|task| task.id == id), "it is listed");
    }
    client.close().await;
}

/// A handler that fails rejects the elicitation, and the task fails.
#[tokio::test]
async fn a_rejected_elicitation_ends() {
    let _alone = ALONE.lock().await;
    let builder = Client::builder("interop", "1.0")
        .on_form_elicitation(async |_, _| Err::<ElicitResult, _>(ErrorObject::internal_error("no form")));
    let client = connect(builder).await;
    timeout(PATIENCE, client.tools().all()).await.expect("in time").expect("a list");
    let end = text(&client, "ask").await;
    assert!(matches!(end, Err(Error::InvalidResponse(_))), "{end:?}");
    client.close().await;
}

/// The client of the package with our tasks.
// covers: B-80, B-82, B-84, B-85, B-86, B-88, B-91
#[tokio::test]
async fn python_follows_our_tasks() {
    let _alone = ALONE.lock().await;
    drive(script(PYTHON, "tasks/client.py").args([SERVER, "--stdio"]), 11).await;
}
