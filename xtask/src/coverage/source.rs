//! The files that tests and citations are looked for in.

use std::fs;
use std::process::Command;

use crate::workspace;

/// A file of the repository.
pub(crate) struct Source {
    /// From the root of the workspace.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The lines with their numbers, without white space around them.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()))
    }
}

/// All files in Rust, Markdown and TOML that git knows, or would take.
pub(crate) fn all() -> Result<Vec<Source>, String> {
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "*.rs", "*.md", "*.toml"]);
    let output = git.current_dir(workspace::root()).output().map_err(|fault| format!("git: {fault}"))?;
    if !output.status.success() {
        return Err(format!("git: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    let paths = String::from_utf8(output.stdout).map_err(|fault| format!("git: {fault}"))?;
    let mut sources = Vec::new();
    for path in paths.lines() {
        let file = workspace::root().join(path);
        // One that was deleted is still in the index.
        if file.exists() {
            let text = fs::read_to_string(file).map_err(|fault| format!("{path}: {fault}"))?;
            sources.push(Source { path: path.to_owned(), text });
        }
    }
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(sources)
}
