//! Lists that come in pages.

use std::collections::{BTreeSet, VecDeque};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;
use mcp_types::{
    ErrorCode, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, Prompt, Resource,
    ResourceTemplate, Tool,
};
use serde::de::DeserializeOwned;

use crate::answers::BoxFuture;
use crate::call::Call;
use crate::client::Client;
use crate::error::Error;

/// How many pages a list may have.
const MOST_PAGES: usize = 10_000;

/// All items of a list, one after the other: a stream that fetches a page when it is needed.
///
/// [`all`](Self::all) collects them.
#[must_use = "a list is fetched when it is looked at"]
pub struct Pages<T> {
    client: Client,
    items: VecDeque<T>,
    next: Next<T>,
    /// The cursors so far: a server that gives one twice would go round in circles.
    seen: BTreeSet<String>,
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

/// The items of a page, and where the next one begins.
type Page<T> = (Vec<T>, Option<String>);

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
            is_fresh: false,
        }
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
    /// If one of them cannot be fetched, or the list does not end.
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
                Ok((items, next)) => {
                    all.extend(items);
                    self.next = self.after(next)?;
                }
                // C-17: a page that was kept may have led to one that is not there any more; it is forgotten by now.
                Err(Error::Rejected(error))
                    if error.code == ErrorCode::INVALID_PARAMS && can_begin_anew && !self.seen.is_empty() =>
                {
                    can_begin_anew = false;
                    all.clear();
                    self.seen.clear();
                    self.next = Next::Page(None);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn after(&mut self, cursor: Option<String>) -> Result<Next<T>, Error> {
        let Some(cursor) = cursor else { return Ok(Next::End) };
        if self.seen.len() >= MOST_PAGES {
            return Err(Error::EndlessList("there are too many pages"));
        }
        if !self.seen.insert(cursor.clone()) {
            return Err(Error::EndlessList("a page leads back to itself"));
        }
        Ok(Next::Page(Some(cursor)))
    }
}

async fn fetch<T: Listed>(client: &Client, cursor: Option<String>, is_fresh: bool) -> Result<Page<T>, Error> {
    let call = T::fetch(client, cursor);
    let result = if is_fresh { call.fresh() } else { call }.await?;
    Ok(T::split(result))
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
                    Poll::Ready(fetched) => {
                        let next = fetched.and_then(|(items, cursor)| {
                            self.items = items.into();
                            self.after(cursor)
                        });
                        match next {
                            Ok(next) => self.next = next,
                            Err(error) => {
                                self.next = Next::End;
                                return Poll::Ready(Some(Err(error)));
                            }
                        }
                    }
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
