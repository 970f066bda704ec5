//! Names that are resolved and checked.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::policy::AddressPolicy;
use crate::address::{UnsafeAddress, is_loopback_ip, is_loopback_name};

/// Resolves names, and returns only addresses that may be requested.
///
/// The connection is made to the addresses that are returned here, so a name cannot resolve to something else after the check.
pub(super) struct CheckedResolver {
    pub(super) policy: AddressPolicy,
    pub(super) lookup: Lookup,
}

pub(super) type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, std::io::Result<Vec<SocketAddr>>> + Send + Sync>;

/// Returns the lookup of the operating system.
pub(super) fn system_lookup() -> Lookup {
    Arc::new(|name| Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.collect()) }))
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let name = name.as_str().to_owned();
        let (policy, lookup) = (self.policy, Arc::clone(&self.lookup));
        Box::pin(async move {
            let is_local = is_loopback_name(&name);
            let found = lookup(name).await?;
            // Plain HTTP is allowed to names of this machine, so these must not lead elsewhere.
            let may_request = |address: &SocketAddr| {
                policy.check_ip(address.ip()).is_ok() && (!is_local || is_loopback_ip(address.ip()))
            };
            let allowed: Vec<_> = found.iter().copied().filter(may_request).collect();
            if allowed.is_empty() && !found.is_empty() {
                return Err(Box::new(UnsafeAddress::Private) as Box<dyn Error + Send + Sync>);
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}
