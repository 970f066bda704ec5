//! What cargo knows about the packages of the workspace and those that they depend on.

use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;

use crate::workspace;

#[derive(Deserialize)]
pub(super) struct Metadata {
    pub(super) packages: Vec<Package>,
    workspace_members: Vec<String>,
}

#[derive(Deserialize)]
pub(super) struct Package {
    id: String,
    pub(super) name: String,
    pub(super) version: String,
    pub(super) license: Option<String>,
    pub(super) manifest_path: PathBuf,
    pub(super) dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
pub(super) struct Dependency {
    name: String,
    rename: Option<String>,
}

impl Metadata {
    pub(super) fn read() -> Result<Self, String> {
        let mut command = Command::new("cargo");
        command.args(["metadata", "--format-version", "1", "--locked", "--all-features"]);
        let output = command.current_dir(workspace::root()).output();
        let output = output.map_err(|error| format!("cannot start cargo: {error}"))?;
        if !output.status.success() {
            return Err(format!("cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr)));
        }
        serde_json::from_slice(&output.stdout).map_err(|error| format!("cannot read cargo metadata: {error}"))
    }

    /// The packages of the workspace.
    pub(super) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.workspace_members.contains(&package.id))
    }
}

impl Dependency {
    /// The name in source code.
    pub(super) fn crate_name(&self) -> String {
        self.rename.as_ref().unwrap_or(&self.name).replace('-', "_")
    }
}
