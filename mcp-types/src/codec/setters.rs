//! Setters for the optional members of generated types.

/// Declares a builder-style setter for each optional member.
macro_rules! setters {
    ($type:ident { $($member:ident: $kind:ty),* $(,)? }) => {
        impl $type {
            $(
                #[doc = concat!("Sets `", stringify!($member), "`.")]
                #[must_use]
                pub fn $member(mut self, $member: impl Into<$kind>) -> Self {
                    self.$member = Some($member.into());
                    self
                }
            )*
        }
    };
}

pub(crate) use setters;
