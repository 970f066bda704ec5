//! The series of a histogram, which are created once and then found without allocating.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, PoisonError, RwLock};

use mcp_kernel::observe::Network;
use mcp_types::Revision;

use crate::error_type::ErrorType;
use crate::methods::MethodId;
use crate::names::OTHER;
use crate::options::MetricsOptions;
use crate::parts::Parts;
use crate::series::Series;

/// The series of a histogram. Their number is bounded, and so are the numbers of names and errors in them.
pub(crate) struct SeriesCache {
    tables: RwLock<Tables>,
    options: MetricsOptions,
}

#[derive(Default)]
struct Tables {
    names: HashMap<Box<str>, u32>,
    errors: HashMap<ErrorType, u32>,
    series: HashMap<u64, Arc<Series>, BuildHasherDefault<KeyHasher>>,
    /// What counts when there are too many series.
    other: Option<Arc<Series>>,
}

/// The maximum number of distinct errors. Their numbers have to fit into a byte of the key.
const MAX_ERRORS: usize = 64;

/// The maximum length of a name, in bytes. The specification recommends at most 128 characters.
const MAX_NAME_BYTES: usize = 256;

/// The numbers of names and errors: for none, for all that are not counted by themselves, and for the first of the others.
const ABSENT: u32 = 0;
const OTHERS: u32 = 1;
const FIRST: usize = 2;

impl SeriesCache {
    pub(crate) fn new(options: MetricsOptions) -> Self {
        Self { tables: RwLock::default(), options }
    }

    /// Returns the series with these parts.
    pub(crate) fn find(&self, parts: &Parts<'_>) -> Arc<Series> {
        let found = self.tables.read().unwrap_or_else(PoisonError::into_inner).find(parts, &self.options);
        found.unwrap_or_else(|| self.insert(parts))
    }

    #[cold]
    fn insert(&self, parts: &Parts<'_>) -> Arc<Series> {
        self.tables.write().unwrap_or_else(PoisonError::into_inner).insert(parts, &self.options)
    }
}

impl Tables {
    /// Returns the series, unless something has to be inserted.
    fn find(&self, parts: &Parts<'_>, options: &MetricsOptions) -> Option<Arc<Series>> {
        let name = match &parts.target {
            Some(target) => self.number_of_name(target.name, options)?,
            None => ABSENT,
        };
        let error = match &parts.error {
            Some(error) => self.number_of_error(error)?,
            None => ABSENT,
        };
        let found = self.series.get(&key(parts, name, error)).cloned();
        found.or_else(|| self.other.clone())
    }

    fn number_of_name(&self, name: &str, options: &MetricsOptions) -> Option<u32> {
        if name.len() > MAX_NAME_BYTES {
            return Some(OTHERS);
        }
        let is_full = self.names.len() >= options.max_names;
        self.names.get(name).copied().or_else(|| is_full.then_some(OTHERS))
    }

    fn number_of_error(&self, error: &ErrorType) -> Option<u32> {
        let is_full = self.errors.len() >= MAX_ERRORS;
        self.errors.get(error).copied().or_else(|| is_full.then_some(OTHERS))
    }

    fn insert(&mut self, parts: &Parts<'_>, options: &MetricsOptions) -> Arc<Series> {
        let (mut parts, mut name, mut error) = (*parts, ABSENT, ABSENT);
        if let Some(target) = &mut parts.target {
            name = self.number_of_name(target.name, options).unwrap_or_else(|| {
                let number = u32::try_from(FIRST + self.names.len()).unwrap_or(OTHERS);
                self.names.insert(target.name.into(), number);
                number
            });
            if name == OTHERS {
                target.name = OTHER;
            }
        }
        if let Some(of) = &mut parts.error {
            error = self.number_of_error(of).unwrap_or_else(|| {
                let number = u32::try_from(FIRST + self.errors.len()).unwrap_or(OTHERS);
                self.errors.insert(*of, number);
                number
            });
            if error == OTHERS {
                *of = ErrorType::OTHER;
            }
        }
        let key = key(&parts, name, error);
        if let Some(found) = self.series.get(&key) {
            return found.clone();
        }
        // There is one series more for everything else.
        if self.series.len() + 1 >= options.max_series {
            return self.other.get_or_insert_with(|| Arc::new(Series::new(parts.to_other_attributes()))).clone();
        }
        let series = Arc::new(Series::new(parts.to_attributes()));
        self.series.insert(key, series.clone());
        series
    }
}

/// Packs everything that a series depends on. The method of a target says whether it is a tool or a prompt.
fn key(parts: &Parts<'_>, name: u32, error: u32) -> u64 {
    let method = parts.method.map_or(u8::MAX, MethodId::number);
    let (revision, network) = (number_of_revision(parts.revision), number_of_network(parts.network));
    u64::from(name) << 32
        | u64::from(error) << 24
        | u64::from(method) << 16
        | u64::from(revision) << 8
        | u64::from(network)
}

fn number_of_revision(revision: Option<Revision>) -> u8 {
    match revision {
        None => 0,
        Some(Revision::V2024_11_05) => 1,
        Some(Revision::V2025_03_26) => 2,
        Some(Revision::V2025_06_18) => 3,
        Some(Revision::V2025_11_25) => 4,
        Some(Revision::V2026_07_28) => 5,
        Some(_) => u8::MAX,
    }
}

fn number_of_network(network: Network) -> u8 {
    match network {
        Network::InProcess => 0,
        Network::Stdio => 1,
        Network::Unix => 2,
        Network::Tcp => 3,
        Network::Http => 4,
        _ => u8::MAX,
    }
}

/// Spreads the bits of a packed key. Peers do not choose keys, as names and errors are numbered.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        // A prime close to 2^64 divided by the golden ratio.
        self.0 = (self.0 ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C55).rotate_left(32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
