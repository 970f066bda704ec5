//! Servers of one era, and of one revision: ours can be told to be like that.

use mcp_client::types::Revision;
use mcp_client::{CloseReason, ConnectError, Error};

use crate::body::call;
use crate::peer::OURS;
use crate::report::{OrSay as _, Outcome, Report, same};
use crate::scene::{Scene, pinned};
use crate::server::{Server, Via};

/// Connects to servers that do not know everything; returns how many checks passed.
pub(crate) async fn all(via: Via) -> usize {
    let mut report = Report::default();
    let name = format!("ours over {via:?}");
    let modern = Server::start(&OURS, via, &["2026-07-28"]).await;
    report.check(&name, "DU-1", agreed(&modern, Some(Revision::LATEST), Revision::LATEST)).await;
    report.check(&name, "DU-3", agreed(&modern, None, Revision::LATEST)).await;
    report.check(&name, "DU-5", no_version_in_common(&modern, Revision::V2025_11_25, Revision::LATEST)).await;
    for revision in [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25] {
        let legacy = Server::start(&OURS, via, &[revision.as_str()]).await;
        report.check(&name, "DU-4", agreed(&legacy, None, revision)).await;
        report.check(&name, "DU-2", no_version_in_common(&legacy, Revision::LATEST, revision)).await;
        report.check(&name, "DU-7", agreed(&legacy, Some(revision), revision)).await;
        let other = if revision == Revision::V2025_06_18 { Revision::V2025_03_26 } else { Revision::V2025_06_18 };
        report.check(&name, "B-2", no_version_in_common(&legacy, other, revision)).await;
    }
    report.passed()
}

async fn open(server: &Server, revision: Option<Revision>) -> Result<Scene, Error> {
    match revision {
        Some(revision) => Scene::open(&OURS, server, "pinned", pinned(revision)).await,
        None => Scene::open(&OURS, server, "auto", |builder| builder).await,
    }
}

async fn agreed(server: &Server, pinned: Option<Revision>, wanted: Revision) -> Outcome {
    let scene = open(server, pinned).await.or_say("connect")?;
    same(scene.revision, wanted)?;
    same(call(&scene, "log").await?.as_str(), "logged")?;
    scene.client.close().await;
    Ok(())
}

/// A client of one revision cannot talk to a server of another one, and whoever wanted to connect hears of that.
async fn no_version_in_common(server: &Server, ours: Revision, theirs: Revision) -> Outcome {
    match open(server, Some(ours)).await {
        Err(error @ Error::Closed(CloseReason::ConnectFailed(ConnectError::NoCommonVersion { .. }))) => {
            same(error.to_string().contains(theirs.as_str()), true).or_say(&error.to_string())
        }
        Err(error) => Err(format!("{error:?}")),
        Ok(_) => Err("it is connected".to_owned()),
    }
}
