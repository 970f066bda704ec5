//! Paginated lists.

mod limits;

use std::any::Any;
use std::collections::{BTreeSet, VecDeque};
use std::future::poll_fn;
use std::hash::{BuildHasher as _, RandomState};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;
use mcp_types::core_tasks::ListTasksResult;
use mcp_types::{
    ErrorCode, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, Prompt, Resource,
    ResourceTemplate, Tool,
};
use serde::de::DeserializeOwned;

use crate::call::Call;
use crate::client::Client;
use crate::context::CallExtensions;
use crate::error::Error;
use crate::request_handlers::BoxFuture;
use crate::tasks::TaskReference;

pub use self::limits::{ListLimitExceeded, ListLimits};

/// A stream of the items of a list, which fetches pages as they are needed. [`all`](Self::all) collects them, and
/// [`next`](Self::next) returns them one by one.
///
/// The limits of [`ClientBuilder::list_limits`](crate::ClientBuilder::list_limits) apply to the list as a whole.
#[must_use = "streams do nothing unless polled"]
pub struct Items<T> {
    client: Client,
    items: VecDeque<T>,
    next: Next<T>,
    /// Hashes of the cursors so far, to detect a cursor that is returned twice.
    seen: BTreeSet<u64>,
    hasher: RandomState,
    limits: ListLimits,
    /// Totals of the pages so far.
    items_seen: usize,
    bytes_seen: usize,
    skip_cache: bool,
    /// What is attached to the call of each page.
    extensions: CallExtensions,
}

enum Next<T> {
    /// Fetch the page at this cursor.
    Page(Option<String>),
    /// A page is being fetched.
    Fetching(BoxFuture<Result<Page<T>, Error>>),
    /// There are no more pages.
    End,
}

/// A page.
struct Page<T> {
    items: Vec<T>,
    /// The cursor of the next page.
    next: Option<String>,
    /// The size of the page as JSON.
    bytes: usize,
}

/// An item of a list: a tool, prompt, resource, resource template or task. This trait is sealed.
pub trait ListItem: Sized + Send + Unpin + private::Page + 'static {}

mod private {
    use super::{Call, Client, DeserializeOwned};

    /// How a page is fetched.
    #[expect(unnameable_types, reason = "it is sealed")]
    pub trait Page: Sized {
        type Result: DeserializeOwned + Send + 'static;

        fn fetch(client: &Client, cursor: Option<String>) -> Call<Self::Result>;
        fn split(result: Self::Result) -> (Vec<Self>, Option<String>);
    }
}

macro_rules! listed {
    ($($item:ty, $result:ty, $fetch:ident, $items:ident;)*) => {
        $(
            impl private::Page for $item {
                type Result = $result;

                fn fetch(client: &Client, cursor: Option<String>) -> Call<$result> {
                    client.$fetch(cursor)
                }

                fn split(result: $result) -> (Vec<Self>, Option<String>) {
                    (result.$items, result.next_cursor)
                }
            }

            impl ListItem for $item {}
        )*
    };
}

listed! {
    Tool, ListToolsResult, list_tools, tools;
    Prompt, ListPromptsResult, list_prompts, prompts;
    Resource, ListResourcesResult, list_resources, resources;
    ResourceTemplate, ListResourceTemplatesResult, list_resource_templates, resource_templates;
}

impl private::Page for TaskReference {
    type Result = ListTasksResult;

    fn fetch(client: &Client, cursor: Option<String>) -> Call<ListTasksResult> {
        client.list_tasks(cursor)
    }

    fn split(result: ListTasksResult) -> (Vec<Self>, Option<String>) {
        (result.tasks.into_iter().map(Self::from).collect(), result.next_cursor)
    }
}

impl ListItem for TaskReference {}

impl<T: ListItem> Items<T> {
    pub(crate) fn new(client: &Client) -> Self {
        Self {
            client: client.clone(),
            items: VecDeque::new(),
            next: Next::Page(None),
            seen: BTreeSet::new(),
            hasher: RandomState::new(),
            limits: client.shared.settings.list_limits,
            items_seen: 0,
            bytes_seen: 0,
            skip_cache: false,
            extensions: CallExtensions::default(),
        }
    }

    /// Attaches a value to the call of each page, as [`Call::extension`](crate::Call::extension) does.
    pub fn extension<V: Any + Send + Sync>(mut self, value: V) -> Self {
        self.extensions.insert(value);
        self
    }

    /// Attaches the values of another call to the call of each page.
    pub(crate) fn extensions(mut self, extensions: CallExtensions) -> Self {
        self.extensions = extensions;
        self
    }

    /// Lowers the maximum number of pages.
    pub(crate) fn max_pages(mut self, max_pages: usize) -> Self {
        self.limits.max_pages = self.limits.max_pages.min(max_pages);
        self
    }

    /// Fetches all pages from the server, even if they are cached.
    pub fn skip_cache(mut self) -> Self {
        self.skip_cache = true;
        self
    }

    /// Fetches the remaining pages, and collects their items.
    ///
    /// # Errors
    ///
    /// Returns an error if a page cannot be fetched, [`Error::EndlessList`] if the server returns a cursor twice, and
    /// [`Error::ListTooLong`] if the list exceeds one of the [limits](crate::ListLimits).
    pub async fn all(mut self) -> Result<Vec<T>, Error> {
        let mut can_start_over = matches!(self.next, Next::Page(None));
        let mut all = Vec::from(std::mem::take(&mut self.items));
        loop {
            let page = match std::mem::replace(&mut self.next, Next::End) {
                Next::Page(cursor) => fetch(&self.client, cursor, self.skip_cache, self.extensions.clone()).await,
                Next::Fetching(page) => page.await,
                Next::End => return Ok(all),
            };
            match page {
                Ok(page) => {
                    let (items, next) = self.admit(page)?;
                    all.extend(items);
                    self.next = next;
                }
                // C-17: the cursor may come from a cached page that is outdated, and is not cached any more.
                Err(Error::Rejected(error))
                    if error.code == ErrorCode::INVALID_PARAMS && can_start_over && !self.seen.is_empty() =>
                {
                    can_start_over = false;
                    all.clear();
                    self.seen.clear();
                    (self.items_seen, self.bytes_seen) = (0, 0);
                    self.next = Next::Page(None);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits for the next item; `None` at the end of the list.
    ///
    /// # Errors
    ///
    /// Returns an error if a page cannot be fetched or exceeds a limit, which ends the list.
    pub async fn next(&mut self) -> Option<Result<T, Error>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Checks a page against the limits of the list; returns its items, and what comes next.
    fn admit(&mut self, page: Page<T>) -> Result<(Vec<T>, Next<T>), Error> {
        let limits = self.limits;
        self.items_seen = self.items_seen.saturating_add(page.items.len());
        self.bytes_seen = self.bytes_seen.saturating_add(page.bytes);
        if self.items_seen > limits.max_items {
            return Err(ListLimitExceeded::Items(limits.max_items).into());
        }
        if self.bytes_seen > limits.max_bytes {
            return Err(ListLimitExceeded::Bytes(limits.max_bytes).into());
        }
        let Some(cursor) = page.next else { return Ok((page.items, Next::End)) };
        // Every page but the first has a cursor.
        if self.seen.len() + 1 >= limits.max_pages {
            return Err(ListLimitExceeded::Pages(limits.max_pages).into());
        }
        // The key of the hasher is secret, so a server cannot construct collisions.
        if !self.seen.insert(self.hasher.hash_one(&cursor)) {
            return Err(Error::EndlessList);
        }
        Ok((page.items, Next::Page(Some(cursor))))
    }
}

async fn fetch<T: ListItem>(
    client: &Client,
    cursor: Option<String>,
    skip_cache: bool,
    extensions: CallExtensions,
) -> Result<Page<T>, Error> {
    let call = T::fetch(client, cursor).extensions(extensions);
    let (result, bytes) = if skip_cache { call.skip_cache() } else { call }.with_size().await?;
    let (items, next) = T::split(result);
    Ok(Page { items, next, bytes })
}

impl<T: ListItem> Stream for Items<T> {
    type Item = Result<T, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(item) = self.items.pop_front() {
                return Poll::Ready(Some(Ok(item)));
            }
            match &mut self.next {
                Next::End => return Poll::Ready(None),
                Next::Page(cursor) => {
                    let cursor = cursor.take();
                    let (client, skip_cache, extensions) =
                        (self.client.clone(), self.skip_cache, self.extensions.clone());
                    let page = async move { fetch(&client, cursor, skip_cache, extensions).await };
                    self.next = Next::Fetching(Box::pin(page));
                }
                Next::Fetching(page) => match page.as_mut().poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(fetched) => match fetched.and_then(|page| self.admit(page)) {
                        Ok((items, next)) => {
                            self.items = items.into();
                            self.next = next;
                        }
                        Err(error) => {
                            self.next = Next::End;
                            return Poll::Ready(Some(Err(error)));
                        }
                    },
                },
            }
        }
    }
}

impl<T> std::fmt::Debug for Items<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Items").field("items", &self.items.len()).finish_non_exhaustive()
    }
}
