//! Members that always hold the same string.

/// Declares a unit type that is serialized as one string and deserialized from no other.
macro_rules! constant {
    ($name:ident = $text:literal) => {
        #[doc = concat!("Always the string `", $text, "`.")]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[cfg_attr(
                            feature = "schemars",
                            derive(schemars::JsonSchema),
                            schemars(with = "serde_json::Value", inline, extend("const" = $text), description = "")
                        )]
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
    };
}

constant!(ArrayConstant = "array");
constant!(BooleanConstant = "boolean");
constant!(ObjectConstant = "object");
constant!(StringConstant = "string");
