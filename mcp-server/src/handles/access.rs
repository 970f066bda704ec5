//! Access to the handles of one kind for one caller: bytes in, bytes out.

use std::sync::OnceLock;

use mcp_mrtr::{Binding, InvalidState, NONCE_BYTES, OpenedState, ReplayGuard, Sealer};
use mcp_types::base64::url_safe;

use crate::asking::rounds::StateSealing;
use crate::handles::error::{HandleError, HandleMisuse, HandleTooLarge};
use crate::handles::kind::{Backing, Vault};
use crate::handles::store::{HandleKey, HandleOwner, HandleRecord, HandleStoreError, ReplaceOutcome, VersionedHandle};

/// The length of the id of a stored handle: 256 bits, as nothing else may protect those of anonymous callers.
const ID_BYTES: usize = 32;

/// The handles of one kind as one caller may use them.
pub(crate) struct Access<'a> {
    pub(crate) vault: &'a Vault,
    /// The keys, the clock and the random source of the server.
    pub(crate) sealing: &'a StateSealing,
    pub(crate) binding: &'a Binding,
    pub(crate) is_anonymous: bool,
    pub(crate) name: &'static str,
    pub(crate) hint: &'static str,
}

/// A value as JSON.
pub(crate) struct Opened {
    pub(crate) json: Vec<u8>,
    /// The version of a stored value; 0 for sealed ones.
    pub(crate) version: u64,
}

/// The outcome of replacing a value.
pub(crate) enum Replaced {
    /// It was replaced. A sealed handle has another text now.
    Done { text: Option<String>, version: u64 },
    /// Another call was faster.
    Changed(Opened),
}

impl Access<'_> {
    /// Mints a handle and returns its text and version.
    pub(crate) async fn mint(&self, json: &[u8]) -> Result<(String, u64), HandleError> {
        let store = match &self.vault.backing {
            Backing::Sealed { sealer, .. } => return Ok((self.seal(sealer, json)?, 0)),
            Backing::Stored(store) => store,
        };
        self.check_size(json)?;
        let id = self.random::<ID_BYTES>()?;
        let now = self.now()?;
        let record = self.record(now, id, json);
        store.insert(now, self.key(id), record).await.map_err(|cause| self.store_error(cause))?;
        Ok((self.text_of(id), 1))
    }

    pub(crate) async fn open(&self, text: &str) -> Result<Opened, HandleError> {
        match &self.vault.backing {
            Backing::Sealed { guard, sealer } => {
                let opened = self.unseal(sealer, guard.as_deref(), text).await?;
                Ok(Opened { json: opened.content, version: 0 })
            }
            Backing::Stored(store) => {
                let id = self.parse(text)?;
                let found = store.load(self.now()?, self.key(id)).await;
                self.opened(found.map_err(|cause| self.store_error(cause))?)
            }
        }
    }

    /// Replaces the value of a handle that was read as `version`.
    pub(crate) async fn replace(&self, text: &str, json: &[u8], version: u64) -> Result<Replaced, HandleError> {
        let store = match &self.vault.backing {
            Backing::Sealed { guard, sealer } => {
                // Sealed before the previous handle is used up, as this may fail.
                let sealed = self.seal(sealer, json)?;
                if let Some(guard) = guard {
                    let previous = self.unseal(sealer, Some(&**guard), text).await?;
                    if !self.claim(&**guard, &previous).await? {
                        return Err(HandleError::Conflict { kind: self.name });
                    }
                }
                return Ok(Replaced::Done { text: Some(sealed), version: 0 });
            }
            Backing::Stored(store) => store,
        };
        self.check_size(json)?;
        let id = self.parse(text)?;
        let now = self.now()?;
        let replaced = store.replace(now, self.key(id), self.record(now, id, json), version).await;
        match replaced.map_err(|cause| self.store_error(cause))? {
            ReplaceOutcome::Replaced(version) => Ok(Replaced::Done { text: None, version }),
            ReplaceOutcome::Conflict(there) => self.opened(there).map(Replaced::Changed),
        }
    }

    /// Uses a handle up, and returns its value. Of concurrent calls, one succeeds.
    pub(crate) async fn take(&self, text: &str) -> Result<Vec<u8>, HandleError> {
        match &self.vault.backing {
            Backing::Sealed { guard, sealer } => {
                let guard = guard.as_deref().ok_or_else(|| self.not_supported(HandleMisuse::NoReplayGuard))?;
                let opened = self.unseal(sealer, Some(guard), text).await?;
                if self.claim(guard, &opened).await? { Ok(opened.content) } else { Err(self.rejected("used before")) }
            }
            Backing::Stored(store) => {
                let id = self.parse(text)?;
                let taken = store.take(self.now()?, self.key(id)).await.map_err(|cause| self.store_error(cause))?;
                let version = 0;
                self.opened(taken.map(|record| VersionedHandle { record, version })).map(|opened| opened.json)
            }
        }
    }

    /// Returns the texts and values of the stored handles of the principal.
    pub(crate) async fn list(&self) -> Result<Vec<(String, Opened)>, HandleError> {
        let Backing::Stored(store) = &self.vault.backing else {
            return Err(self.not_supported(HandleMisuse::NotStored));
        };
        let owner = self.owner().ok_or_else(|| self.not_supported(HandleMisuse::Anonymous))?;
        let found = store.list(self.now()?, owner).await.map_err(|cause| self.store_error(cause))?;
        // The store of a server is trusted to keep records, not to have only valid ones.
        let handles = found.into_iter().filter_map(|(_, handle)| {
            let id = *handle.record.content.first_chunk::<ID_BYTES>()?;
            Some((self.text_of(id), self.opened(Some(handle)).ok()?))
        });
        Ok(handles.collect())
    }

    pub(crate) fn invalid(&self) -> HandleError {
        HandleError::Invalid { kind: self.name, hint: self.hint }
    }

    pub(crate) fn not_supported(&self, cause: HandleMisuse) -> HandleError {
        HandleError::NotSupported { kind: self.name, cause }
    }

    /// Logs why a handle is not valid, which the caller does not learn, and never the handle itself.
    fn rejected(&self, reason: impl std::fmt::Display) -> HandleError {
        tracing::warn!(target: "mcp", kind = self.name, %reason, "a handle was rejected");
        self.invalid()
    }

    fn store_error(&self, cause: HandleStoreError) -> HandleError {
        match cause {
            HandleStoreError::Full(_) => HandleError::Full { kind: self.name, cause },
            HandleStoreError::Failed(_) => HandleError::Unavailable { kind: self.name, cause },
        }
    }

    fn now(&self) -> Result<u64, HandleError> {
        self.sealing.seconds().ok_or_else(|| self.not_supported(HandleMisuse::NoClock))
    }

    fn random<const N: usize>(&self) -> Result<[u8; N], HandleError> {
        self.sealing.random().ok_or_else(|| self.not_supported(HandleMisuse::NoRandomness))
    }
}

/// Sealed handles.
impl Access<'_> {
    fn sealer<'s>(&self, sealer: &'s OnceLock<Sealer>) -> Result<&'s Sealer, HandleError> {
        if let Some(sealer) = sealer.get() {
            return Ok(sealer);
        }
        let of_server = self.sealing.sealer().ok_or_else(|| self.not_supported(HandleMisuse::NoRandomness))?;
        // The name and the separator are part of the text.
        let max_bytes = self.vault.max_bytes.saturating_sub(self.name.len() + 1);
        let made = of_server.clone().lifetime(self.vault.lifetime).max_bytes(max_bytes);
        Ok(sealer.get_or_init(|| made))
    }

    fn seal(&self, sealer: &OnceLock<Sealer>, json: &[u8]) -> Result<String, HandleError> {
        let sealed = self.sealer(sealer)?.seal(self.now()?, self.random::<NONCE_BYTES>()?, self.binding, json);
        let sealed = sealed.map_err(|fault| self.too_large(fault.found))?;
        Ok(format!("{}{SEPARATOR}{sealed}", self.name))
    }

    /// Opens a sealed handle, unless it was used up.
    async fn unseal(
        &self,
        sealer: &OnceLock<Sealer>,
        guard: Option<&dyn ReplayGuard>,
        text: &str,
    ) -> Result<OpenedState, HandleError> {
        let now = self.now()?;
        let opened = self.sealer(sealer)?.open(now, self.binding, self.payload(text)?);
        let opened = opened.map_err(|reason| self.rejected(reason))?;
        if let Some(guard) = guard
            && guard.is_claimed(now, opened.nonce).await
        {
            return Err(self.rejected(InvalidState::Replayed));
        }
        Ok(opened)
    }

    /// Uses a sealed handle up; returns whether no other call was faster.
    async fn claim(&self, guard: &dyn ReplayGuard, opened: &OpenedState) -> Result<bool, HandleError> {
        let now = self.now()?;
        if guard.claim(now, opened.nonce, opened.expires).await {
            return Ok(true);
        }
        if guard.is_claimed(now, opened.nonce).await {
            return Ok(false);
        }
        Err(self.not_supported(HandleMisuse::ReplayGuardFull))
    }
}

/// Stored handles.
impl Access<'_> {
    /// A record of the content: the id, if handles are listed, and the value.
    fn record(&self, now: u64, id: [u8; ID_BYTES], json: &[u8]) -> HandleRecord {
        let id = if self.is_anonymous { &[] } else { id.as_slice() };
        let expires = now.saturating_add(self.vault.lifetime.as_secs());
        HandleRecord { owner: self.owner(), content: [id, json].concat(), expires }
    }

    fn opened(&self, found: Option<VersionedHandle>) -> Result<Opened, HandleError> {
        let VersionedHandle { record, version } = found.ok_or_else(|| self.rejected("unknown"))?;
        let mut json = record.content;
        if !self.is_anonymous {
            if json.len() < ID_BYTES {
                return Err(self.rejected("the record in the store is not valid"));
            }
            json.drain(..ID_BYTES);
        }
        Ok(Opened { json, version })
    }

    /// The key of a handle. It depends on the caller, so a foreign handle has no record. As the store compares digests, the
    /// time that it takes tells nothing about a handle.
    fn key(&self, id: [u8; ID_BYTES]) -> HandleKey {
        HandleKey(self.binding.store_key(&id))
    }

    fn owner(&self) -> Option<HandleOwner> {
        (!self.is_anonymous).then(|| HandleOwner(self.binding.store_key(&[])))
    }

    fn check_size(&self, json: &[u8]) -> Result<(), HandleError> {
        if json.len() > self.vault.max_bytes { Err(self.too_large(json.len())) } else { Ok(()) }
    }

    fn too_large(&self, found: usize) -> HandleError {
        HandleError::TooLarge { kind: self.name, cause: HandleTooLarge { found, limit: self.vault.max_bytes } }
    }

    fn text_of(&self, id: [u8; ID_BYTES]) -> String {
        format!("{}{SEPARATOR}{}", self.name, url_safe::encode(&id))
    }

    fn parse(&self, text: &str) -> Result<[u8; ID_BYTES], HandleError> {
        let payload = self.payload(text)?;
        // Checked before it is decoded: the text may be of any length.
        if payload.len() != (ID_BYTES * 4).div_ceil(3) {
            return Err(self.rejected("malformed"));
        }
        let id = url_safe::decode(payload).ok().and_then(|id| id.try_into().ok());
        id.ok_or_else(|| self.rejected("malformed"))
    }

    /// What follows the name of the kind.
    fn payload<'t>(&self, text: &'t str) -> Result<&'t str, HandleError> {
        let payload = text.strip_prefix(self.name).and_then(|rest| rest.strip_prefix(SEPARATOR));
        payload.ok_or_else(|| self.rejected("of another kind"))
    }
}

/// Between the name of the kind and the rest of a handle.
const SEPARATOR: char = '_';
