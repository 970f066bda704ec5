//! Our client against servers made with the packages of others, and against our own: the same checks for each, over each
//! transport that it has, in each mode of the client.
//!
//! What the servers offer, and in what they differ, is in `interop/servers/README.md`; what of that makes a difference
//! here is in `peer.rs`. `interop/install` has to be run before.

mod body;
mod connecting;
mod eras;
mod listening;
mod peer;
mod report;
mod scene;
mod server;
mod sessions;

use peer::{OURS, PYTHON1, PYTHON2, Peer, RMCP, TYPESCRIPT1, TYPESCRIPT2};
use server::Via;

/// All modes of the client with one server, over one transport; at least so many checks pass.
async fn run(peer: &'static Peer, via: Via, least: usize) {
    let passed = connecting::all(peer, via).await;
    assert!(passed >= least, "{} over {via:?}: {passed} checks passed, there were {least}", peer.name);
}

macro_rules! runs {
    ($($name:ident: $peer:ident, $via:ident, $least:literal;)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                run(&$peer, Via::$via, $least).await;
            }
        )*
    };
}

runs! {
    python1_stdio: PYTHON1, Stdio, 121;
    python1_http: PYTHON1, Http, 122;
    python1_sse: PYTHON1, Sse, 121;
    python2_stdio: PYTHON2, Stdio, 143;
    python2_http: PYTHON2, Http, 144;
    python2_sse: PYTHON2, Sse, 121;
    typescript1_stdio: TYPESCRIPT1, Stdio, 121;
    typescript1_http: TYPESCRIPT1, Http, 122;
    typescript1_sse: TYPESCRIPT1, Sse, 121;
    typescript2_stdio: TYPESCRIPT2, Stdio, 143;
    typescript2_http: TYPESCRIPT2, Http, 144;
    typescript2_sse: TYPESCRIPT2, Sse, 121;
    rmcp_stdio: RMCP, Stdio, 143;
    rmcp_http: RMCP, Http, 144;
    ours_stdio: OURS, Stdio, 143;
    ours_http: OURS, Http, 144;
    ours_sse: OURS, Sse, 121;
}

/// The whole matrix, with servers that know one era or one revision.
#[tokio::test]
async fn eras_over_stdio() {
    assert!(eras::all(Via::Stdio).await >= 19);
}

#[tokio::test]
async fn eras_over_http() {
    assert!(eras::all(Via::Http).await >= 19);
}
