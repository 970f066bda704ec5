//! `cargo xtask api`: the public API of each published crate as text, so that every change of it can be seen in review.

use std::fs;
use std::path::Path;
use std::time::Duration;

use public_api::Builder;

use crate::metadata::Metadata;
use crate::{Outcome, nightly, process, workspace};

/// Where the snapshots are, one for each crate.
const SNAPSHOTS: &str = "docs/api";

const LIMIT: Duration = Duration::from_secs(1200);

/// Writes the snapshots, or checks that they are up to date. Returns the number of items of each crate.
pub(crate) fn run(check: bool) -> Outcome {
    let metadata = Metadata::read()?;
    let packages: Vec<&str> = metadata.published().map(|package| package.name.as_str()).collect();
    document(&packages)?;
    let folder = workspace::root().join(SNAPSHOTS);
    fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let (mut changes, mut summary) = (String::new(), String::new());
    for package in packages {
        let json = format!("api/doc/{}.json", package.replace('-', "_"));
        let (text, items) = snapshot(&workspace::target_dir().join(json))?;
        summary += &format!("{package:<20} {items:>6} public items\n");
        let path = folder.join(format!("{package}.txt"));
        let committed = fs::read_to_string(&path).unwrap_or_default();
        if committed == text {
            continue;
        }
        if check {
            changes += &format!("{SNAPSHOTS}/{package}.txt:\n{}\n", workspace::line_diff(&committed, &text));
        } else {
            fs::write(&path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
    }
    if changes.is_empty() {
        Ok(summary)
    } else {
        Err(format!("{changes}the public API is not the one of {SNAPSHOTS}; run `cargo xtask api`"))
    }
}

/// Has rustdoc write JSON about the packages with all features. What is hidden in documentation is no part of it.
fn document(packages: &[&str]) -> Result<(), String> {
    nightly::install()?;
    let mut command = nightly::cargo(&["doc", "--quiet", "--locked", "--no-deps", "--lib", "--all-features"]);
    command.args(packages.iter().flat_map(|package| ["--package", package]));
    // Apart from what stable Rust builds, which is no use for another toolchain.
    command.arg("--target-dir").arg(workspace::target_dir().join("api"));
    command.env("RUSTDOCFLAGS", "-Z unstable-options --output-format json").current_dir(workspace::root());
    process::run(&mut command, "rustdoc of the published crates", LIMIT)
}

/// The items of a crate, one on each line in the order of their paths, and their number, which leaves out the headers of
/// `impl` blocks. Implementations that are derived or hold for whole sets of types are left out altogether.
fn snapshot(json: &Path) -> Result<(String, usize), String> {
    let builder = Builder::from_rustdoc_json(json);
    let builder = builder.omit_blanket_impls(true).omit_auto_trait_impls(true).omit_auto_derived_impls(true);
    let api = builder.build().map_err(|error| format!("cannot read {}: {error}", json.display()))?;
    let lines: Vec<String> = api.items().map(|item| format!("{item}\n")).collect();
    let items = lines.iter().filter(|line| !line.starts_with("impl")).count();
    Ok((lines.concat(), items))
}
