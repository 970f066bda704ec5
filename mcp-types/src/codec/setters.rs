//! Chained setters for the optional members of generated types.

/// Declares for each optional member a method of the same name that sets it and returns the value.
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
