//! The official clients drive the fixture server over standard input and output, in every revision.
//!
//! What they check is in `interop/README.md`. `interop/install` has to be run before.

mod interop;

use interop::{ALONE, SERVER, drive, script};

#[tokio::test]
async fn python() {
    let _alone = ALONE.lock().await;
    // A client that is given up takes its server with it, whose input ends.
    drive(script("python/bin/python", "python/drive.py").args(["--", SERVER, "--stdio"]), 305).await;
}

#[tokio::test]
async fn typescript() {
    let _alone = ALONE.lock().await;
    drive(script("bin/node", "typescript/drive.mjs").args(["--", SERVER, "--stdio"]), 302).await;
}
