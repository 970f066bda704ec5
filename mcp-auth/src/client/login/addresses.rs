//! Which addresses a login may use.

use super::super::{LoginConfig, LoginError};
use crate::address::{Address, UnsafeAddress, shown};

/// Checks an address that a peer named.
pub(super) fn check(config: &LoginConfig, what: &'static str, url: &str) -> Result<Address, LoginError> {
    let refuse = |reason| LoginError::UnsafeAddress { what, url: shown(url), reason };
    // Users are shown addresses: other characters could control their terminal, or look like those of another address.
    if !url.is_ascii() {
        return Err(refuse(UnsafeAddress::NotUrl));
    }
    let address = Address::parse(url).map_err(refuse)?;
    if address.is_private() && !config.private_addresses {
        return Err(refuse(UnsafeAddress::Private));
    }
    Ok(address)
}

/// Checks an issuer that a peer named.
pub(super) fn check_issuer(config: &LoginConfig, issuer: &str) -> Result<Address, LoginError> {
    let what = "issuer";
    let address = check(config, what, issuer)?;
    if address.url().query().is_some() {
        return Err(LoginError::UnsafeAddress { what, url: shown(issuer), reason: UnsafeAddress::Query });
    }
    Ok(address)
}
