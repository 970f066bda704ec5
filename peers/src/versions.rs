//! The versions that were compared, as locked.

/// Returns the name of a dependency with its version, out of `Cargo.lock`.
///
/// # Panics
///
/// Panics if the package is not a dependency.
#[must_use]
pub fn named(package: &str) -> String {
    let version = find(include_str!("../Cargo.lock"), package).expect("the package is a dependency of the benches");
    format!("{package} {version}")
}

fn find<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let mut lines = lock.lines();
    lines.find(|line| value(line, "name") == Some(package))?;
    value(lines.next()?, "version")
}

/// Returns the value of a line such as `name = "rmcp"`.
fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_follows_the_name() {
        let lock =
            "[[package]]\nname = \"a-b\"\nversion = \"1.0.0\"\n\n[[package]]\nname = \"b\"\nversion = \"2.1.0\"\n";
        assert_eq!(find(lock, "b"), Some("2.1.0"));
        assert_eq!(find(lock, "a"), None);
    }
}
