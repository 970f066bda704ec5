//! Conversions into unions.

/// Implements `From` for the type that each variant holds, and for types that convert into it.
macro_rules! from_variants {
    ($union:ident { $($source:ty => $variant:ident),* $(,)? }) => {
        $(
            impl From<$source> for $union {
                fn from(value: $source) -> Self {
                    Self::$variant(value.into())
                }
            }
        )*
    };
}

pub(crate) use from_variants;
