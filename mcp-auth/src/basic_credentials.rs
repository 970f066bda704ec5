//! How a client sends its secret in the `Authorization` header.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use url::form_urlencoded::byte_serialize;

use crate::Secret;

/// Returns the credentials for `client_secret_basic`: both parts are encoded like parameters of a form first (RFC 6749, section
/// 2.3.1).
pub(crate) fn basic_credentials(client_id: &str, client_secret: &Secret) -> Secret {
    let (client_id, client_secret) = (encode(client_id), encode(client_secret.expose()));
    let pair = Secret::new([client_id.expose(), ":", client_secret.expose()].concat());
    Secret::new(BASE64_STANDARD.encode(pair.expose()))
}

fn encode(text: &str) -> Secret {
    // With room for everything, so that no parts of it stay behind in memory.
    let mut encoded = String::with_capacity(3 * text.len());
    // A blank can be `+` or `%20` in a form. Servers that only decode percent signs understand the latter, too.
    byte_serialize(text.as_bytes()).for_each(|part| encoded.push_str(if part == "+" { "%20" } else { part }));
    Secret::new(encoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parts_are_encoded_as_in_a_form() {
        let credentials = basic_credentials("a client:1", &Secret::new("p+ss w\u{f6}rd%"));
        let decoded = BASE64_STANDARD.decode(credentials.expose()).unwrap();
        assert_eq!(String::from_utf8(decoded).unwrap(), "a%20client%3A1:p%2Bss%20w%C3%B6rd%25");
    }
}
