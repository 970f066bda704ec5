//! Dependencies that no source file names.

use std::fs;
use std::path::Path;

use crate::metadata::Metadata;
use crate::{Outcome, workspace};

/// Fails with the dependencies of each package that its source files do not name.
pub(super) fn check() -> Outcome {
    let metadata = Metadata::read()?;
    let mut unused = Vec::new();
    for package in metadata.members() {
        let folder = package.manifest_path.parent().unwrap_or(&package.manifest_path);
        let mut source = String::new();
        read_sources(folder, "rs", &mut source)?;
        if source.contains("include_str!(\"../../docs/") {
            // The code of the guides is compiled with the package that includes them.
            read_sources(&workspace::root().join("docs"), "md", &mut source)?;
        }
        let names = package.dependencies.iter().map(|dependency| dependency.crate_name());
        unused.extend(names.filter(|name| !mentions(&source, name)).map(|name| format!("{}: {name}", package.name)));
    }
    unused.sort_unstable();
    unused.dedup();
    if unused.is_empty() {
        Ok("every dependency is used".to_owned())
    } else {
        Err(format!("dependencies that no source file names:\n{}", unused.join("\n")))
    }
}

/// Appends all files of a kind below a folder. Symbolic links are not followed.
fn read_sources(folder: &Path, kind: &str, source: &mut String) -> Result<(), String> {
    let failed = |error| format!("cannot read {}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        if entry.file_type().map_err(failed)?.is_dir() {
            read_sources(&path, kind, source)?;
        } else if path.extension().is_some_and(|extension| extension == kind) {
            source.push_str(&fs::read_to_string(&path).map_err(failed)?);
        }
    }
    Ok(())
}

/// Whether a crate is named in source code, outside of longer names.
fn mentions(source: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    source.match_indices(name).any(|(start, _)| {
        let before = source.get(..start).and_then(|before| before.chars().next_back());
        let after = source.get(start + name.len()..).and_then(|after| after.chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::mentions;

    #[test]
    fn a_crate_is_named_by_a_whole_word() {
        assert!(mentions("use http::Request;", "http"));
        assert!(mentions("let body = http_body::Empty::new();", "http_body"));
        assert!(!mentions("use http_body::Body;", "http"));
        assert!(!mentions("use reqwest_http;", "http"));
    }
}
