//! The operators of RFC 6570 (appendix A of the RFC).

use super::token::Token;

/// The character after the opening brace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    /// `{a}`
    Simple,
    /// `{+a}`
    Reserved,
    /// `{#a}`
    Fragment,
    /// `{.a}`
    Label,
    /// `{/a}`
    Path,
    /// `{;a}`
    Parameter,
    /// `{?a}`
    Query,
    /// `{&a}`
    Continuation,
}

impl Operator {
    /// Returns the operator of a character. An expression without one is a simple expansion.
    pub(super) fn of(sign: char) -> Option<Self> {
        Some(match sign {
            '+' => Self::Reserved,
            '#' => Self::Fragment,
            '.' => Self::Label,
            '/' => Self::Path,
            ';' => Self::Parameter,
            '?' => Self::Query,
            '&' => Self::Continuation,
            _ => return None,
        })
    }

    /// Returns the character before the first value.
    pub(super) const fn lead(self) -> Option<char> {
        match self {
            Self::Simple | Self::Reserved => None,
            Self::Fragment => Some('#'),
            Self::Label => Some('.'),
            Self::Path => Some('/'),
            Self::Parameter => Some(';'),
            Self::Query => Some('?'),
            Self::Continuation => Some('&'),
        }
    }

    /// Returns the character between values.
    pub(super) const fn separator(self) -> char {
        match self {
            Self::Simple | Self::Reserved | Self::Fragment => ',',
            Self::Label => '.',
            Self::Path => '/',
            Self::Parameter => ';',
            Self::Query | Self::Continuation => '&',
        }
    }

    /// Whether values have names.
    pub(super) const fn is_named(self) -> bool {
        matches!(self, Self::Parameter | Self::Query | Self::Continuation)
    }

    /// Whether a name with an empty value is followed by `=`.
    pub(super) const fn marks_empty(self) -> bool {
        matches!(self, Self::Query | Self::Continuation)
    }

    /// Whether reserved characters are written as they are.
    pub(super) const fn keeps_reserved(self) -> bool {
        matches!(self, Self::Reserved | Self::Fragment)
    }

    /// Whether a value in a URI may have this character.
    pub(super) fn accepts(self, token: Token) -> bool {
        match token {
            Token::Encoded(_) => true,
            Token::Broken(_) => false,
            Token::Plain(character) => {
                is_unreserved(character)
                    || match self {
                        Self::Simple | Self::Label | Self::Path => false,
                        Self::Reserved | Self::Fragment => is_reserved(character),
                        Self::Parameter => "!$&'()*+,=:@".contains(character),
                        Self::Query | Self::Continuation => is_reserved(character) && !"&#".contains(character),
                    }
            }
        }
    }
}

pub(super) fn is_unreserved(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-._~".contains(character)
}

pub(super) fn is_reserved(character: char) -> bool {
    ":/?#[]@!$&'()*+,;=".contains(character)
}
