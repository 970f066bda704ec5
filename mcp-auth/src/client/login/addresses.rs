//! Which addresses a login may use.

use super::super::{LoginConfig, LoginError};
use crate::address::{Address, UnsafeAddress, shown};

/// Checks an address that a peer named.
pub(super) fn check(config: &LoginConfig, what: &'static str, url: &str) -> Result<Address, LoginError> {
    let refuse = |reason| LoginError::UnsafeAddress { what, url: shown(url), reason };
    let address = Address::parse(url).map_err(refuse)?;
    if address.is_private() && !config.private_addresses {
        return Err(refuse(UnsafeAddress::Private));
    }
    Ok(address)
}
