//! The fields of a form: what to show, and how to read what was entered.

use super::form_content::{Fault, check};
use crate::{ElicitValue, EnumOption, Number, NumberType, PrimitiveSchema};

/// The kind of a form field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FieldKind {
    /// Any text.
    Text,
    /// A number, which may have a fraction.
    Number,
    /// A number without a fraction.
    Integer,
    /// Yes or no.
    Boolean,
    /// One of the choices.
    OneChoice,
    /// Any of the choices.
    ManyChoices,
}

/// A choice of a form field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldChoice<'a> {
    /// The value that is submitted.
    pub value: &'a str,
    /// The label; the value if the choice has none.
    pub title: &'a str,
}

/// Maximum number of choices, and of the characters of each, in an error.
const MAX_SHOWN: usize = 10;
const MAX_CHARS: usize = 40;

impl PrimitiveSchema {
    /// Returns the label of the field.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        let title = match self {
            Self::String(field) => &field.title,
            Self::Number(field) => &field.title,
            Self::Boolean(field) => &field.title,
            Self::SingleSelect(field) => &field.title,
            Self::TitledSingleSelect(field) => &field.title,
            Self::MultiSelect(field) => &field.title,
            Self::TitledMultiSelect(field) => &field.title,
            Self::LegacyEnum(field) => &field.title,
        };
        title.as_deref()
    }

    /// Returns the description of the field.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        let description = match self {
            Self::String(field) => &field.description,
            Self::Number(field) => &field.description,
            Self::Boolean(field) => &field.description,
            Self::SingleSelect(field) => &field.description,
            Self::TitledSingleSelect(field) => &field.description,
            Self::MultiSelect(field) => &field.description,
            Self::TitledMultiSelect(field) => &field.description,
            Self::LegacyEnum(field) => &field.description,
        };
        description.as_deref()
    }

    /// Returns the kind of the field.
    #[must_use]
    pub fn kind(&self) -> FieldKind {
        match self {
            Self::String(_) => FieldKind::Text,
            Self::Number(field) if field.kind == NumberType::Integer => FieldKind::Integer,
            Self::Number(_) => FieldKind::Number,
            Self::Boolean(_) => FieldKind::Boolean,
            Self::SingleSelect(_) | Self::TitledSingleSelect(_) | Self::LegacyEnum(_) => FieldKind::OneChoice,
            Self::MultiSelect(_) | Self::TitledMultiSelect(_) => FieldKind::ManyChoices,
        }
    }

    /// Returns the choices of the field in display order; none if it is not a choice.
    #[must_use]
    pub fn choices(&self) -> Vec<FieldChoice<'_>> {
        fn titled(options: &[EnumOption]) -> Vec<FieldChoice<'_>> {
            options.iter().map(|option| FieldChoice { value: &option.value, title: &option.title }).collect()
        }
        fn untitled(values: &[String]) -> Vec<FieldChoice<'_>> {
            values.iter().map(|value| FieldChoice { value, title: value }).collect()
        }
        match self {
            Self::String(_) | Self::Number(_) | Self::Boolean(_) => Vec::new(),
            Self::SingleSelect(field) => untitled(&field.values),
            Self::MultiSelect(field) => untitled(&field.items.values),
            Self::TitledSingleSelect(field) => titled(&field.options),
            Self::TitledMultiSelect(field) => titled(&field.items.options),
            Self::LegacyEnum(field) => {
                let names = field.names.as_deref().unwrap_or_default();
                let title = |index: usize, value| names.get(index).map_or(value, String::as_str);
                let values = field.values.iter().map(String::as_str).enumerate();
                values.map(|(index, value)| FieldChoice { value, title: title(index, value) }).collect()
            }
        }
    }

    /// Reads the value of the field from text that a user entered, and checks it.
    ///
    /// - A boolean is `yes`, `y`, `true`, `on` or `1`, or `no`, `n`, `false`, `off` or `0`, in any case.
    /// - A choice is its value, its label in any case, or its number in the list, from 1.
    /// - Several choices are separated by commas; empty text chooses none.
    /// - White space around numbers, booleans and choices is ignored, and is part of a text.
    ///
    /// ```
    /// use mcp_types::{EnumOption, PrimitiveSchema, TitledSingleSelectEnumSchema};
    ///
    /// let options = vec![EnumOption::new("s", "Small"), EnumOption::new("l", "Large")];
    /// let size = PrimitiveSchema::from(TitledSingleSelectEnumSchema::new(options));
    /// assert_eq!(size.parse("large"), Ok("l".into()));
    /// assert_eq!(size.parse("1"), Ok("s".into()));
    /// assert_eq!(size.parse("medium").unwrap_err(), "must be one of: Small, Large");
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the reason as the end of a sentence that starts with the field, such as `must be a number`.
    pub fn parse(&self, text: &str) -> Result<ElicitValue, String> {
        parse(self, text).map_err(|fault| fault.to_string())
    }
}

pub(super) fn parse(field: &PrimitiveSchema, text: &str) -> Result<ElicitValue, Fault> {
    let value = match field.kind() {
        FieldKind::Text => text.into(),
        FieldKind::Number | FieldKind::Integer => number(text.trim()).ok_or(Fault::Type("a number"))?,
        FieldKind::Boolean => boolean(text.trim()).ok_or(Fault::Type("yes or no"))?.into(),
        FieldKind::OneChoice => choose(&field.choices(), text)?.into(),
        FieldKind::ManyChoices => several(&field.choices(), text)?.into(),
    };
    check(field, &value)?;
    Ok(value)
}

fn number(text: &str) -> Option<ElicitValue> {
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.into());
    }
    if let Ok(whole) = text.parse::<u64>() {
        return Some(Number::from(whole).into());
    }
    text.parse::<f64>().ok().filter(|number| number.is_finite()).map(ElicitValue::from)
}

fn boolean(text: &str) -> Option<bool> {
    let is_one_of = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is_one_of(&["yes", "y", "true", "on", "1"]) {
        Some(true)
    } else if is_one_of(&["no", "n", "false", "off", "0"]) {
        Some(false)
    } else {
        None
    }
}

fn several(choices: &[FieldChoice<'_>], text: &str) -> Result<Vec<String>, Fault> {
    // A value or label may contain a comma.
    if let Ok(one) = choose(choices, text) {
        return Ok(vec![one]);
    }
    let chosen = text.split(',').map(str::trim).filter(|text| !text.is_empty());
    chosen.map(|text| choose(choices, text)).collect()
}

fn choose(choices: &[FieldChoice<'_>], text: &str) -> Result<String, Fault> {
    let text = text.trim();
    let lower = text.to_lowercase();
    let by_value = choices.iter().find(|choice| choice.value == text);
    let by_title = || choices.iter().find(|choice| choice.title.to_lowercase() == lower);
    let by_number = || choices.get(text.parse::<usize>().ok()?.checked_sub(1)?);
    let chosen = by_value.or_else(by_title).or_else(by_number);
    chosen.map(|choice| choice.value.to_owned()).ok_or_else(|| Fault::NotOneOf(listed(choices)))
}

/// The labels of the first choices.
fn listed(choices: &[FieldChoice<'_>]) -> String {
    let mut labels: Vec<String> =
        choices.iter().take(MAX_SHOWN).map(|choice| choice.title.chars().take(MAX_CHARS).collect()).collect();
    if choices.len() > MAX_SHOWN {
        labels.push("...".to_owned());
    }
    labels.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        BooleanSchema, LegacyTitledEnumSchema, NumberSchema, StringSchema, TitledItems, TitledMultiSelectEnumSchema,
        TitledSingleSelectEnumSchema, UntitledItems, UntitledMultiSelectEnumSchema, UntitledSingleSelectEnumSchema,
    };

    fn values() -> Vec<String> {
        ["a", "b, c"].map(str::to_owned).to_vec()
    }

    fn options() -> Vec<EnumOption> {
        vec![EnumOption::new("a", "First"), EnumOption::new("b", "Second")]
    }

    /// All kinds of fields have a title, a description and choices.
    // covers: GW-10
    #[test]
    fn gw_10_fields_are_described() {
        type Case = (PrimitiveSchema, FieldKind, &'static [(&'static str, &'static str)]);
        let names = ["A"].map(str::to_owned).to_vec();
        let fields: [Case; 9] = [
            (StringSchema::default().title("T").description("D").into(), FieldKind::Text, &[]),
            (NumberSchema::new(NumberType::Number).title("T").description("D").into(), FieldKind::Number, &[]),
            (NumberSchema::new(NumberType::Integer).title("T").description("D").into(), FieldKind::Integer, &[]),
            (BooleanSchema::default().title("T").description("D").into(), FieldKind::Boolean, &[]),
            (
                UntitledSingleSelectEnumSchema::new(values()).title("T").description("D").into(),
                FieldKind::OneChoice,
                &[("a", "a"), ("b, c", "b, c")],
            ),
            (
                TitledSingleSelectEnumSchema::new(options()).title("T").description("D").into(),
                FieldKind::OneChoice,
                &[("a", "First"), ("b", "Second")],
            ),
            (
                LegacyTitledEnumSchema::new(values()).names(names).title("T").description("D").into(),
                FieldKind::OneChoice,
                &[("a", "A"), ("b, c", "b, c")],
            ),
            (
                UntitledMultiSelectEnumSchema::new(UntitledItems::new(values())).title("T").description("D").into(),
                FieldKind::ManyChoices,
                &[("a", "a"), ("b, c", "b, c")],
            ),
            (
                TitledMultiSelectEnumSchema::new(TitledItems::new(options())).title("T").description("D").into(),
                FieldKind::ManyChoices,
                &[("a", "First"), ("b", "Second")],
            ),
        ];
        for (field, kind, choices) in fields {
            assert_eq!((field.title(), field.description(), field.kind()), (Some("T"), Some("D"), kind));
            let found: Vec<_> = field.choices().iter().map(|choice| (choice.value, choice.title)).collect();
            assert_eq!(found, choices);
        }
    }

    fn parsed(field: impl Into<PrimitiveSchema>, text: &str) -> Result<String, String> {
        field.into().parse(text).map(|value| serde_json::to_string(&value).unwrap())
    }

    /// Text becomes a value of the field, or an error that says what to enter.
    // covers: GW-10
    #[test]
    fn gw_10_text_is_parsed() {
        let ok = |text: &str| Ok(text.to_owned());
        let wrong = |text: &str| Err(text.to_owned());
        assert_eq!(parsed(StringSchema::default(), " a "), ok(r#"" a ""#));
        assert_eq!(parsed(StringSchema::default().max_length(1), "ab"), wrong("must have 1 or fewer characters"));
        let number = || NumberSchema::new(NumberType::Number).maximum(10);
        assert_eq!(parsed(number(), " 1.5 "), ok("1.5"));
        assert_eq!(parsed(number(), "11"), wrong("must be at most 10"));
        for text in ["", "one", "inf", "NaN", "1e999", "0x1"] {
            assert_eq!(parsed(number(), text), wrong("must be a number"), "{text}");
        }
        let integer = || NumberSchema::new(NumberType::Integer);
        assert_eq!(parsed(integer(), "-7"), ok("-7"));
        assert_eq!(parsed(integer(), "18446744073709551615"), ok("18446744073709551615"));
        assert_eq!(parsed(integer(), "1.5"), wrong("must be an integer"));
        for (text, value) in [("YES", "true"), (" y", "true"), ("on", "true"), ("No", "false"), ("0", "false")] {
            assert_eq!(parsed(BooleanSchema::default(), text), ok(value), "{text}");
        }
        assert_eq!(parsed(BooleanSchema::default(), "maybe"), wrong("must be yes or no"));
        let one = || TitledSingleSelectEnumSchema::new(options());
        for text in ["b", "second", " SECOND ", "2"] {
            assert_eq!(parsed(one(), text), ok(r#""b""#), "{text}");
        }
        for text in ["c", "0", "3", ""] {
            assert_eq!(parsed(one(), text), wrong("must be one of: First, Second"), "{text}");
        }
        let many = || UntitledMultiSelectEnumSchema::new(UntitledItems::new(values())).max_items(2);
        assert_eq!(parsed(many(), "b, c"), ok(r#"["b, c"]"#));
        assert_eq!(parsed(many(), "a, 2"), ok(r#"["a","b, c"]"#));
        assert_eq!(parsed(many(), " "), ok("[]"));
        assert_eq!(parsed(many(), "a,1,a"), wrong("must have 2 or fewer choices"));
        assert_eq!(parsed(many(), "a,d"), wrong("must be one of: a, b, c"));
    }

    /// A server chooses the number and length of choices, but not the length of errors.
    // covers: GW-10
    #[test]
    fn gw_10_errors_are_bounded() {
        let values = (0..10_000).map(|number| format!("{number:01000}")).collect();
        let fault = PrimitiveSchema::from(UntitledSingleSelectEnumSchema::new(values)).parse("x").unwrap_err();
        assert!(fault.len() < 500 && fault.ends_with(", ..."), "{fault}");
    }
}
