//! One number for many.

/// Returns the smallest of some values.
#[must_use]
pub fn fastest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Returns the value in the middle; not a number if there is none.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Returns the value that so many of a hundred do not exceed; not a number if there is none.
#[must_use]
pub fn percentile(values: &[u64], percent: usize) -> f64 {
    let mut values = values.to_vec();
    values.sort_unstable();
    values
        .get((values.len() * percent / 100).min(values.len().saturating_sub(1)))
        .map_or(f64::NAN, |value| *value as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_all_values() {
        let values: Vec<u64> = (1..=100).rev().collect();
        assert_eq!((percentile(&values, 50), percentile(&values, 99)), (51.0, 100.0));
        assert!(percentile(&[], 50).is_nan());
    }

    #[test]
    fn the_median_ignores_outliers() {
        assert_eq!((median(&[5.0, 1.0, 900.0]), fastest(&[5.0, 1.0, 900.0])), (5.0, 1.0));
    }
}
