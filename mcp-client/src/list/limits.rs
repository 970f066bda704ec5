//! Limits of lists.

use std::fmt;

use mcp_types::jsonrpc::PayloadBuf;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};

use crate::error::Error;

/// Limits of a list, summed over all its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListLimits {
    /// Maximum number of pages. Defaults to 10,000. Each page costs 8 bytes, to detect repeated cursors.
    pub max_pages: usize,
    /// Maximum number of items. Also applies to a page that is fetched on its own. Defaults to 100,000.
    pub max_items: usize,
    /// Maximum size of all pages as JSON, in bytes. Defaults to 64 MiB.
    pub max_bytes: usize,
}

impl Default for ListLimits {
    fn default() -> Self {
        Self { max_pages: 10_000, max_items: 100_000, max_bytes: 64 * 1024 * 1024 }
    }
}

impl ListLimits {
    /// Sets [`max_pages`](Self::max_pages).
    #[must_use]
    pub fn max_pages(self, max_pages: usize) -> Self {
        Self { max_pages, ..self }
    }

    /// Sets [`max_items`](Self::max_items).
    #[must_use]
    pub fn max_items(self, max_items: usize) -> Self {
        Self { max_items, ..self }
    }

    /// Sets [`max_bytes`](Self::max_bytes).
    #[must_use]
    pub fn max_bytes(self, max_bytes: usize) -> Self {
        Self { max_bytes, ..self }
    }

    /// Checks the number of items of a page before it is decoded, because an item takes many times as much memory as its
    /// JSON text.
    pub(crate) fn check_page(&self, page: &PayloadBuf, member: &str) -> Result<(), Error> {
        if page.as_str().len() / MIN_ITEM_BYTES <= self.max_items {
            return Ok(());
        }
        let items = page.get(member).map_or(0, |items| count(items.get()));
        if items > self.max_items { Err(ListLimitExceeded::Items(self.max_items).into()) } else { Ok(()) }
    }
}

/// The size of the shortest item with its separator, `{"name":""},`.
const MIN_ITEM_BYTES: usize = 12;

/// Returns the number of elements of an array; 0 if it is not one, which decoding rejects later.
fn count(array: &str) -> usize {
    serde_json::Deserializer::from_str(array).deserialize_seq(Count).unwrap_or(0)
}

struct Count;

impl<'de> Visitor<'de> for Count {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<usize, A::Error> {
        let mut count = 0;
        while items.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(count)
    }
}

/// The limit of [`ListLimits`] that a list exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ListLimitExceeded {
    /// Exceeded [`ListLimits::max_pages`].
    #[error("the list has more than {0} pages")]
    Pages(usize),
    /// Exceeded [`ListLimits::max_items`].
    #[error("the list has more than {0} items")]
    Items(usize),
    /// Exceeded [`ListLimits::max_bytes`].
    #[error("the list has more than {0} bytes")]
    Bytes(usize),
}
