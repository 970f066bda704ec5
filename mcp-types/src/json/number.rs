//! JSON numbers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A JSON number, which preserves whether it is an integer: `5` stays `5`, and `5.0` stays `5.0`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema), schemars(with = "f64"))]
#[serde(transparent)]
pub struct Number(serde_json::Number);

impl Number {
    /// Returns the value as a floating-point number; integers beyond 2^53 lose precision.
    #[must_use]
    pub fn as_f64(&self) -> f64 {
        self.0.as_f64().unwrap_or(0.0)
    }

    /// Returns the value as an integer, if it was written as one and is in range.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        self.0.as_i64()
    }
}

impl From<f64> for Number {
    /// Converts infinities to the largest finite number and NaN to 0, because JSON has neither.
    fn from(value: f64) -> Self {
        let finite = if value.is_nan() { 0.0 } else { value.clamp(f64::MIN, f64::MAX) };
        Self(serde_json::Number::from_f64(finite).unwrap_or_else(|| 0.into()))
    }
}

macro_rules! from_integers {
    ($($integer:ty),*) => {
        $(
            impl From<$integer> for Number {
                fn from(value: $integer) -> Self {
                    Self(value.into())
                }
            }
        )*
    };
}

from_integers!(i32, i64, u32, u64, usize);

/// Compares [`as_f64`](Number::as_f64), whether the number was written as an integer or not.
impl PartialEq<f64> for Number {
    fn eq(&self, other: &f64) -> bool {
        self.as_f64() == *other
    }
}

/// Compares [`as_i64`](Number::as_i64): a number that was written as `5.0` is equal to no integer.
impl PartialEq<i64> for Number {
    fn eq(&self, other: &i64) -> bool {
        self.as_i64() == Some(*other)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_kind() {
        for text in ["5", "5.0", "-0.25", "18446744073709551615"] {
            let number: Number = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&number).unwrap(), text);
        }
        assert_eq!(Number::from(f64::NAN).as_f64(), 0.0);
        assert_eq!(Number::from(f64::NEG_INFINITY).as_f64(), f64::MIN);
        assert_eq!(Number::from(0.5).to_string(), "0.5");
        assert_eq!(Number::from(7_u32).as_i64(), Some(7));
    }

    #[test]
    fn numbers_are_compared_with_those_of_rust() {
        let number = |text| serde_json::from_str::<Number>(text).unwrap();
        assert_eq!(number("5"), 5);
        assert_eq!(number("5"), 5.0);
        assert_eq!(number("5.0"), 5.0);
        assert_ne!(number("5.0"), 5);
        assert_ne!(number("5"), 6);
        assert_ne!(number("0.5"), 0.25);
        assert_eq!(number("-9223372036854775808"), i64::MIN);
        assert_ne!(number("18446744073709551615"), -1);
        assert_ne!(Number::from(f64::NAN), f64::NAN);
    }
}
