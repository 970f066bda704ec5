//! What tools, prompts and resources have in common: how they show themselves in lists.

/// Gives things with a `definition` its setters, and has them show it.
macro_rules! definition_setters {
    ($($kind:ident: $description:literal),* $(,)?) => {$(
        impl $kind {
            #[doc = $description]
            pub fn description(mut self, text: impl Into<String>) -> Self {
                self.definition.description = Some(text.into());
                self
            }

            /// The name to show to people.
            pub fn title(mut self, title: impl Into<String>) -> Self {
                self.definition.title = Some(title.into());
                self
            }

            /// Icons that a user interface may show.
            pub fn icons(mut self, icons: Vec<mcp_types::Icon>) -> Self {
                self.definition.icons = Some(icons);
                self
            }

            /// Metadata beside what the protocol defines.
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
