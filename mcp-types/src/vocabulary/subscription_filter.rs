//! Resources in the filter of a subscription.

use crate::SubscriptionFilter;

impl SubscriptionFilter {
    /// Adds a resource, or all resources below it, to `resource_subscriptions`.
    ///
    /// ```
    /// use mcp_types::SubscriptionFilter;
    ///
    /// let filter = SubscriptionFilter::default().tools_list_changed(true).resource("notes://1");
    /// assert_eq!(filter.resource_subscriptions, Some(vec!["notes://1".to_owned()]));
    /// ```
    #[must_use]
    pub fn resource(self, uri: impl Into<String>) -> Self {
        self.resources([uri])
    }

    /// Adds several resources, as [`resource`](Self::resource) does.
    #[must_use]
    pub fn resources(mut self, uris: impl IntoIterator<Item: Into<String>>) -> Self {
        self.resource_subscriptions.get_or_insert_default().extend(uris.into_iter().map(Into::into));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_added() {
        let filter = SubscriptionFilter::default().resource("a:1").resources(["a:2", "a:3"]).resource("a:4".to_owned());
        assert_eq!(filter.resource_subscriptions.unwrap(), ["a:1", "a:2", "a:3", "a:4"]);
    }
}
