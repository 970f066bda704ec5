//! Methods of visitors.

/// Declares methods of a `Visitor` for values that are neither borrowed nor nested, one on each line. `E` is the type of
/// their errors.
macro_rules! visit {
    ($($method:ident($self:ident $(, $value:ident: $type:ty)?) => $result:expr;)*) => {
        $(
            fn $method<E: serde::de::Error>($self $(, $value: $type)?) -> Result<Self::Value, E> {
                $result
            }
        )*
    };
}

pub(crate) use visit;
