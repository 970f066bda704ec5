//! Constructors and accessors of content blocks, messages and resource contents.

use crate::base64::{self, InvalidBase64};
use crate::{
    AudioContent, BlobResourceContents, ContentBlock, EmbeddedResource, ImageContent, PromptMessage, ResourceContents,
    ResourceLink, Role, SamplingContent, SamplingMessage, TextContent, TextResourceContents,
};

/// Implements what the content blocks of prompts, tools and sampling have in common.
macro_rules! media_blocks {
    ($($block:ident),*) => {
        $(
            impl $block {
                /// Creates a text block.
                #[must_use]
                pub fn text(text: impl Into<String>) -> Self {
                    Self::Text(TextContent::new(text))
                }

                /// Creates an image block from the bytes of the image.
                #[must_use]
                pub fn image(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
                    Self::Image(ImageContent::new(base64::encode(bytes.as_ref()), mime_type))
                }

                /// Creates an audio block from the bytes of the audio data.
                #[must_use]
                pub fn audio(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
                    Self::Audio(AudioContent::new(base64::encode(bytes.as_ref()), mime_type))
                }

                /// Returns the text of a text block.
                #[must_use]
                pub fn as_text(&self) -> Option<&str> {
                    if let Self::Text(content) = self { Some(&content.text) } else { None }
                }
            }

            impl From<&str> for $block {
                fn from(text: &str) -> Self {
                    Self::text(text)
                }
            }

            impl From<String> for $block {
                fn from(text: String) -> Self {
                    Self::text(text)
                }
            }
        )*
    };
}

media_blocks!(ContentBlock, SamplingContent);

impl ContentBlock {
    /// Creates a link to a resource that the client may read.
    #[must_use]
    pub fn resource_link(name: impl Into<String>, uri: impl Into<String>) -> Self {
        Self::ResourceLink(ResourceLink::new(name, uri))
    }

    /// Creates a block that embeds the contents of a resource.
    #[must_use]
    pub fn resource(contents: impl Into<ResourceContents>) -> Self {
        Self::Resource(EmbeddedResource::new(contents))
    }
}

/// Implements the constructors of messages, by role.
macro_rules! messages {
    ($($message:ident of $block:ident),*) => {
        $(
            impl $message {
                /// Creates a message of the user with one content block.
                #[must_use]
                pub fn user(content: impl Into<$block>) -> Self {
                    Self::new(Role::USER, Into::<$block>::into(content))
                }

                /// Creates a message of the assistant with one content block.
                #[must_use]
                pub fn assistant(content: impl Into<$block>) -> Self {
                    Self::new(Role::ASSISTANT, Into::<$block>::into(content))
                }
            }
        )*
    };
}

messages!(PromptMessage of ContentBlock, SamplingMessage of SamplingContent);

/// Implements the decoding of members that are Base64.
macro_rules! decoded {
    ($($content:ident.$member:ident),*) => {
        $(
            impl $content {
                #[doc = concat!("Decodes the Base64 text in `", stringify!($member), "`.")]
                ///
                /// # Errors
                ///
                #[doc = concat!("Returns an error if `", stringify!($member), "` is not Base64.")]
                pub fn bytes(&self) -> Result<Vec<u8>, InvalidBase64> {
                    base64::decode(&self.$member)
                }
            }
        )*
    };
}

decoded!(ImageContent.data, AudioContent.data, BlobResourceContents.blob);

impl ResourceContents {
    /// Creates text contents.
    #[must_use]
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self::Text(TextResourceContents::new(uri, text))
    }

    /// Creates binary contents from bytes.
    #[must_use]
    pub fn blob(uri: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        Self::Blob(BlobResourceContents::new(uri, base64::encode(bytes.as_ref())))
    }

    /// Returns the URI of the resource.
    #[must_use]
    pub fn uri(&self) -> &str {
        match self {
            Self::Text(contents) => &contents.uri,
            Self::Blob(contents) => &contents.uri,
        }
    }

    /// Returns the MIME type of the contents, if it is known.
    #[must_use]
    pub fn mime_type(&self) -> Option<&str> {
        match self {
            Self::Text(contents) => contents.mime_type.as_deref(),
            Self::Blob(contents) => contents.mime_type.as_deref(),
        }
    }

    /// Returns the text of text contents. Binary contents have [bytes](BlobResourceContents::bytes) instead.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(contents) = self { Some(&contents.text) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: PR-3
    #[test]
    fn bytes_travel_as_base64() {
        let block = ContentBlock::image([0xff, 0x00], "image/png");
        assert_eq!(serde_json::to_string(&block).unwrap(), r#"{"type":"image","data":"/wA=","mimeType":"image/png"}"#);
        let ContentBlock::Image(image) = block else { panic!("an image") };
        assert_eq!(image.bytes().unwrap(), [0xff, 0x00]);
    }

    #[test]
    fn messages_take_one_line() {
        assert_eq!(PromptMessage::user("hi").content.as_text(), Some("hi"));
        let message = SamplingMessage::assistant("ho");
        assert_eq!((message.role, message.content.as_slice()[0].as_text()), (Role::ASSISTANT, Some("ho")));
    }

    #[test]
    fn contents_have_the_same_accessors() {
        let text = ResourceContents::from(TextResourceContents::new("a:b", "hi").mime_type("text/plain"));
        assert_eq!((text.uri(), text.mime_type(), text.as_text()), ("a:b", Some("text/plain"), Some("hi")));
        let blob = ResourceContents::blob("a:b", "x");
        assert_eq!((blob.uri(), blob.mime_type(), blob.as_text()), ("a:b", None, None));
    }
}
