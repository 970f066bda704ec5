//! Clients of the official packages log in to our server.

use crate::our_server::{OurServer, with_jwts};
use crate::program::{ALONE, Program, drive_python, drive_typescript};

/// Seconds that tokens live where they are refreshed.
const LIFETIME: &str = "8";

// covers: AU-1, AU-2, AU-3, AU-8
#[tokio::test]
async fn typescript_logs_in_steps_up_and_refreshes() {
    let _alone = ALONE.lock().await;
    let provider = Program::provider(&["--lifetime", LIFETIME]).await;
    let server = OurServer::start(&provider.url, with_jwts(&provider.url)).await;
    drive_typescript(&[&server.url, "alice", "--lifetime", LIFETIME], 7).await;
    assert_eq!(provider.events("granted refresh_token").await.len(), 1);
}

#[tokio::test]
async fn typescript_logs_in_with_a_session() {
    let _alone = ALONE.lock().await;
    let provider = Program::provider(&["--algorithm", "RS256"]).await;
    let server = OurServer::start(&provider.url, with_jwts(&provider.url)).await;
    drive_typescript(&[&server.url, "alice", "--legacy"], 6).await;
}

#[tokio::test]
async fn typescript_proves_possession_of_a_key() {
    let _alone = ALONE.lock().await;
    let provider = Program::provider(&["--dpop-nonce"]).await;
    let protect = with_jwts(&provider.url);
    let server = OurServer::start(&provider.url, |resource| protect(resource).require_dpop().dpop_nonces()).await;
    drive_typescript(&[&server.url, "alice", "--dpop"], 6).await;
    assert!(!provider.events("refused authorization_code use_dpop_nonce").await.is_empty());
}

#[tokio::test]
async fn python_logs_in_steps_up_and_refreshes() {
    let _alone = ALONE.lock().await;
    let provider = Program::provider(&["--lifetime", LIFETIME]).await;
    let server = OurServer::start(&provider.url, with_jwts(&provider.url)).await;
    drive_python(&[&server.url, "bob", "--lifetime", LIFETIME], 6).await;
}

// covers: AU-1, AU-2
#[tokio::test]
async fn python_logs_in_with_a_session() {
    let _alone = ALONE.lock().await;
    let provider = Program::provider(&[]).await;
    let server = OurServer::start(&provider.url, with_jwts(&provider.url)).await;
    drive_python(&[&server.url, "bob", "--legacy"], 5).await;
}
