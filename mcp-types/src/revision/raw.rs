//! Restricts raw JSON to one revision, without loss of members that the types do not have.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Error;

use super::restrict::{Restrict, Restriction, restrict_to};
use crate::{OrderedMap, RawJson, RawObject, Revision};

/// Does the same as [`restrict_to`] with an object that was received as JSON: members that `T` does not have stay, and so do
/// the order of members and the text of values.
///
/// # Errors
///
/// Returns an error if the object is not a `T`.
///
/// # Examples
///
/// ```
/// use mcp_types::{RawObject, Revision, Tool, restrict_raw};
///
/// let tool = RawObject::parse(r#"{"x-rank":1,"icons":[],"name":"search","inputSchema":{"type":"object"}}"#)?;
/// let (tool, restriction) = restrict_raw::<Tool>(&tool, Revision::V2025_06_18)?;
/// assert_eq!(tool.as_str(), r#"{"x-rank":1,"name":"search","inputSchema":{"type":"object"}}"#);
/// assert_eq!(restriction.dropped(), ["Tool.icons"]);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn restrict_raw<T: Restrict + Serialize + DeserializeOwned>(
    raw: &RawObject,
    revision: Revision,
) -> Result<(RawObject, Restriction), Error> {
    let mut restricted: T = raw.decode()?;
    let before = RawJson::new(&restricted)?;
    let restriction = restrict_to(&mut restricted, revision);
    let restricted = apply(&raw.clone().into(), &before, &RawJson::new(&restricted)?)?;
    Ok((restricted.try_into()?, restriction))
}

/// Applies the changes of a typed value to the JSON that it was read from: members that differ between `before` and `after`
/// are replaced, added or removed, and everything else stays as it is.
///
/// It descends only where the typed values differ, so that the depth is that of the types.
fn apply(raw: &RawJson, before: &RawJson, after: &RawJson) -> Result<RawJson, Error> {
    type Members = OrderedMap<RawJson>;
    if before.as_str() == after.as_str() {
        return Ok(raw.clone());
    }
    if let (Ok(raw), Ok(before), Ok(after)) =
        (raw.decode::<Members>(), before.decode::<Members>(), after.decode::<Members>())
    {
        let mut changed = Members::default();
        for (name, value) in raw {
            match (before.get(&name), after.get(&name)) {
                (None, None) => drop(changed.insert(name, value)),
                (Some(_), None) => {}
                (None, Some(after)) => drop(changed.insert(name, after.clone())),
                (Some(before), Some(after)) => {
                    let value = apply(&value, before, after)?;
                    changed.insert(name, value);
                }
            }
        }
        for (name, value) in after {
            if !changed.contains(&name) && before.get(&name) != Some(&value) {
                changed.insert(name, value);
            }
        }
        return RawJson::new(&changed);
    }
    type Elements = Vec<RawJson>;
    if let (Ok(raw), Ok(before), Ok(after)) =
        (raw.decode::<Elements>(), before.decode::<Elements>(), after.decode::<Elements>())
        && raw.len() == before.len()
        && before.len() == after.len()
    {
        let elements = raw.iter().zip(&before).zip(&after);
        let changed: Elements =
            elements.map(|((raw, before), after)| apply(raw, before, after)).collect::<Result<_, _>>()?;
        return RawJson::new(&changed);
    }
    Ok(after.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallToolResult, ListToolsResult};

    fn object(text: &str) -> RawObject {
        RawObject::parse(text).unwrap()
    }

    /// Known members of other revisions go, in nested objects and lists, and unknown ones stay where they are.
    // covers: GW-9
    #[test]
    fn gw_9_only_known_members_are_removed() {
        let list = object(
            r#"{"x":1.50,"ttlMs":5,"tools":[{"z":null,"name":"a","inputSchema":{"type":"object","b":1,"a":2},"icons":[{"src":"s:a"}],
                "annotations":{"readOnlyHint":true,"newHint":[1]},"execution":{"taskSupport":"optional"}}],"cacheScope":"public"}"#,
        );
        let cut = |revision| restrict_raw::<ListToolsResult>(&list, revision).unwrap().0.as_str().to_owned();
        let old = r#"{"x":1.50,"tools":[{"z":null,"name":"a","inputSchema":{"type":"object","b":1,"a":2}}]}"#;
        assert_eq!(cut(Revision::V2024_11_05), old);
        let annotated = r#""annotations":{"readOnlyHint":true,"newHint":[1]}"#;
        assert!(cut(Revision::V2025_06_18).contains(annotated) && !cut(Revision::V2025_06_18).contains("icons"));
        assert!(cut(Revision::V2025_11_25).contains("execution") && !cut(Revision::V2025_11_25).contains("ttlMs"));
        assert!(cut(Revision::V2026_07_28).contains("ttlMs") && !cut(Revision::V2026_07_28).contains("execution"));
    }

    /// What has nothing to remove is not touched, and what cannot be expressed is reported.
    // covers: GW-9
    #[test]
    fn gw_9_the_text_stays() {
        let text = r#"{"content":[{"type":"text","text":"\u00e9","x":1e2}],"y":{}}"#;
        let (result, restriction) = restrict_raw::<CallToolResult>(&object(text), Revision::V2024_11_05).unwrap();
        assert!(result.as_str() == text && restriction.may_be_sent());
        let audio = object(r#"{"content":[{"type":"audio","data":"","mimeType":"audio/wav"}]}"#);
        let (_, restriction) = restrict_raw::<CallToolResult>(&audio, Revision::V2024_11_05).unwrap();
        assert!(!restriction.refused().is_empty());
        assert!(restrict_raw::<CallToolResult>(&object(r#"{"content":7}"#), Revision::V2024_11_05).is_err());
    }
}
