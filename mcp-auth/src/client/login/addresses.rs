//! Which addresses a login may use.

use super::super::{LoginConfig, LoginError};
use crate::metadata::{Address, UnsafeAddress};

/// Checks an address that a peer named.
pub(super) fn check(config: &LoginConfig, what: &'static str, url: &str) -> Result<Address, LoginError> {
    let refuse = |reason| LoginError::UnsafeAddress { what, url: shown(url), reason };
    let address = Address::parse(url).map_err(refuse)?;
    if address.is_private() && !config.private_addresses {
        return Err(refuse(UnsafeAddress::Private));
    }
    Ok(address)
}

/// Limits a text that a peer sent to what an error can show. Whatever is before an `@` may be a password.
pub(super) fn shown(url: &str) -> String {
    const MAX_CHARACTERS: usize = 200;
    let url = match url.rsplit_once('@') {
        Some((_, host)) => host,
        None => url,
    };
    url.chars().filter(|character| matches!(character, ' '..='~')).take(MAX_CHARACTERS).collect()
}
