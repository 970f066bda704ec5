//! The call that a task runs.

use std::fmt;

use mcp_kernel::server::Principal;
use mcp_types::{ClientCapabilities, Implementation, RawObject, Revision};
use serde::{Deserialize, Serialize};

/// The call that a task runs, with what its handler may ask for: any instance can run it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskCall {
    /// The revision of the request.
    #[serde(with = "revision")]
    pub revision: Revision,
    /// The parameters of the request.
    pub params: RawObject,
    /// The capabilities of the client.
    pub client_capabilities: ClientCapabilities,
    /// The name and version of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_info: Option<Implementation>,
    /// The authenticated user.
    #[serde(default, with = "principal", skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
    /// The credentials of the request, without secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<RawObject>,
    /// The id of the session, if there is one, for notifications.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Whether another process may run the handler again.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub is_restartable: bool,
    /// Whether a client of 2025-11-25 can receive requests while it waits for the result.
    #[serde(default, skip_serializing_if = "is_no")]
    pub has_back_channel: bool,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_yes(value: &bool) -> bool {
    *value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_no(value: &bool) -> bool {
    !*value
}

impl TaskCall {
    /// Creates the call of an anonymous client without capabilities.
    #[must_use]
    pub fn new(revision: Revision, params: RawObject) -> Self {
        Self {
            revision,
            params,
            client_capabilities: ClientCapabilities::default(),
            client_info: None,
            principal: None,
            auth: None,
            session: None,
            is_restartable: true,
            has_back_channel: false,
        }
    }

    /// Drops what only a run needs.
    pub(crate) fn finish(&mut self) {
        self.params = RawObject::empty();
        self.client_capabilities = ClientCapabilities::default();
        self.client_info = None;
        self.auth = None;
    }
}

/// Does not show the parameters and the credentials.
impl fmt::Debug for TaskCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskCall")
            .field("revision", &self.revision)
            .field("principal", &self.principal)
            .finish_non_exhaustive()
    }
}

mod revision {
    use super::{Deserialize, Revision};
    use serde::de::Error as _;
    use serde::{Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(revision: &Revision, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(revision.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Revision, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|_| D::Error::custom("an unknown revision"))
    }
}

mod principal {
    use super::{Deserialize, Principal, Serialize};
    use serde::{Deserializer, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Stored<'a> {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        issuer: Option<std::borrow::Cow<'a, str>>,
        subject: std::borrow::Cow<'a, str>,
    }

    pub(super) fn serialize<S: Serializer>(principal: &Option<Principal>, serializer: S) -> Result<S::Ok, S::Error> {
        let stored = principal.as_ref().map(|principal| Stored {
            issuer: principal.issuer.as_deref().map(Into::into),
            subject: (&*principal.subject).into(),
        });
        stored.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Principal>, D::Error> {
        let stored = Option::<Stored<'_>>::deserialize(deserializer)?;
        Ok(stored.map(|stored| Principal::new(stored.issuer.as_deref(), &stored.subject)))
    }
}
