//! The credentials of a request.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};

use super::dpop::DPOP;

/// The token of a request, which was taken out of its headers.
pub(crate) struct Credentials {
    value: HeaderValue,
    /// Where the token starts.
    start: usize,
    pub(crate) scheme: Scheme,
    /// The proof that was sent with the token.
    pub(crate) proof: Option<HeaderValue>,
}

/// How a token is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scheme {
    #[default]
    Bearer,
    /// With a proof.
    Dpop,
}

/// Why a request has no token that could be verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoCredentials {
    /// There is none, or only one of another scheme.
    Missing,
    /// What there is cannot be read, for this reason.
    Malformed(&'static str),
}

impl Credentials {
    /// Takes the credentials out of the headers, so that the service behind gets none: tokens are for this server only.
    pub(crate) fn take(headers: &mut HeaderMap) -> Result<Self, NoCredentials> {
        let value = take_single(headers, AUTHORIZATION)
            .map_err(|()| NoCredentials::Malformed("several `Authorization` headers"))?
            .ok_or(NoCredentials::Missing)?;
        let bytes = value.as_bytes();
        let (scheme, start) = match bytes.strip_prefix(b"Bearer ") {
            // What nearly all clients send.
            Some([first, ..]) if *first != b' ' => (Scheme::Bearer, b"Bearer ".len()),
            _ => split(bytes)?,
        };
        let proof = match scheme {
            Scheme::Bearer => None,
            Scheme::Dpop => {
                take_single(headers, DPOP).map_err(|()| NoCredentials::Malformed("several `DPoP` headers"))?
            }
        };
        Ok(Self { value, start, scheme, proof })
    }

    /// Returns the token as it was sent, unchecked.
    pub(crate) fn token(&self) -> &[u8] {
        &self.value.as_bytes()[self.start..]
    }

    /// Returns the token, if it has the characters that one can have (RFC 6750, section 2.1).
    pub(crate) fn well_formed_token(&self) -> Option<&str> {
        let token = std::str::from_utf8(self.token()).ok()?;
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
        let text = token.trim_end_matches('=');
        (!text.is_empty() && text.bytes().all(is_allowed)).then_some(token)
    }
}

/// Returns the scheme of credentials, and where their token starts.
fn split(credentials: &[u8]) -> Result<(Scheme, usize), NoCredentials> {
    let scheme_end = credentials.iter().position(|byte| *byte == b' ').unwrap_or(credentials.len());
    let (scheme, rest) = credentials.split_at(scheme_end);
    let scheme = match scheme {
        scheme if scheme.eq_ignore_ascii_case(b"Bearer") => Scheme::Bearer,
        scheme if scheme.eq_ignore_ascii_case(b"DPoP") => Scheme::Dpop,
        _ => return Err(NoCredentials::Missing),
    };
    let blanks = rest.iter().take_while(|byte| **byte == b' ').count();
    if blanks == rest.len() {
        return Err(NoCredentials::Malformed("no token in the `Authorization` header"));
    }
    Ok((scheme, scheme_end + blanks))
}

/// Takes a header that may be there at most once.
fn take_single(headers: &mut HeaderMap, name: http::HeaderName) -> Result<Option<HeaderValue>, ()> {
    let count = headers.len();
    let value = headers.remove(name);
    // All values of a name are removed together.
    if count - headers.len() > 1 { Err(()) } else { Ok(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(values: &[&'static str]) -> Result<(String, HeaderMap), NoCredentials> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_static(value));
        }
        let credentials = Credentials::take(&mut headers)?;
        Ok((String::from_utf8_lossy(credentials.token()).into_owned(), headers))
    }

    // covers: AU-7, AU-12
    #[test]
    fn one_header_has_one_token_and_is_taken_away() {
        for value in ["Bearer abc", "bearer abc", "BEARER   abc"] {
            let (token, headers) = take(&[value]).unwrap();
            assert_eq!((&*token, headers.len()), ("abc", 0));
        }
        assert_eq!(take(&[]).unwrap_err(), NoCredentials::Missing);
        assert_eq!(take(&["Basic abc"]).unwrap_err(), NoCredentials::Missing);
        for values in [&["Bearer a", "Bearer b"][..], &["Bearer"], &["Bearer "], &["DPoP"], &["Basic a", "Bearer b"]] {
            assert!(matches!(take(values), Err(NoCredentials::Malformed(_))), "{values:?}");
        }
    }

    #[test]
    fn tokens_have_few_characters() {
        let is_well_formed = |value: &'static str| {
            let mut headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(value))]);
            Credentials::take(&mut headers).unwrap().well_formed_token().is_some()
        };
        assert!(is_well_formed("Bearer aZ0-._~+/=="));
        for value in ["Bearer a b", "Bearer a,b", "Bearer =", "Bearer a=b", "Bearer \"a\""] {
            assert!(!is_well_formed(value), "{value}");
        }
    }
}
