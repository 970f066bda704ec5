//! Members that always hold the same string.

/// Declares a unit type that is serialized as one string and deserialized from no other.
macro_rules! constant {
    ($name:ident = $text:literal) => {
        #[doc = concat!("Always the string `", $text, "`.")]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct $name;

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str($text)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;

                impl serde::de::Visitor<'_> for Text {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!("the string \"", $text, "\""))
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        if text == $text {
                            Ok($name)
                        } else {
                            Err(E::invalid_value(serde::de::Unexpected::Str(text), &self))
                        }
                    }
                }

                deserializer.deserialize_str(Text)
            }
        }

        #[cfg(feature = "schemars")]
        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "const": $text })
            }
        }
    };
}

constant!(ArrayConstant = "array");
constant!(BooleanConstant = "boolean");
constant!(ObjectConstant = "object");
constant!(StringConstant = "string");
