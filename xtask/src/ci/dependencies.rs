//! What the crates may depend on.

use std::process::Command;

use crate::{Outcome, workspace};

/// Runtimes, I/O and randomness.
const IMPURE: [&str; 13] = [
    "async-std",
    "futures",
    "futures-core",
    "futures-util",
    "getrandom",
    "hyper",
    "mio",
    "rand",
    "redis",
    "reqwest",
    "smol",
    "socket2",
    "tokio",
];

/// The crates that do no I/O.
const WITHOUT_IO: [&str; 3] = ["mcp-types", "mcp-kernel", "mcp-mrtr"];

/// The most crates that something may consist of, with these options of `cargo tree`. Validation by JSON Schema is half of what a
/// server of the facade consists of.
const SIZES: [(&str, &[&str], usize); 4] = [
    ("mcp-types", &[], 12),
    ("mcp-transport-stdio", &[], 35),
    ("mcp", &["--no-default-features", "--features", "server,stdio"], 53),
    ("mcp", &[], 101),
];

/// Checks all of it, and returns the numbers.
pub(super) fn check() -> Outcome {
    for package in WITHOUT_IO {
        forbid(package, &[], &IMPURE)?;
    }
    // The flows of a login, which other features drive.
    forbid("mcp-auth", &["--features", "client"], &IMPURE)?;
    // Keys and ids are random; everything else is the transports'.
    let runtimes = ["async-std", "hyper", "mio", "reqwest", "smol", "tokio"];
    // All features but `blocking`, which is tokio's.
    forbid("mcp-server", &["--features", "anyhow,mrtr,store-tests,tower,validate"], &runtimes)?;
    SIZES.iter().map(|(package, options, most)| limit(package, options, *most)).collect()
}

fn forbid(package: &str, options: &[&str], forbidden: &[&str]) -> Result<(), String> {
    let crates = tree(package, options)?;
    let found: Vec<&str> = crates.iter().map(|line| name(line)).filter(|name| forbidden.contains(name)).collect();
    if found.is_empty() { Ok(()) } else { Err(format!("{package} must not depend on {}", found.join(", "))) }
}

fn limit(package: &str, options: &[&str], most: usize) -> Outcome {
    let crates = tree(package, options)?.len();
    let what = [&[package], options].concat().join(" ");
    if crates > most {
        return Err(format!("{what} consists of {crates} crates, more than {most}"));
    }
    Ok(format!("{what} consists of {crates} crates (at most {most})\n"))
}

/// The crates that a package consists of, one line each.
fn tree(package: &str, options: &[&str]) -> Result<Vec<String>, String> {
    let mut command = Command::new("cargo");
    command.args(["tree", "--package", package, "--edges", "normal", "--prefix", "none", "--locked"]);
    let output = command.args(options).current_dir(workspace::root()).output();
    let output = output.map_err(|error| format!("cannot start cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo tree failed:\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let mut crates: Vec<String> = text.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect();
    crates.sort_unstable();
    crates.dedup();
    Ok(crates)
}

/// The name at the beginning of a line such as `serde v1.0.0`.
fn name(line: &str) -> &str {
    line.split(' ').next().unwrap_or(line)
}
