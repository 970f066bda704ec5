//! Static resources.

use mcp::server::{Resource, blob_resource, text_resource};

const README: &str = "# Demo\n\nA server for trying clients. Add notes with `add_note`: they become resources here.\n";

const LOGO: &[u8] = include_bytes!("logo.png");

/// A text resource.
pub(crate) fn readme() -> Resource {
    text_resource("demo://readme", "readme", README).mime_type("text/markdown").description("About this server")
}

/// A binary resource.
pub(crate) fn logo() -> Resource {
    blob_resource("demo://logo.png", "logo", LOGO).mime_type("image/png").description("A picture of 16 by 16 pixels")
}
