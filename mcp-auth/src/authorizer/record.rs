//! Logins and registrations as records of a store.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::client::{ClientAuthentication, Grant, Registration, TokenType, Tokens};
use crate::jose::SigningKey;
use crate::store::{StoreError, StoreKey};
use crate::{Scopes, Secret, UnixTime};

/// The latest version of the format.
const VERSION: u64 = 1;
/// How many registrations are kept. The oldest is dropped first.
const MAX_REGISTRATIONS: usize = 100;

/// What is kept of a login.
#[derive(Clone, Debug, Default)]
pub(super) struct SavedLogin {
    /// The tokens. They are absent after they were given up.
    pub(super) grant: Option<SavedGrant>,
    /// The scopes that were requested before, so that the next login requests them, too.
    pub(super) requested_scopes: Scopes,
}

#[derive(Clone, Debug)]
pub(super) struct SavedGrant {
    pub(super) grant: Grant,
    /// When the tokens were issued, which says with their expiry how long they live.
    pub(super) issued_at: UnixTime,
    /// The identity of the login, which stays the same when tokens are refreshed.
    pub(super) id: Arc<str>,
    /// The key that the tokens are bound to.
    pub(super) key: Option<Arc<SigningKey>>,
}

impl SavedLogin {
    pub(super) fn encode(&self) -> Secret {
        encode(&LoginRecord {
            version: VERSION,
            requested_scopes: self.requested_scopes.clone(),
            grant: self.grant.as_ref().map(GrantRecord::new),
        })
    }

    pub(super) fn decode(record: &Secret, key: &StoreKey) -> Result<Self, StoreError> {
        let record: LoginRecord = decode(record, key)?;
        let grant = record.grant.map(|grant| grant.into_grant(key)).transpose()?;
        Ok(Self { grant, requested_scopes: record.requested_scopes })
    }
}

/// What authorization servers know the client by, each with another issuer.
#[derive(Clone, Debug, Default)]
pub(super) struct SavedRegistrations(pub(super) Vec<Registration>);

impl SavedRegistrations {
    pub(super) fn encode(&self) -> Secret {
        let registrations = self.0.iter().map(RegistrationRecord::new).collect();
        encode(&RegistrationsRecord { version: VERSION, registrations })
    }

    pub(super) fn decode(record: &Secret) -> Result<Self, StoreError> {
        let key = StoreKey::registrations();
        let record: RegistrationsRecord = decode(record, &key)?;
        let registrations = record.registrations.into_iter().map(|registration| registration.into_registration(&key));
        registrations.collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn insert(&mut self, registration: Registration) {
        self.0.retain(|known| known.issuer != registration.issuer);
        if self.0.len() >= MAX_REGISTRATIONS {
            self.0.remove(0);
        }
        self.0.push(registration);
    }

    pub(super) fn remove(&mut self, issuer: &str, client_id: &str) {
        self.0.retain(|known| known.issuer != issuer || known.client_id != client_id);
    }
}

fn encode(record: &impl Serialize) -> Secret {
    Secret::new(serde_json::to_string(record).expect("texts and numbers are valid JSON"))
}

fn decode<T: for<'de> Deserialize<'de>>(record: &Secret, key: &StoreKey) -> Result<T, StoreError> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u64,
    }
    // Errors of the parser can have a part of the text.
    let damaged = |_| damaged(key, "it is no valid JSON of this format");
    let Versioned { version } = serde_json::from_str(record.expose()).map_err(damaged)?;
    if version > VERSION {
        return Err(StoreError::Newer { store: shown(key), found: version, supported: VERSION });
    }
    serde_json::from_str(record.expose()).map_err(damaged)
}

fn damaged(key: &StoreKey, reason: &str) -> StoreError {
    StoreError::damaged(shown(key), reason)
}

fn shown(key: &StoreKey) -> String {
    format!("the record {:?}", key.as_str())
}

#[derive(Serialize, Deserialize)]
struct LoginRecord {
    version: u64,
    requested_scopes: Scopes,
    grant: Option<GrantRecord>,
}

#[derive(Serialize, Deserialize)]
struct RegistrationsRecord {
    version: u64,
    registrations: Vec<RegistrationRecord>,
}

#[derive(Serialize, Deserialize)]
struct GrantRecord {
    issuer: String,
    resource: String,
    token_endpoint: String,
    revocation_endpoint: Option<String>,
    registration: RegistrationRecord,
    requested_scopes: Scopes,
    access_token: Exposed,
    token_type: String,
    refresh_token: Option<Exposed>,
    expires_at: Option<UnixTime>,
    scopes: Scopes,
    issued_at: UnixTime,
    id: String,
    key: Option<Exposed>,
}

#[derive(Serialize, Deserialize)]
struct RegistrationRecord {
    issuer: String,
    client_id: String,
    client_secret: Option<Exposed>,
    secret_expires_at: Option<UnixTime>,
    authentication: String,
    is_dynamic: bool,
    redirect_uri: Option<String>,
}

/// A secret that is written to a record: the only place where one is serialized.
#[derive(Deserialize)]
#[serde(transparent)]
struct Exposed(Secret);

impl Serialize for Exposed {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.expose())
    }
}

impl GrantRecord {
    fn new(saved: &SavedGrant) -> Self {
        let SavedGrant { grant, issued_at, id, key } = saved;
        let tokens = &grant.tokens;
        Self {
            issuer: grant.issuer.clone(),
            resource: grant.resource.clone(),
            token_endpoint: grant.token_endpoint.clone(),
            revocation_endpoint: grant.revocation_endpoint.clone(),
            registration: RegistrationRecord::new(&grant.registration),
            requested_scopes: grant.requested_scopes.clone(),
            access_token: Exposed(tokens.access_token.clone()),
            token_type: tokens.token_type.to_string(),
            refresh_token: tokens.refresh_token.clone().map(Exposed),
            expires_at: tokens.expires_at,
            scopes: tokens.scopes.clone(),
            issued_at: *issued_at,
            id: id.as_ref().to_owned(),
            key: key.as_ref().map(|key| Exposed(key.to_pem().clone())),
        }
    }

    fn into_grant(self, key: &StoreKey) -> Result<SavedGrant, StoreError> {
        let mut tokens = Tokens::bearer(self.access_token.0);
        tokens.token_type = [TokenType::Bearer, TokenType::Dpop]
            .into_iter()
            .find(|token_type| token_type.to_string() == self.token_type)
            .ok_or_else(|| damaged(key, "the type of the token is unknown"))?;
        tokens.refresh_token = self.refresh_token.map(|token| token.0);
        tokens.expires_at = self.expires_at;
        tokens.scopes = self.scopes;
        let registration = self.registration.into_registration(key)?;
        let mut grant = Grant::new(self.issuer, self.resource, self.token_endpoint, registration, tokens);
        grant.revocation_endpoint = self.revocation_endpoint;
        grant.requested_scopes = self.requested_scopes;
        let signing_key = self.key.map(|pem| SigningKey::from_pem(pem.0.expose())).transpose();
        let signing_key = signing_key.map_err(|_| damaged(key, "the key of the tokens cannot be read"))?;
        Ok(SavedGrant { grant, issued_at: self.issued_at, id: self.id.into(), key: signing_key.map(Arc::new) })
    }
}

impl RegistrationRecord {
    fn new(registration: &Registration) -> Self {
        Self {
            issuer: registration.issuer.clone(),
            client_id: registration.client_id.clone(),
            client_secret: registration.client_secret.clone().map(Exposed),
            secret_expires_at: registration.secret_expires_at,
            authentication: registration.authentication.as_str().to_owned(),
            is_dynamic: registration.is_dynamic,
            redirect_uri: registration.redirect_uri.clone(),
        }
    }

    fn into_registration(self, key: &StoreKey) -> Result<Registration, StoreError> {
        let mut registration = Registration::new(self.issuer, self.client_id);
        registration.client_secret = self.client_secret.map(|secret| secret.0);
        registration.secret_expires_at = self.secret_expires_at;
        registration.authentication = ClientAuthentication::from_name(&self.authentication)
            .ok_or_else(|| damaged(key, "the way in which the client authenticates is unknown"))?;
        registration.is_dynamic = self.is_dynamic;
        registration.redirect_uri = self.redirect_uri;
        Ok(registration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved() -> SavedLogin {
        let mut registration = Registration::new("https://as", "client");
        registration.client_secret = Some("client-hunter2".into());
        registration.secret_expires_at = Some(UnixTime::from_secs(5));
        registration.authentication = ClientAuthentication::SecretBasic;
        registration.is_dynamic = true;
        registration.redirect_uri = Some("http://127.0.0.1:1/callback".to_owned());
        let mut tokens = Tokens::bearer("access-hunter2");
        tokens.token_type = TokenType::Dpop;
        tokens.refresh_token = Some("refresh-hunter2".into());
        tokens.expires_at = Some(UnixTime::from_secs(100));
        tokens.scopes = Scopes::from_iter(["a"]);
        let mut grant = Grant::new("https://as", "https://server/mcp", "https://as/token", registration, tokens);
        grant.revocation_endpoint = Some("https://as/revoke".to_owned());
        grant.requested_scopes = Scopes::from_iter(["a", "b"]);
        let key = Some(Arc::new(SigningKey::generate().unwrap()));
        let grant = SavedGrant { grant, issued_at: UnixTime::from_secs(90), id: "id".into(), key };
        SavedLogin { grant: Some(grant), requested_scopes: Scopes::from_iter(["c"]) }
    }

    #[test]
    fn everything_about_a_login_survives_the_store() {
        let login = saved();
        let key = StoreKey::login("https://server/mcp", None);
        let decoded = SavedLogin::decode(&login.encode(), &key).unwrap();
        let (before, after) = (login.grant.unwrap(), decoded.grant.unwrap());
        assert_eq!(after.grant, before.grant);
        assert_eq!((after.issued_at, &after.id), (before.issued_at, &before.id));
        assert_eq!(after.key.unwrap().thumbprint(), before.key.unwrap().thumbprint());
        assert_eq!(decoded.requested_scopes, login.requested_scopes);
    }

    #[test]
    fn registrations_survive_the_store_one_for_each_issuer_and_not_too_many() {
        let mut registrations = SavedRegistrations::default();
        for index in 0..MAX_REGISTRATIONS + 5 {
            registrations.insert(Registration::new(format!("https://as-{index}"), "1"));
        }
        registrations.insert(Registration::new("https://as-50", "2"));
        let decoded = SavedRegistrations::decode(&registrations.encode()).unwrap();
        assert_eq!(decoded.0, registrations.0);
        assert_eq!(decoded.0.len(), MAX_REGISTRATIONS);
        assert_eq!(decoded.0.iter().filter(|known| known.issuer == "https://as-50").count(), 1);
        assert!(decoded.0.iter().all(|known| known.issuer != "https://as-0"), "the oldest is dropped");
    }

    // covers: AU-14
    #[test]
    fn damaged_records_are_errors_without_their_content() {
        let key = StoreKey::login("https://server/mcp", None);
        let record = saved().encode();
        let damaged = [
            Secret::new(""),
            Secret::new("hunter2"),
            Secret::new(&record.expose()[..record.expose().len() / 2]),
            Secret::new(record.expose().replace("DPoP", "hunter2")),
            Secret::new(record.expose().replace("client_secret_basic", "hunter2")),
            Secret::new(record.expose().replace("BEGIN PRIVATE KEY", "hunter2")),
            Secret::new(record.expose().replace("\"version\":1", "\"version\":2")),
        ];
        for record in damaged {
            let error = SavedLogin::decode(&record, &key).unwrap_err();
            let shown = format!("{error} {error:?}");
            assert!(shown.contains("https://server/mcp"), "{shown}");
            assert!(!shown.contains("hunter2"), "{shown}");
        }
    }

    // covers: AU-14
    #[test]
    fn debug_output_of_a_login_has_no_secret() {
        let shown = format!("{:?}", saved());
        assert!(!shown.contains("hunter2") && !shown.contains("PRIVATE KEY"), "{shown}");
    }
}
