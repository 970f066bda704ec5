//! The setters that tools, prompts and resources share.

/// Adds setters for the members that all definitions have, and `Debug`.
macro_rules! definition_setters {
    ($($kind:ident: $description:literal),* $(,)?) => {$(
        impl $kind {
            #[doc = $description]
            pub fn description(mut self, text: impl Into<String>) -> Self {
                self.definition.description = Some(text.into());
                self
            }

            /// Sets the name that user interfaces show.
            pub fn title(mut self, title: impl Into<String>) -> Self {
                self.definition.title = Some(title.into());
                self
            }

            /// Sets icons for user interfaces.
            pub fn icons(mut self, icons: Vec<mcp_types::Icon>) -> Self {
                self.definition.icons = Some(icons);
                self
            }

            /// Sets the `_meta` of the definition.
            pub fn meta(mut self, meta: mcp_types::Meta) -> Self {
                self.definition.meta = Some(meta);
                self
            }
        }

        impl std::fmt::Debug for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($kind)).field("definition", &self.definition).finish_non_exhaustive()
            }
        }
    )*};
}

pub(crate) use definition_setters;
