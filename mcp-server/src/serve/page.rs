//! Pagination of lists.

use mcp_types::{ErrorObject, base64};

/// Returns a page of a list whose items have unique names, in the order of the list, and the cursor of the next page.
///
/// A cursor names the last item of the previous page, so it stays valid while other items are added and removed.
// G-5
pub(crate) fn page<'a, T>(
    items: &'a [T],
    name: impl Fn(&T) -> &str,
    size: usize,
    cursor: Option<&str>,
) -> Result<(&'a [T], Option<String>), ErrorObject> {
    let start = match cursor {
        None => 0,
        Some(cursor) => {
            let after = decode(cursor).ok_or_else(invalid)?;
            1 + items.iter().position(|item| name(item) == after).ok_or_else(invalid)?
        }
    };
    let rest = items.get(start..).unwrap_or_default();
    let page = rest.get(..size).unwrap_or(rest);
    let next = page.last().filter(|_| page.len() < rest.len()).map(|last| encode(name(last)));
    Ok((page, next))
}

/// Does the same as [`page`] with the visible items only, as if the others were not in the list.
pub(crate) fn visible_page<'a, T>(
    items: &'a [T],
    name: impl Fn(&T) -> &str,
    is_visible: impl Fn(&T) -> bool,
    size: usize,
    cursor: Option<&str>,
) -> Result<(Vec<&'a T>, Option<String>), ErrorObject> {
    let start = match cursor {
        None => 0,
        Some(cursor) => {
            let after = decode(cursor).ok_or_else(invalid)?;
            let found = items.iter().enumerate().find(|(_, item)| name(item) == after);
            let (index, _) = found.filter(|(_, item)| is_visible(item)).ok_or_else(invalid)?;
            index + 1
        }
    };
    let mut rest = items.iter().skip(start).filter(|item| is_visible(item));
    let page: Vec<&T> = rest.by_ref().take(size).collect();
    let next = page.last().filter(|_| rest.next().is_some()).map(|last| encode(name(last)));
    Ok((page, next))
}

fn encode(name: &str) -> String {
    base64::encode(name.as_bytes())
}

fn decode(cursor: &str) -> Option<String> {
    String::from_utf8(base64::decode(cursor).ok()?).ok()
}

fn invalid() -> ErrorObject {
    ErrorObject::invalid_params("the cursor is not valid; start again without one")
}

#[cfg(test)]
mod tests {
    use mcp_types::ErrorCode;

    use super::*;

    fn take(items: &[&'static str], cursor: Option<&str>) -> (Vec<&'static str>, Option<String>) {
        let (page, next) = page(items, |item| item, 2, cursor).unwrap();
        (page.to_vec(), next)
    }

    /// All items once, in their order, also when others come and go between two pages.
    // covers: G-5
    #[test]
    fn pages_follow_each_other() {
        let (first, next) = take(&["a", "b", "c", "d", "e"], None);
        assert_eq!(first, ["a", "b"]);
        let (second, next) = take(&["x", "b", "c", "d", "e"], next.as_deref());
        assert_eq!(second, ["c", "d"]);
        let (third, next) = take(&["a", "b", "c", "d", "e"], next.as_deref());
        assert_eq!((third, next), (vec!["e"], None));
        assert_eq!(take(&["a", "b"], None), (vec!["a", "b"], None));
        assert_eq!(take(&[], None), (vec![], None));
    }

    /// Pages of what is visible are full, and do not end with a cursor to nothing. A cursor to what is not visible is as
    /// invalid as one to what does not exist.
    // covers: AUT-4
    #[test]
    fn aut_4_pages_do_not_reveal_hidden_items() {
        let items = ["hidden1", "a", "hidden2", "b", "c", "hidden3", "d", "hidden4"];
        let take = |cursor: Option<&str>| {
            let (page, next) =
                visible_page(&items, |item| item, |item| !item.starts_with("hidden"), 2, cursor).unwrap();
            (page.into_iter().copied().collect::<Vec<_>>(), next)
        };
        let (first, next) = take(None);
        assert_eq!((first, next.as_deref()), (vec!["a", "b"], Some(&*encode("b"))));
        assert_eq!(take(next.as_deref()), (vec!["c", "d"], None));
        let refused = |cursor: &str| {
            visible_page(&items, |item| item, |item| !item.starts_with("hidden"), 2, Some(cursor)).unwrap_err()
        };
        assert_eq!(refused(&encode("hidden2")), refused(&encode("unknown")));
    }

    /// An empty cursor is a cursor, and not one of ours.
    // covers: G-3, G-5
    #[test]
    fn foreign_cursors_are_refused() {
        for cursor in ["", "1", "%%%", "eA=="] {
            let refused = page(&["a"], |item| item, 2, Some(cursor)).unwrap_err();
            assert_eq!(refused.code, ErrorCode::INVALID_PARAMS);
        }
    }
}
