//! Which era is found in which mode: the matrix of the specification.

use std::time::Duration;

use mcp_client::types::{Era, Revision};
use mcp_client::{Client, CloseReason, ConnectError, DetectedRevision, Error, Mode};
use serde_json::json;

use crate::body::{body, call};
use crate::peer::Peer;
use crate::report::{OrSay as _, Outcome, Report, same};
use crate::scene::{Scene, pinned};
use crate::server::{Requests, Server, Via};
use crate::sessions::saved;

/// Connects in every mode, and checks everything with every connection; returns how many checks passed.
pub(crate) async fn all(peer: &'static Peer, via: Via) -> usize {
    let server = Server::start(peer, via, &[]).await;
    let mut report = Report::default();
    let name = format!("{} over {via:?}", peer.name);
    // HTTP+SSE is legacy.
    let is_dual = peer.is_dual && via != Via::Sse;
    let found = if is_dual { Revision::LATEST } else { Revision::V2025_11_25 };

    // DU-3, DU-4
    let auto = Scene::open(peer, &server, "auto", |builder| builder).await;
    let auto = talk(&name, auto, found, &mut report).await;
    if is_dual {
        // DU-1
        let modern = Scene::open(peer, &server, "modern", pinned(Revision::LATEST)).await;
        talk(&name, modern, Revision::LATEST, &mut report).await;
    } else {
        report.check(&name, "DU-2", refused(peer, &server)).await;
    }
    // DU-6, DU-7
    for revision in Revision::ALL.iter().copied().filter(|revision| revision.era() == Era::Legacy) {
        let legacy = Scene::open(peer, &server, "legacy", pinned(revision)).await;
        talk(&name, legacy, revision, &mut report).await;
    }
    report.check(&name, "old revisions", old_revisions(peer, &server)).await;
    report.check(&name, "detected revision", remembered(peer, &server, auto, found)).await;
    report.check(&name, "wrong detected revision", mistaken(peer, &server, found)).await;
    for mode in [Mode::Auto, Mode::Legacy] {
        report.check(&name, "nothing declared", undeclared(&server, mode)).await;
    }
    if via == Via::Http {
        report.check(&name, "saved session", saved(&server)).await;
    }
    report.passed()
}

/// Checks everything with a connection; returns how many requests it took to have it.
async fn talk(name: &str, scene: Result<Scene, Error>, wanted: Revision, report: &mut Report) -> usize {
    let scene = match scene {
        Ok(scene) => scene,
        Err(error) => {
            report.check(&name, &format!("connect ({})", wanted.as_str()), async { Err(error.to_string()) }).await;
            return 0;
        }
    };
    let requests = scene.requests.count();
    report.check(&scene, "revision", async { same(scene.revision, wanted) }).await;
    body(&scene, report).await;
    requests
}

/// Who wants nothing but the modern era is told what is wrong, and what would help.
async fn refused(peer: &'static Peer, server: &Server) -> Outcome {
    match Scene::open(peer, server, "modern", pinned(Revision::LATEST)).await {
        Err(error @ Error::Closed(CloseReason::ConnectFailed(ConnectError::LegacyServer))) => {
            same(error.to_string().contains("does not support a modern revision"), true)
        }
        Err(error) => Err(format!("{error:?}")),
        Ok(_) => Err("it is connected".to_owned()),
    }
}

/// A client that may try both eras, but knows legacy revisions alone, ends up with one of them.
async fn old_revisions(peer: &'static Peer, server: &Server) -> Outcome {
    let scene = Scene::open(peer, server, "auto", |builder| builder.revisions([Revision::V2025_06_18])).await;
    let scene = scene.or_say("connect")?;
    same(scene.revision, Revision::V2025_06_18)?;
    call(&scene, "log").await?;
    scene.client.close().await;
    Ok(())
}

/// With what was found out before, nothing is asked. `before` is how many requests it took without.
async fn remembered(peer: &'static Peer, server: &Server, before: usize, found: Revision) -> Outcome {
    let scene = Scene::open(peer, server, "auto", |builder| builder).await.or_say("first")?;
    let detected = scene.client.detected_revision().or_say("no detected revision")?;
    let known = detected.server.clone();
    scene.client.close().await;
    let scene = Scene::open(peer, server, "detected revision", |builder| builder.detected_revision(detected))
        .await
        .or_say("second")?;
    same(scene.revision, found)?;
    same(scene.client.server(), known)?;
    if server.via() != Via::Stdio {
        same(scene.requests.count() < before, true)?;
    }
    call(&scene, "log").await?;
    scene.client.close().await;
    Ok(())
}

/// What is known about a server may be wrong by now. A legacy detected revision on a server that is modern, too, still holds; a
/// modern one on a server that is legacy is found out by the first call, which is then made again.
async fn mistaken(peer: &'static Peer, server: &Server, found: Revision) -> Outcome {
    let other = if found.era() == Era::Modern { Revision::V2025_11_25 } else { Revision::LATEST };
    let detected = DetectedRevision::new(other);
    let scene = Scene::open(peer, server, "wrong detected revision", |builder| builder.detected_revision(detected))
        .await
        .or_say("connect")?;
    same(call(&scene, "log").await?.as_str(), "logged")?;
    let is_noticed = found.era() == Era::Legacy && !(peer.answers_everybody && server.via() == Via::Stdio);
    same(scene.client.revision(), Some(if is_noticed { found } else { other }))?;
    scene.client.close().await;
    Ok(())
}

/// A client that declared nothing does not have to answer; some servers ask anyway, and get an error.
async fn undeclared(server: &Server, mode: Mode) -> Outcome {
    let builder = Client::builder("bare", "1.0").mode(mode).probe_timeout(Duration::from_secs(60));
    let client = match server.via() {
        Via::Stdio => builder.connect(server.child()).await,
        Via::Http | Via::Sse => builder.connect(server.http(&Requests::default())).await,
    };
    let client = client.or_say("connect")?;
    for tool in ["ask", "sample"] {
        match client.call_tool(tool).arguments(&json!({})).await {
            Ok(result) => same(result.is_error, Some(true)).or_say(tool)?,
            Err(Error::Rejected(_) | Error::InputRequestFailed { .. }) => {}
            Err(error) => return Err(format!("{tool}: {error:?}")),
        }
    }
    client.call_tool("add").arguments(&json!({ "a": 2, "b": 3 })).await.or_say("add")?;
    same(client.close().await, CloseReason::ByClient)
}
