//! Lists that come in pages.

mod limits;

use std::collections::{BTreeSet, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;
use mcp_types::{
    ErrorCode, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, Prompt, Resource,
    ResourceTemplate, Tool,
};
use serde::de::DeserializeOwned;

use crate::call::Call;
use crate::client::Client;
use crate::error::Error;
use crate::request_handlers::BoxFuture;

pub use self::limits::{ListLimit, ListLimits};

/// All items of a list, one after the other: a stream that fetches a page when it is needed.
///
/// [`all`](Self::all) collects them. Either way the list as a whole keeps the limits of
/// [`ClientBuilder::list_limits`](crate::ClientBuilder::list_limits).
#[must_use = "a list is fetched when it is looked at"]
pub struct Pages<T> {
    client: Client,
    items: VecDeque<T>,
    next: Next<T>,
    /// Hashes of the cursors so far: a server that gives one twice would go round in circles.
    seen: BTreeSet<u64>,
    hasher: RandomState,
    limits: ListLimits,
    /// What all pages so far had.
    items_seen: usize,
    bytes_seen: usize,
    is_fresh: bool,
}

enum Next<T> {
    /// The page that begins here.
    Page(Option<String>),
    /// The page that is on its way.
    Coming(BoxFuture<Result<Page<T>, Error>>),
    /// There is none.
    End,
}

/// One page.
struct Page<T> {
    items: Vec<T>,
    /// Where the next one begins.
    next: Option<String>,
    /// Its size as JSON.
    bytes: usize,
}

/// What lists are made of.
pub trait Listed: Sized + Send + Unpin + private::Page + 'static {}

mod private {
    use super::{Call, Client, DeserializeOwned};

    /// How one page is fetched.
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

            impl Listed for $item {}
        )*
    };
}

listed! {
    Tool, ListToolsResult, list_tools, tools;
    Prompt, ListPromptsResult, list_prompts, prompts;
    Resource, ListResourcesResult, list_resources, resources;
    ResourceTemplate, ListResourceTemplatesResult, list_resource_templates, resource_templates;
}

impl<T: Listed> Pages<T> {
    pub(crate) fn new(client: &Client) -> Self {
        Self {
            client: client.clone(),
            items: VecDeque::new(),
            next: Next::Page(None),
            seen: BTreeSet::new(),
            hasher: RandomState::new(),
            limits: client.shared.settings.lists,
            items_seen: 0,
            bytes_seen: 0,
            is_fresh: false,
        }
    }

    /// Fetches no more pages than this.
    pub(crate) fn at_most(mut self, pages: usize) -> Self {
        self.limits.pages = self.limits.pages.min(pages);
        self
    }

    /// Asks the server even for pages that it allowed to be used again.
    pub fn fresh(mut self) -> Self {
        self.is_fresh = true;
        self
    }

    /// Fetches all pages, or those that are left if some items were taken already.
    ///
    /// # Errors
    ///
    /// Returns an error if one of them cannot be fetched, [`Error::EndlessList`] if the list leads back to itself, and
    /// [`Error::ListTooLong`] if it exceeds one of the [limits](crate::ListLimits).
    pub async fn all(mut self) -> Result<Vec<T>, Error> {
        let mut can_begin_anew = matches!(self.next, Next::Page(None));
        let mut all = Vec::from(std::mem::take(&mut self.items));
        loop {
            let page = match std::mem::replace(&mut self.next, Next::End) {
                Next::Page(cursor) => fetch(&self.client, cursor, self.is_fresh).await,
                Next::Coming(page) => page.await,
                Next::End => return Ok(all),
            };
            match page {
                Ok(page) => {
                    let (items, next) = self.admit(page)?;
                    all.extend(items);
                    self.next = next;
                }
                // C-17: a page that was kept may have led to one that is not there any more; it is forgotten by now.
                Err(Error::Rejected(error))
                    if error.code == ErrorCode::INVALID_PARAMS && can_begin_anew && !self.seen.is_empty() =>
                {
                    can_begin_anew = false;
                    all.clear();
                    self.seen.clear();
                    (self.items_seen, self.bytes_seen) = (0, 0);
                    self.next = Next::Page(None);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes a page if the list is within its limits; returns its items, and how the list goes on.
    fn admit(&mut self, page: Page<T>) -> Result<(Vec<T>, Next<T>), Error> {
        let limits = self.limits;
        self.items_seen = self.items_seen.saturating_add(page.items.len());
        self.bytes_seen = self.bytes_seen.saturating_add(page.bytes);
        if self.items_seen > limits.items {
            return Err(ListLimit::Items(limits.items).into());
        }
        if self.bytes_seen > limits.bytes {
            return Err(ListLimit::Bytes(limits.bytes).into());
        }
        let Some(cursor) = page.next else { return Ok((page.items, Next::End)) };
        // Every page but the first had a cursor.
        if self.seen.len() + 1 >= limits.pages {
            return Err(ListLimit::Pages(limits.pages).into());
        }
        // The hasher has a secret key, so no server finds two cursors with the same hash.
        if !self.seen.insert(self.hasher.hash_one(&cursor)) {
            return Err(Error::EndlessList);
        }
        Ok((page.items, Next::Page(Some(cursor))))
    }
}

async fn fetch<T: Listed>(client: &Client, cursor: Option<String>, is_fresh: bool) -> Result<Page<T>, Error> {
    let call = T::fetch(client, cursor);
    let (result, bytes) = if is_fresh { call.fresh() } else { call }.measured().await?;
    let (items, next) = T::split(result);
    Ok(Page { items, next, bytes })
}

impl<T: Listed> Stream for Pages<T> {
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
                    let (client, is_fresh) = (self.client.clone(), self.is_fresh);
                    self.next = Next::Coming(Box::pin(async move { fetch(&client, cursor, is_fresh).await }));
                }
                Next::Coming(page) => match page.as_mut().poll(cx) {
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

impl<T> std::fmt::Debug for Pages<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pages").field("items", &self.items.len()).finish_non_exhaustive()
    }
}
