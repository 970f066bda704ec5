//! Maps by ids that clients cannot choose.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map whose keys the server chooses, and whose callers have checked them: no client can make them collide, so they need
/// no keyed hash.
pub(crate) type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// Mixes the bits of numbers.
#[derive(Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // The multiplication moves all bits up, and the map selects its buckets by the low ones.
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::hash::{BuildHasher as _, BuildHasherDefault};

    use super::*;

    /// Numbers in a row, as those of streams, have different buckets.
    #[test]
    fn numbers_in_a_row_are_spread() {
        let hasher = BuildHasherDefault::<IdHasher>::default();
        for first in [0_u64, 0x5a5a_1234_0000] {
            let buckets = (first..first + 64).map(|number| hasher.hash_one(number) & 0xff).collect::<BTreeSet<_>>();
            assert!(buckets.len() > 40, "{}", buckets.len());
        }
    }
}
