//! `cargo xtask import DIR`: merges the official schema files into the model of facts.

mod curation;
mod diff;
mod extension;
mod merge;
mod official;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use self::curation::Curation;
use self::merge::Revisions;
use crate::model::{REVISIONS, to_readable_json};
use crate::{Outcome, workspace};

/// Merges the files below `dir` and writes `model.json`, or checks that it is up to date.
pub(crate) fn run(dir: &Path, check: bool) -> Outcome {
    let curation = read_curation()?;
    let (revisions, sources) = read_revisions(dir, &curation)?;
    let mut model = merge::merge(&revisions, &curation)?;
    model.sources = sources;
    let value = serde_json::to_value(&model).map_err(|fault| fault.to_string())?;
    let text = to_readable_json(&value);
    let path = workspace::model_path();
    let known = fs::read_to_string(&path).unwrap_or_default();
    if known == text {
        return Ok(format!(
            "{} types and {} methods: model.json is up to date",
            model.types.len(),
            model.methods.len()
        ));
    }
    if check {
        return Err(format!(
            "model.json differs from the official schemas; run `cargo xtask import DIR` and look at the change:\n{}",
            workspace::line_diff(&known, &text)
        ));
    }
    fs::write(&path, text).map_err(|fault| format!("{}: {fault}", path.display()))?;
    Ok(format!("wrote {} types and {} methods to {}", model.types.len(), model.methods.len(), path.display()))
}

/// Describes what changed from revision `old` to revision `new`.
pub(crate) fn diff(dir: &Path, old: &str, new: &str) -> Outcome {
    let curation = read_curation()?;
    let (revisions, _) = read_revisions(dir, &curation)?;
    let find = |name: &str| {
        revisions.get(name).ok_or_else(|| format!("`{name}` is not a revision; there are {}", REVISIONS.join(", ")))
    };
    Ok(diff::describe(old, find(old)?, new, find(new)?))
}

fn read_curation() -> Result<Curation, String> {
    let path = workspace::schema_dir().join("curation.toml");
    let text = fs::read_to_string(&path).map_err(|fault| format!("{}: {fault}", path.display()))?;
    toml::from_str(&text).map_err(|fault| format!("{}: {fault}", path.display()))
}

/// The revisions, and a fingerprint of each file.
fn read_revisions(dir: &Path, curation: &Curation) -> Result<(Revisions, BTreeMap<String, String>), String> {
    let mut revisions = Revisions::new();
    let mut sources = BTreeMap::new();
    for revision in REVISIONS {
        let path = dir.join(revision).join("schema.json");
        let text = fs::read_to_string(&path).map_err(|fault| {
            format!(
                "{}: {fault}\nDIR must hold one folder per revision, each with the official schema.json",
                path.display()
            )
        })?;
        sources.insert(revision.to_owned(), fingerprint(&text));
        let mut file: Value = serde_json::from_str(&text).map_err(|fault| format!("{}: {fault}", path.display()))?;
        apply_errata(revision, &mut file, curation)?;
        revisions.insert(revision, official::read(revision, &file, curation)?);
    }
    Ok((revisions, sources))
}

/// FNV-1a: enough to notice that a file was edited, unless that was to be hidden.
fn fingerprint(text: &str) -> String {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

/// Mends the known faults; one that is no longer there means that the file was edited.
// CG-7
fn apply_errata(revision: &str, file: &mut Value, curation: &Curation) -> Result<(), String> {
    let root = if file.get("$defs").is_some() { "/$defs" } else { "/definitions" };
    for erratum in curation.errata.iter().filter(|erratum| erratum.revisions.iter().any(|known| known == revision)) {
        let place = file.pointer_mut(&format!("{root}{}", erratum.at));
        match place {
            Some(place) if *place == erratum.says => *place = erratum.means.clone(),
            Some(place) => {
                return Err(format!(
                    "{revision}{}: erratum {} expects {}, found {place}",
                    erratum.at, erratum.id, erratum.says
                ));
            }
            None => return Err(format!("{revision}{}: erratum {} points nowhere", erratum.at, erratum.id)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Dated files do get edited; an erratum that no longer fits is noticed.
    // covers: CG-7
    #[test]
    fn errata_must_still_apply() {
        let curation = read_curation().expect("curation");
        let mut edited = json!({ "$defs": { "JSONValue": { "anyOf": [{}, {}, { "type": ["string"] }] } } });
        let fault = apply_errata("2026-07-28", &mut edited, &curation).expect_err("refused");
        assert!(fault.contains("erratum CG-8 expects"), "{fault}");
        let fault = apply_errata("2026-07-28", &mut json!({ "$defs": {} }), &curation).expect_err("refused");
        assert!(fault.contains("points nowhere"), "{fault}");
    }

    #[test]
    fn a_missing_folder_is_explained() {
        let fault = run(Path::new("no/such/folder"), true).expect_err("refused");
        assert!(fault.contains("one folder per revision"), "{fault}");
    }
}
