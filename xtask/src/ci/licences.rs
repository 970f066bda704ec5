//! The licences of everything that the workspace depends on.

use spdx::{Expression, ParseMode};

use crate::Outcome;
use crate::metadata::Metadata;

/// The licences that users of these crates need not think about. Of a choice of licences one has to be among them.
const ALLOWED: [&str; 12] = [
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Fails with the packages whose licence is not allowed.
pub(super) fn check() -> Outcome {
    let metadata = Metadata::read()?;
    let refused: Vec<String> = metadata
        .packages
        .iter()
        .filter(|package| !package.license.as_deref().is_some_and(is_allowed))
        .map(|package| format!("{} {}: {:?}", package.name, package.version, package.license))
        .collect();
    if refused.is_empty() {
        Ok(format!("{} packages, all with an allowed licence", metadata.packages.len()))
    } else {
        Err(format!("licences that are not allowed:\n{}", refused.join("\n")))
    }
}

fn is_allowed(licence: &str) -> bool {
    let is_known = |requirement: &spdx::LicenseReq| {
        requirement.license.id().is_some_and(|id| ALLOWED.contains(&id.name)) && requirement.addition.is_none()
    };
    Expression::parse_mode(licence, ParseMode::LAX).is_ok_and(|expression| expression.evaluate(is_known))
}

#[cfg(test)]
mod tests {
    use super::is_allowed;

    #[test]
    fn one_of_a_choice_is_enough_and_all_of_a_sum_are_needed() {
        assert!(is_allowed("MIT OR Apache-2.0"));
        assert!(is_allowed("Unlicense/MIT"), "the notation of old manifests");
        assert!(is_allowed("GPL-3.0-only OR MIT"));
        assert!(is_allowed("(MIT OR Apache-2.0) AND Unicode-3.0"));
        assert!(!is_allowed("GPL-3.0-only"));
        assert!(!is_allowed("MIT AND GPL-3.0-only"));
        assert!(!is_allowed("not a licence"));
    }
}
