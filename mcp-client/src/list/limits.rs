//! How much a list may make a client keep.

use std::fmt;

use mcp_types::jsonrpc::PayloadBuf;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};

use crate::error::Error;

/// Bounds what a list may hold over all its pages, however many items are taken at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListLimits {
    /// Maximum number of pages. Defaults to 10,000. Of each page 8 bytes are kept, to notice lists that lead back to
    /// themselves.
    pub pages: usize,
    /// Maximum number of items; also of one page that is fetched by itself. Defaults to 100,000.
    pub items: usize,
    /// Maximum size of all pages together, as JSON, in bytes. Defaults to 64 MiB.
    pub bytes: usize,
}

impl Default for ListLimits {
    fn default() -> Self {
        Self { pages: 10_000, items: 100_000, bytes: 64 * 1024 * 1024 }
    }
}

impl ListLimits {
    /// Replaces [`pages`](Self::pages).
    #[must_use]
    pub fn with_pages(self, pages: usize) -> Self {
        Self { pages, ..self }
    }

    /// Replaces [`items`](Self::items).
    #[must_use]
    pub fn with_items(self, items: usize) -> Self {
        Self { items, ..self }
    }

    /// Replaces [`bytes`](Self::bytes).
    #[must_use]
    pub fn with_bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }

    /// Checks a page before it is decoded, because items take many times as much memory as the shortest text of one.
    pub(crate) fn check_page(&self, page: &PayloadBuf, member: &str) -> Result<(), Error> {
        if page.as_str().len() / SHORTEST_ITEM <= self.items {
            return Ok(());
        }
        let items = page.get(member).map_or(0, |items| count(items.get()));
        if items > self.items { Err(ListLimit::Items(self.items).into()) } else { Ok(()) }
    }
}

/// The size of the shortest item, with what separates it from the next: `{"name":""},`.
const SHORTEST_ITEM: usize = 12;

/// How many items an array has; what is none is refused when it is decoded.
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

/// The limit of [`ListLimits`] that a list exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ListLimit {
    /// [`ListLimits::pages`].
    #[error("the list has more than {0} pages")]
    Pages(usize),
    /// [`ListLimits::items`].
    #[error("the list has more than {0} items")]
    Items(usize),
    /// [`ListLimits::bytes`].
    #[error("the list has more than {0} bytes")]
    Bytes(usize),
}
