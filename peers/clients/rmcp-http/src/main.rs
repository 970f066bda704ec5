//! Drives the fixture server over HTTP with the client of `rmcp`: modern, and legacy without sessions.
//!
//! `rmcp-http URL` prints a line for each check, `ok NAME` or `FAIL NAME: why`, and at last `{"failed":0,"passed":123}`.

mod common;
mod host;
mod legacy;
mod modern;
mod report;
mod session;
mod wire;

use std::process::ExitCode;
use std::time::Duration;

use report::Report;

/// How long all of it may take.
const LIMIT: Duration = Duration::from_secs(120);

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let report = Report::default();
    let Some(url) = std::env::args().nth(1) else {
        report.fail("usage", "rmcp-http URL");
        return ExitCode::FAILURE;
    };
    let every = async {
        for revision in legacy::REVISIONS {
            legacy::drive(&report, &url, revision).await;
        }
        modern::drive(&report, &url).await;
    };
    if tokio::time::timeout(LIMIT, every).await.is_err() {
        report.fail("total-time", "not done within 120 s");
    }
    report.finish()
}
