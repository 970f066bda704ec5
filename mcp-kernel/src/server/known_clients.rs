//! The clients of recent requests.

use std::sync::{Arc, Mutex, TryLockError};

use mcp_types::{ClientCapabilities, Implementation};
use serde_json::value::RawValue;

use super::client::Client;

/// The clients of recent requests, by the text in which they declare themselves.
///
/// A modern client declares its capabilities and its name with each request, usually as the same JSON text. The decoded result
/// is kept, as decoding costs far more than comparing the text. It depends on nothing but the text, so requests do not influence
/// each other.
#[derive(Default)]
pub(super) struct KnownClients {
    places: [Mutex<Option<KnownClient>>; PLACES],
}

struct KnownClient {
    capabilities: Box<str>,
    info: Option<Box<str>>,
    client: Arc<Client>,
}

/// How many clients are kept at most.
const PLACES: usize = 8;

/// The maximum length of a text that is kept.
const MAX_BYTES: usize = 2048;

impl KnownClients {
    /// Decodes the capabilities and the name of a client.
    pub(super) fn decode(
        &self,
        capabilities: &RawValue,
        info: Option<&RawValue>,
    ) -> Result<Arc<Client>, serde_json::Error> {
        let (capabilities, info) = (capabilities.get(), info.map(RawValue::get));
        let length = capabilities.len() + info.map_or(0, str::len);
        let place = self.places.get(length % PLACES).filter(|_| length <= MAX_BYTES);
        let mut known = place.and_then(|place| match place.try_lock() {
            Ok(known) => Some(known),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            // Decoding takes less time than waiting may.
            Err(TryLockError::WouldBlock) => None,
        });
        if let Some(Some(known)) = known.as_deref()
            && *known.capabilities == *capabilities
            && known.info.as_deref() == info
        {
            return Ok(Arc::clone(&known.client));
        }
        let client = Arc::new(Client {
            capabilities: serde_json::from_str::<ClientCapabilities>(capabilities)?,
            info: info.map(serde_json::from_str::<Implementation>).transpose()?,
        });
        if let Some(known) = known.as_deref_mut() {
            let (capabilities, info) = (capabilities.into(), info.map(Into::into));
            *known = Some(KnownClient { capabilities, info, client: Arc::clone(&client) });
        }
        Ok(client)
    }
}

/// Does not show clients: they are no part of the configuration.
impl std::fmt::Debug for KnownClients {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KnownClients").finish_non_exhaustive()
    }
}

/// A copy of a configuration has met no clients.
impl Clone for KnownClients {
    fn clone(&self) -> Self {
        Self::default()
    }
}

#[cfg(test)]
mod tests {
    use mcp_types::ClientCapability;

    use super::*;

    fn raw(text: &str) -> &RawValue {
        serde_json::from_str(text).unwrap()
    }

    /// What is kept is used for the same text only, also where two texts share a place.
    #[test]
    fn clients_are_known_by_their_whole_text() {
        let known = KnownClients::default();
        let (sampling, roots) = (raw(r#"{"sampling":{}}"#), raw(r#"{"roots":{}    }"#));
        assert_eq!(sampling.get().len(), roots.get().len() - 1);
        let (ann, bob) = (raw(r#"{"name":"ann","version":"1"}"#), raw(r#"{"name":"bob","version":"1"}"#));
        for _ in 0..2 {
            for (capabilities, info) in [(sampling, ann), (sampling, bob), (roots, ann), (roots, bob)] {
                let client = known.decode(capabilities, Some(info)).unwrap();
                let supports = |capability: ClientCapability| capability.is_declared(&client.capabilities);
                assert_eq!(supports(ClientCapability::Sampling), capabilities.get() == sampling.get());
                assert!(info.get().contains(&client.info.as_ref().unwrap().name));
            }
            assert!(known.decode(sampling, None).unwrap().info.is_none());
        }
        let first = known.decode(sampling, Some(ann)).unwrap();
        assert!(Arc::ptr_eq(&first, &known.decode(sampling, Some(ann)).unwrap()));
    }

    /// What is invalid is an error each time, and a long text is not kept.
    #[test]
    fn the_rest_is_not_kept() {
        let known = KnownClients::default();
        for _ in 0..2 {
            assert!(known.decode(raw("7"), None).is_err());
            assert!(known.decode(raw("{}"), Some(raw("[]"))).is_err());
        }
        let long = format!(r#"{{"experimental":{{"{}":{{}}}}}}"#, "a".repeat(MAX_BYTES));
        let first = known.decode(raw(&long), None).unwrap();
        assert!(!Arc::ptr_eq(&first, &known.decode(raw(&long), None).unwrap()));
    }
}
