//! The future that opens a subscription.

use std::any::Any;
use std::pin::Pin;

use mcp_types::SubscriptionFilter;

use crate::client::Client;
use crate::context::CallExtensions;
use crate::error::Error;
use crate::listen::Subscription;

/// A subscription to changes, which is opened when it is awaited; created by [`Client::listen`].
#[must_use = "a subscription is opened when it is awaited"]
pub struct Listen {
    client: Client,
    filter: SubscriptionFilter,
    extensions: CallExtensions,
}

impl Listen {
    pub(crate) fn new(client: &Client, filter: SubscriptionFilter) -> Self {
        Self { client: client.clone(), filter, extensions: CallExtensions::default() }
    }

    /// Attaches a value to the subscription, as [`Call::extension`](crate::Call::extension) does to a call: a transport
    /// selects the credentials with it, each time that the subscription is opened.
    ///
    /// When the credentials of the client change, its subscriptions are opened again; one with credentials of its own is not.
    /// Drop it when its user logs out. The session of a legacy server belongs to one user, so a subscription with the
    /// credentials of another fails.
    pub fn extension<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.extensions.insert(value);
        self
    }
}

impl IntoFuture for Listen {
    type Output = Result<Subscription, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<Subscription, Error>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(Subscription::open(self.client, self.filter, self.extensions))
    }
}

impl std::fmt::Debug for Listen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listen").field("filter", &self.filter).finish_non_exhaustive()
    }
}
