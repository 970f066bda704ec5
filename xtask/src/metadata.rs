//! What cargo knows about the packages of the workspace and those that they depend on.

use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;

use crate::workspace;

#[derive(Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    workspace_members: Vec<String>,
}

#[derive(Deserialize)]
pub(crate) struct Package {
    id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    pub(crate) manifest_path: PathBuf,
    /// The registries that it may be published to; `None` means all of them.
    publish: Option<Vec<String>>,
    pub(crate) dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
pub(crate) struct Dependency {
    name: String,
    rename: Option<String>,
}

impl Metadata {
    pub(crate) fn read() -> Result<Self, String> {
        let mut command = Command::new("cargo");
        command.args(["metadata", "--format-version", "1", "--locked", "--all-features"]);
        let output = command.current_dir(workspace::root()).output();
        let output = output.map_err(|error| format!("cannot start cargo: {error}"))?;
        if !output.status.success() {
            return Err(format!("cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr)));
        }
        serde_json::from_slice(&output.stdout).map_err(|error| format!("cannot read cargo metadata: {error}"))
    }

    /// The packages of the workspace that are published.
    pub(crate) fn published(&self) -> impl Iterator<Item = &Package> {
        self.members().filter(|package| package.publish.as_ref().is_none_or(|registries| !registries.is_empty()))
    }

    /// The packages of the workspace.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.workspace_members.contains(&package.id))
    }
}

impl Dependency {
    /// The name in source code.
    pub(crate) fn crate_name(&self) -> String {
        self.rename.as_ref().unwrap_or(&self.name).replace('-', "_")
    }
}
