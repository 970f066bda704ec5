//! Binds a state to a request.

use mcp_types::jsonrpc::PayloadBuf;
use sha2::{Digest, Sha256};

/// The principal, the server and the request that a state is valid for, or the kind of handle that it is.
#[derive(Clone, Debug)]
pub struct Binding {
    pub(crate) principal: [u8; DIGEST_BYTES],
    pub(crate) audience: [u8; DIGEST_BYTES],
    pub(crate) request: [u8; DIGEST_BYTES],
}

/// The length of a truncated digest in bytes, enough to resist collisions.
pub(crate) const DIGEST_BYTES: usize = 16;

/// The parameters that change from round to round, and are not part of the binding.
const PER_ROUND_PARAMS: [&str; 3] = ["_meta", "inputResponses", "requestState"];

impl Binding {
    /// Creates the binding to a request: its method, and all parameters but `_meta`, `inputResponses` and `requestState`.
    ///
    /// `principal` is the issuer and subject of the authenticated user, if there is one. `audience` names the server, so
    /// that servers that share keys do not accept each other's states.
    #[must_use]
    pub fn new(principal: Option<(Option<&str>, &str)>, audience: &str, method: &str, params: &PayloadBuf) -> Self {
        let mut members: Vec<(&str, &str)> = params
            .members()
            .filter(|(name, _)| !PER_ROUND_PARAMS.contains(name))
            .map(|(name, value)| (name, value.get()))
            .collect();
        members.sort_unstable();
        let mut request = Hasher::default();
        request.part(method.as_bytes());
        for (name, value) in members {
            request.part(name.as_bytes());
            request.part(&without_whitespace(value));
        }
        Self { principal: of_principal(principal), audience: of_audience(audience), request: request.finish() }
    }

    /// Creates the binding of a handle, which is valid in any request that takes a handle of this kind.
    ///
    /// `principal` and `audience` are those of [`new`](Self::new). No binding to a request equals one to a kind of handle.
    #[must_use]
    pub fn handle(principal: Option<(Option<&str>, &str)>, audience: &str, kind: &str) -> Self {
        let mut request = Hasher::default();
        // No method has an empty name.
        for part in ["", "handle", kind] {
            request.part(part.as_bytes());
        }
        Self { principal: of_principal(principal), audience: of_audience(audience), request: request.finish() }
    }

    /// Returns a digest of the binding and an id, as the key under which a store keeps what the id stands for.
    ///
    /// A store with such keys does not know the ids, and an id leads to nothing with another binding.
    #[must_use]
    pub fn store_key(&self, id: &[u8]) -> [u8; 32] {
        let mut key = Hasher::default();
        for part in [self.principal.as_slice(), &self.audience, &self.request, id] {
            key.part(part);
        }
        key.0.finalize().into()
    }
}

fn of_principal(principal: Option<(Option<&str>, &str)>) -> [u8; DIGEST_BYTES] {
    let mut digest = Hasher::default();
    if let Some((issuer, subject)) = principal {
        digest.part(issuer.unwrap_or_default().as_bytes());
        digest.part(subject.as_bytes());
    }
    digest.finish()
}

fn of_audience(audience: &str) -> [u8; DIGEST_BYTES] {
    let mut digest = Hasher::default();
    digest.part(audience.as_bytes());
    digest.finish()
}

/// A digest of several parts, each prefixed by its length.
#[derive(Default)]
pub(crate) struct Hasher(Sha256);

impl Hasher {
    pub(crate) fn part(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> [u8; DIGEST_BYTES] {
        let mut digest = [0; DIGEST_BYTES];
        for (to, from) in digest.iter_mut().zip(self.0.finalize()) {
            *to = from;
        }
        digest
    }
}

/// Removes insignificant whitespace: a client that serializes the JSON again may space it differently.
fn without_whitespace(json: &str) -> Vec<u8> {
    let (mut kept, mut in_string, mut is_escaped) = (Vec::with_capacity(json.len()), false, false);
    for byte in json.bytes() {
        if in_string || !byte.is_ascii_whitespace() {
            kept.push(byte);
        }
        in_string = if in_string { is_escaped || byte != b'"' } else { byte == b'"' };
        is_escaped = in_string && !is_escaped && byte == b'\\';
    }
    kept
}

#[cfg(test)]
mod tests {
    use mcp_types::jsonrpc::Limits;

    use super::*;

    fn request(params: &str) -> [u8; DIGEST_BYTES] {
        let params = PayloadBuf::parse(params, &Limits::default()).unwrap();
        Binding::new(None, "a", "tools/call", &params).request
    }

    /// The retry repeats the request, in its own spacing and order, with what belongs to the round.
    // covers: R-21
    #[test]
    fn a_retry_is_the_same_request() {
        let first = request(r#"{"name":"a","arguments":{"b":"c \" d"}}"#);
        assert_eq!(first, request("{ \"arguments\" : { \"b\" : \"c \\\" d\" },\n \"name\": \"a\" }"));
        let again = r#"{"name":"a","arguments":{"b":"c \" d"},"_meta":{},"inputResponses":{},"requestState":"x"}"#;
        assert_eq!(first, request(again));
        assert_ne!(first, request(r#"{"name":"a","arguments":{"b":"c \"  d"}}"#));
        assert_ne!(first, request(r#"{"name":"b","arguments":{"b":"c \" d"}}"#));
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_ne!(request(r#"{"ab":"c"}"#), request(r#"{"a":"bc"}"#));
        let empty = PayloadBuf::default();
        let one = Binding::new(Some((Some("a"), "bc")), "", "m", &empty);
        let other = Binding::new(Some((Some("ab"), "c")), "", "m", &empty);
        assert_ne!(one.principal, other.principal);
    }

    #[test]
    fn handles_are_bound_to_all_parts() {
        let handle = |principal, audience, kind| Binding::handle(principal, audience, kind).store_key(b"id");
        let ann = Some((Some("https://issuer"), "ann"));
        let one = handle(ann, "shop", "basket");
        assert_eq!(one, handle(ann, "shop", "basket"));
        for other in [
            handle(None, "shop", "basket"),
            handle(Some((None, "ann")), "shop", "basket"),
            handle(Some((Some("https://issuer"), "bob")), "shop", "basket"),
            handle(ann, "bank", "basket"),
            handle(ann, "shop", "order"),
            Binding::handle(ann, "shop", "basket").store_key(b"di"),
            Binding::new(ann, "shop", "handle", &PayloadBuf::default()).store_key(b"id"),
        ] {
            assert_ne!(one, other);
        }
    }
}
