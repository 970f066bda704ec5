//! Tests, and the requirements that they cover.

use super::id::{self, Id};
use super::source::Source;

/// A test that names requirements.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TestCase {
    pub(crate) file: String,
    pub(crate) name: String,
    pub(crate) covers: Vec<Id>,
}

/// Finds the tests below a comment that names what they cover.
pub(crate) fn find(source: &Source) -> Result<Vec<TestCase>, String> {
    let mut tests = Vec::new();
    if !source.is_rust() {
        return Ok(tests);
    }
    let mut covers: Option<(usize, Vec<Id>)> = None;
    let mut is_test = false;
    for (number, line) in source.lines() {
        let Some((begun, ids)) = &mut covers else {
            if let Some(list) = line.strip_prefix("// covers:") {
                let ids = id::list(list).map_err(|fault| format!("{}:{number}: {fault}", source.path))?;
                (covers, is_test) = (Some((number, ids)), false);
            }
            continue;
        };
        if line.starts_with("//") {
            continue;
        }
        if line.starts_with("#[") {
            is_test |= line == "#[test]" || line.starts_with("#[tokio::test");
            continue;
        }
        let name = function(line).filter(|_| is_test);
        let name = name.ok_or_else(|| format!("{}:{begun}: there is no test below", source.path))?;
        tests.push(TestCase { file: source.path.clone(), name: name.to_owned(), covers: std::mem::take(ids) });
        covers = None;
    }
    match covers {
        None => Ok(tests),
        Some((begun, _)) => Err(format!("{}:{begun}: there is no test below", source.path)),
    }
}

/// The name of the function that a line begins.
fn function(line: &str) -> Option<&str> {
    let line = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ")?;
    Some(line.split(|char: char| !(char.is_alphanumeric() || char == '_')).next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::{Source, find};

    fn names(text: &str) -> Result<Vec<(String, String)>, String> {
        let tests = find(&Source { path: "a/src/b.rs".to_owned(), text: text.to_owned() })?;
        let ids = |ids: Vec<super::Id>| ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        Ok(tests.into_iter().map(|test| (test.name, ids(test.covers))).collect())
    }

    #[test]
    fn tests_are_found_below_their_comment() {
        let one = "fn other() {}\n\n    /// Says why.\n    // covers: QQ-1..QQ-3\n    // More.\n    #[test]\n    fn one() {}\n";
        let two = "// covers: QQ-5\n#[tokio::test(start_paused = true)]\n#[ignore]\nasync fn two() {}\n#[test]\nfn three() {}\n";
        let expected =
            [("one", "QQ-1 QQ-2 QQ-3"), ("two", "QQ-5")].map(|(name, ids)| (name.to_owned(), ids.to_owned()));
        assert_eq!(names(&format!("{one}{two}")), Ok(expected.to_vec()));
    }

    #[test]
    fn a_comment_without_a_test_is_a_fault() {
        for text in ["// covers: QQ-1\nfn one() {}\n", "// covers: QQ-1\n\n#[test]\nfn one() {}\n", "// covers: QQ-1\n"]
        {
            assert_eq!(names(text), Err("a/src/b.rs:1: there is no test below".to_owned()), "{text}");
        }
        assert_eq!(names("\n// covers: quickly\n"), Err("a/src/b.rs:2: `quickly` is not an id".to_owned()));
    }
}
