//! Ids of requirements.

use std::fmt;
use std::str::FromStr;

/// The id of a requirement, such as `A-12`: a family and a number in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    /// All that stands before the number, such as `A-`, `S0.` or `S3.F`.
    pub(crate) family: String,
    number: u32,
}

impl FromStr for Id {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let family = text.trim_end_matches(|char: char| char.is_ascii_digit());
        let number = &text[family.len()..];
        let is_canonical = !number.starts_with('0') && is_family(family);
        let number = number.parse().ok().filter(|_| is_canonical).ok_or_else(|| format!("`{text}` is not an id"))?;
        Ok(Self { family: family.to_owned(), number })
    }
}

/// Up to three capital letters and a hyphen, or a chapter such as `S0.` or `S3.F`.
fn is_family(text: &str) -> bool {
    if let Some(letters) = text.strip_suffix('-') {
        return (1..=3).contains(&letters.len()) && letters.bytes().all(|byte| byte.is_ascii_uppercase());
    }
    let chapter = text.strip_suffix('F').unwrap_or(text).strip_suffix('.').and_then(|text| text.strip_prefix('S'));
    chapter.is_some_and(|digits| digits.len() == 1 && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.family, self.number)
    }
}

/// Reads a list of ids and of ranges of them: `A-1, A-3..A-5`.
pub(crate) fn list(text: &str) -> Result<Vec<Id>, String> {
    let mut ids = Vec::new();
    for part in text.split(',').map(str::trim) {
        let Some((first, last)) = part.split_once("..") else {
            ids.push(part.parse()?);
            continue;
        };
        let (first, last): (Id, Id) = (first.parse()?, last.parse()?);
        if first.family != last.family || first.number >= last.number {
            return Err(format!("`{part}` is not a range"));
        }
        ids.extend((first.number..=last.number).map(|number| Id { family: first.family.clone(), number }));
    }
    Ok(ids)
}

/// Elliptic curves, which look like ids.
const CURVES: [&str; 3] = ["P-256", "P-384", "P-521"];

/// The ids in a line of text. Those in code spans are not meant.
pub(crate) fn cited(line: &str) -> impl Iterator<Item = Id> {
    let is_outside = |char: char| !(char.is_alphanumeric() || matches!(char, '-' | '_' | '.' | '/' | '+'));
    let words = line.split('`').step_by(2).flat_map(move |text| text.split(is_outside));
    let words = words.flat_map(|word| word.split("..")).map(|word| word.trim_end_matches('.'));
    words.filter(|word| !CURVES.contains(word)).filter_map(|word| word.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::{Id, cited, list};

    fn texts(ids: impl IntoIterator<Item = Id>) -> Vec<String> {
        ids.into_iter().map(|id| id.to_string()).collect()
    }

    #[test]
    fn ids_are_read_as_they_are_written() {
        for text in ["QZ-1", "QQQ-120", "S7.12", "S7.F3"] {
            assert_eq!(text.parse::<Id>().map(|id| id.to_string()), Ok(text.to_owned()));
        }
        for text in
            ["", "Q", "QZ-", "QZ-01", "q-1", "QQQQ-1", "1", "S7.", "S77.1", "T7.1", "S7.FF1", "2026-07-28", "-32602"]
        {
            assert!(text.parse::<Id>().is_err(), "{text}");
        }
    }

    #[test]
    fn lists_have_ranges() {
        assert_eq!(
            list("QZ-1, QZ-3..QZ-5,S7.1").map(texts),
            Ok(["QZ-1", "QZ-3", "QZ-4", "QZ-5", "S7.1"].map(str::to_owned).to_vec())
        );
        for text in ["", "QZ-1,", "QZ-1 QZ-2", "QZ-2..QZ-1", "QZ-1..QQ-3", "QZ-1.."] {
            assert!(list(text).is_err(), "{text}");
        }
    }

    #[test]
    fn prose_cites_ids() {
        assert_eq!(texts(cited("(QZ-1, QZ-2..QZ-4): S7.1. And QZ-5's.")), ["QZ-1", "QZ-2", "QZ-4", "S7.1", "QZ-5"]);
        assert_eq!(texts(cited("P-256, P-384.")), [""; 0]);
        assert_eq!(texts(cited("`QZ-1` a/QZ-2 non-QZ-3 QZ-4x =?base64?Q+QZ-5?=")), [""; 0]);
    }
}
