//! The tables.

mod changes;
mod counts;
mod loads;
mod sessions;

use peers::table::known;

pub(crate) use self::changes::changes;
pub(crate) use self::counts::{counts, footprints};
pub(crate) use self::loads::{Delays, Load, delays, load};
pub(crate) use self::sessions::{sessions, sweeps};

pub(super) fn unsupported(name: &str, columns: usize) -> Vec<String> {
    let mut row = vec![known::<f64>(None); columns];
    name.clone_into(&mut row[0]);
    row
}

pub(super) fn ratio(ratio: Option<f64>) -> String {
    known(ratio.map(|ratio| format!("{ratio:.2}")))
}
