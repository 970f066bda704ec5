//! The lowest versions that the workspace asks for.

use std::fs;

use crate::metadata::Metadata;
use crate::{Outcome, workspace};

/// Checks that each requirement names the version in `Cargo.lock`. Then the lowest versions that users may get are those
/// that everything here is tested with, and no second build has to show that they work.
pub(super) fn check() -> Outcome {
    let metadata = Metadata::read()?;
    let requirements = requirements()?;
    let is_locked = |name: &str, lowest: &str| {
        let mut packages = metadata.packages.iter().filter(|package| package.name == name);
        // Build metadata, as in `1.1.8+spec`, is no part of a requirement.
        packages.any(|package| package.version.split('+').next() == Some(lowest))
    };
    let wrong: Vec<String> = requirements
        .iter()
        .filter(|(name, lowest)| !is_locked(name, lowest))
        .map(|(name, lowest)| format!("{name} = \"{lowest}\""))
        .collect();
    if wrong.is_empty() {
        Ok(format!("{} requirements, each with the version of Cargo.lock", requirements.len()))
    } else {
        Err(format!("requirements in Cargo.toml that do not name the version of Cargo.lock:\n{}", wrong.join("\n")))
    }
}

/// The requirements of the workspace, without those that are paths.
fn requirements() -> Result<Vec<(String, String)>, String> {
    let path = workspace::root().join("Cargo.toml");
    let text = fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let manifest: toml::Table = text.parse().map_err(|error| format!("{}: {error}", path.display()))?;
    let dependencies = manifest.get("workspace").and_then(|workspace| workspace.get("dependencies"));
    let dependencies = dependencies.and_then(toml::Value::as_table);
    let dependencies = dependencies.ok_or_else(|| format!("{} has no dependencies", path.display()))?;
    let external = dependencies.iter().filter(|(_, value)| value.get("path").is_none());
    let version = |value: &toml::Value| Some(value.as_str().or_else(|| value.get("version")?.as_str())?.to_owned());
    Ok(external.filter_map(|(name, value)| Some((name.clone(), version(value)?))).collect())
}
