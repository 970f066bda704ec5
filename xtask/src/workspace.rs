//! Where things are in this workspace.

use std::path::{Path, PathBuf};

/// The workspace's root folder.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_owned()
}

/// Where Cargo puts what it builds.
pub(crate) fn target_dir() -> PathBuf {
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    std::path::absolute(&folder).unwrap_or(folder)
}

/// The folder of the model and its companions.
pub(crate) fn schema_dir() -> PathBuf {
    root().join("mcp-types/schema")
}

/// The merged model.
pub(crate) fn model_path() -> PathBuf {
    schema_dir().join("model.json")
}

/// The oldest version of Rust that the workspace has to compile with.
pub(crate) fn minimum_rust_version() -> Result<String, String> {
    let path = root().join("Cargo.toml");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let manifest: toml::Table = text.parse().map_err(|error| format!("{}: {error}", path.display()))?;
    let package = manifest.get("workspace").and_then(|workspace| workspace.get("package"));
    let version = package.and_then(|package| package.get("rust-version")).and_then(toml::Value::as_str);
    version.map(str::to_owned).ok_or_else(|| format!("{} has no rust-version", path.display()))
}

/// The lines that two texts do not share, in order, at most forty of them.
pub(crate) fn line_diff(old: &str, new: &str) -> String {
    const SHOWN: usize = 40;
    let old: Vec<&str> = old.lines().collect();
    let new: Vec<&str> = new.lines().collect();
    let mut lines: Vec<String> = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        if old.get(i) == new.get(j) {
            (i, j) = (i + 1, j + 1);
        } else if let Some(skip) =
            old.get(i).and_then(|line| new[j.min(new.len())..].iter().position(|other| other == line))
        {
            lines.extend(new[j..j + skip].iter().map(|line| format!("+{line}")));
            j += skip;
        } else if let Some(line) = old.get(i) {
            lines.push(format!("-{line}"));
            i += 1;
        } else {
            lines.extend(new[j..].iter().map(|line| format!("+{line}")));
            j = new.len();
        }
    }
    if lines.len() > SHOWN {
        let more = lines.len() - SHOWN;
        lines.truncate(SHOWN);
        lines.push(format!("... and {more} more lines"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::line_diff;

    #[test]
    fn a_difference_shows_what_went_and_what_came() {
        assert_eq!(line_diff("a\nb\nc", "a\nx\nc\nd"), "-b\n+x\n+d");
        assert_eq!(line_diff("same", "same"), "");
    }
}
