//! The environment variables that a server inherits by default.

use std::ffi::{OsStr, OsString};

/// Variables that programs need and that hold no secrets; the official SDKs pass the same.
#[cfg(not(windows))]
const INHERITED: [&str; 6] = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];

#[cfg(windows)]
const INHERITED: [&str; 12] = [
    "APPDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "USERNAME",
    "USERPROFILE",
];

/// Keeps the variables that a server inherits.
pub(super) fn inherited(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    variables.into_iter().filter(|(name, value)| is_inherited(name) && !is_function(value))
}

fn is_inherited(name: &OsStr) -> bool {
    INHERITED.iter().any(|inherited| is_same(name, OsStr::new(inherited)))
}

/// Returns whether two names identify the same variable.
pub(super) fn is_same(one: &OsStr, other: &OsStr) -> bool {
    if cfg!(windows) { one.eq_ignore_ascii_case(other) } else { one == other }
}

/// Some shells execute function definitions in variables (Shellshock).
fn is_function(value: &OsStr) -> bool {
    value.as_encoded_bytes().starts_with(b"()")
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: SEC-12
    #[test]
    fn sec_12_only_what_is_on_the_list_is_passed() {
        let ours = ["AWS_SECRET_ACCESS_KEY", "PATH", "LD_PRELOAD", "PATHS"];
        let inherited: Vec<_> = inherited(ours.map(|name| (name.into(), "value".into()))).collect();
        assert_eq!(inherited, [("PATH".into(), "value".into())]);
    }

    // covers: SEC-12
    #[test]
    fn sec_12_functions_of_shells_are_not_passed() {
        assert_eq!(inherited([("PATH".into(), "() { :; }; id".into())]).count(), 0);
    }

    // covers: SEC-12
    #[test]
    fn sec_12_names_are_compared_as_the_system_does() {
        assert_eq!(inherited([("Path".into(), "value".into())]).count(), usize::from(cfg!(windows)));
    }
}
