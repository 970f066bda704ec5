//! How the handles of a kind are minted and kept.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcp_mrtr::{ReplayGuard, Sealer};

use crate::handles::memory::MemoryHandleStore;
use crate::handles::store::HandleStore;
use crate::handles::value::HandleValue;

/// The handles for values of a type: whether they are sealed or stored, how long they are valid, and how large they may be;
/// for [`ServerBuilder::handles`](crate::ServerBuilder::handles).
///
/// | | [`sealed`](Self::sealed) | [`stored`](Self::stored) |
/// |---|---|---|
/// | the value is | in the handle, encrypted with the keys of [`ServerBuilder::key_ring`](crate::ServerBuilder::key_ring) | in a [`HandleStore`] |
/// | another instance can use the handle | if it has the same keys | if it has the same store |
/// | size of the handle | that of the value | about 50 bytes |
/// | an update | creates another handle; the previous one stays valid, unless there is a replay guard | changes the value of the handle |
/// | [`Handle::take`](crate::Handle::take), [`Handle::revoke`](crate::Handle::revoke) | with a [`replay_guard`](Self::replay_guard) | yes |
/// | [`CallerHandles::list`](super::CallerHandles::list), [`revoke_all`](super::CallerHandles::revoke_all) | no | yes |
///
/// The model repeats a handle token by token, so seal small values only, and store the others.
///
/// Either way a handle is bound to the [`Principal`](crate::Principal) that it was minted for, to the name of the server, and
/// to [`HandleValue::NAME`]. Handles of anonymous callers are valid for every anonymous caller who knows them.
pub struct Handles<T> {
    pub(crate) vault: Vault,
    value: PhantomData<fn() -> T>,
}

/// The settings of a kind, and what keeps its values.
pub(crate) struct Vault {
    pub(crate) backing: Backing,
    pub(crate) lifetime: Duration,
    pub(crate) max_bytes: usize,
}

pub(crate) enum Backing {
    Sealed {
        guard: Option<Arc<dyn ReplayGuard>>,
        /// Created at the first use, from the keys of the server.
        sealer: OnceLock<Sealer>,
    },
    Stored(Arc<dyn HandleStore>),
}

impl<T: HandleValue> Handles<T> {
    /// Creates sealed handles: nothing is stored, as each handle contains its value, encrypted and authenticated.
    ///
    /// The text of a handle has at most 4 KiB. Without a [`replay_guard`](Self::replay_guard) a handle cannot be revoked: it
    /// is valid until it expires, or until its key is removed from the key ring.
    #[must_use]
    pub fn sealed() -> Self {
        Self::with(Backing::Sealed { guard: None, sealer: OnceLock::new() }, 4 * 1024)
    }

    /// Creates handles whose values are in a store. A value has at most 64 KiB as JSON.
    #[must_use]
    pub fn stored(store: impl HandleStore) -> Self {
        Self::with(Backing::Stored(Arc::new(store)), 64 * 1024)
    }

    /// Creates handles whose values are in the memory of this process, within the default limits of
    /// [`MemoryHandleStore`].
    #[must_use]
    pub fn in_memory() -> Self {
        Self::stored(MemoryHandleStore::default())
    }

    fn with(backing: Backing, max_bytes: usize) -> Self {
        Self { vault: Vault { backing, lifetime: Duration::from_secs(3600), max_bytes }, value: PhantomData }
    }

    /// Sets how long a handle is valid after it was minted or updated. Fractions of a second are ignored. Defaults to one
    /// hour.
    #[must_use]
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.vault.lifetime = lifetime;
        self
    }

    /// Sets the maximum size in bytes: of the text of a sealed handle, which is about 4/3 of the value as JSON, or of a stored
    /// value as JSON. Defaults to 4 KiB for sealed handles and to 64 KiB for stored ones.
    #[must_use]
    pub fn max_bytes(mut self, max_bytes: usize) -> Self {
        self.vault.max_bytes = max_bytes;
        self
    }

    /// Sets a replay guard, which records the sealed handles that were revoked, taken or updated, so that they are not valid
    /// any more. Instances that serve the same clients must share it. Stored handles do not need one.
    #[must_use]
    pub fn replay_guard(mut self, replay_guard: impl ReplayGuard + 'static) -> Self {
        if let Backing::Sealed { guard, .. } = &mut self.vault.backing {
            *guard = Some(Arc::new(replay_guard));
        }
        self
    }
}

impl<T> fmt::Debug for Handles<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handles")
            .field("is_stored", &matches!(self.vault.backing, Backing::Stored(_)))
            .field("lifetime", &self.vault.lifetime)
            .field("max_bytes", &self.vault.max_bytes)
            .finish_non_exhaustive()
    }
}
