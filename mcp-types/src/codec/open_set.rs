//! Open sets of strings: known values are constants, unknown ones are preserved.

/// Declares a struct around a string whose known values are associated constants.
///
/// A peer of a later revision may send an unknown value. It is preserved, so that it does not invalidate the message.
macro_rules! open_set {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( $(#[$value_meta:meta])* $constant:ident = $text:literal, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "schemars", derive(schemars::JsonSchema), schemars(description = ""))]
        pub struct $name(std::borrow::Cow<'static, str>);

        impl $name {
            $(
                $(#[$value_meta])*
                pub const $constant: Self = Self(std::borrow::Cow::Borrowed($text));
            )*

            /// The known values, in the order of the specification.
            pub const KNOWN: &'static [Self] = &[$(Self::$constant),*];

            /// Returns the value as sent on the wire.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Returns whether the value is one of [`KNOWN`](Self::KNOWN).
            #[must_use]
            pub fn is_known(&self) -> bool {
                matches!(self.as_str(), $($text)|*)
            }
        }

        impl From<&str> for $name {
            /// Does not allocate for known values.
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$constant,)*
                    unknown => Self(std::borrow::Cow::Owned(unknown.to_owned())),
                }
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                match text.as_str() {
                    $($text => Self::$constant,)*
                    _ => Self(std::borrow::Cow::Owned(text)),
                }
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.as_str() == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.as_str() == *other
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}({:?})", stringify!($name), self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::codec::open_set::from_text(deserializer)
            }
        }

    };
}

pub(crate) use open_set;

/// Deserializes from a string, without an allocation for known values.
pub(crate) fn from_text<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: for<'a> From<&'a str> + From<String>,
    D: serde::Deserializer<'de>,
{
    struct Text<T>(std::marker::PhantomData<T>);

    impl<T: for<'a> From<&'a str> + From<String>> serde::de::Visitor<'_> for Text<T> {
        type Value = T;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a string")
        }

        crate::codec::visit::visit! {
            visit_str(self, text: &str) => Ok(T::from(text));
            visit_string(self, text: String) => Ok(T::from(text));
        }
    }

    deserializer.deserialize_str(Text(std::marker::PhantomData))
}
