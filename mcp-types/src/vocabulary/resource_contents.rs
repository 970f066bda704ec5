//! Deserializes resource contents, which are text or binary.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::codec::object::object;
use crate::codec::variants::from_variants;
use crate::{BlobResourceContents, Meta, ResourceContents, TextResourceContents};

// The members of both variants.
object!(struct Either {
    "uri" => uri: required String,
    "text" => text: optional Option<String>,
    "blob" => blob: optional Option<String>,
    "mimeType" => mime_type: optional Option<String>,
    "_meta" => meta: optional Option<Meta>,
} keep extra);

impl<'de> Deserialize<'de> for ResourceContents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Either { uri, text, blob, mime_type, meta, extra } = Either::deserialize(deserializer)?;
        match (text, blob) {
            (Some(text), None) => Ok(Self::Text(TextResourceContents { uri, text, mime_type, meta, extra })),
            (None, Some(blob)) => Ok(Self::Blob(BlobResourceContents { uri, blob, mime_type, meta, extra })),
            (None, None) => Err(D::Error::custom("missing field `text` or `blob`")),
            (Some(_), Some(_)) => Err(D::Error::custom("resource contents have `text` or `blob`, not both")),
        }
    }
}

from_variants!(ResourceContents { TextResourceContents => Text, BlobResourceContents => Blob });

#[cfg(test)]
mod tests {
    use super::*;

    // covers: CG-12
    #[test]
    fn the_member_decides() {
        for text in [r#"{"uri":"a:b","text":""}"#, r#"{"uri":"a:b","blob":"AA==","mimeType":"x/y"}"#] {
            let contents: ResourceContents = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&contents).unwrap(), text);
        }
        for (text, says) in [
            (r#"{"uri":"a:b"}"#, "missing field `text` or `blob`"),
            (r#"{"uri":"a:b","text":"","blob":""}"#, "not both"),
            (r#"{"text":""}"#, "missing field `uri`"),
        ] {
            let fault = serde_json::from_str::<ResourceContents>(text).unwrap_err().to_string();
            assert!(fault.contains(says), "{fault}");
        }
    }
}
