//! Checks the submitted content of a form against its schema.

use std::fmt;

use crate::{ElicitValue, EnumOption, Number, NumberType, OrderedMap, PrimitiveSchema, RequestedSchema};

impl RequestedSchema {
    /// Checks the content of an accepted form: required fields, types, bounds, lengths and choices.
    ///
    /// Unknown fields are ignored, and formats are not checked.
    ///
    /// # Errors
    ///
    /// Returns an error for the first invalid field.
    pub fn check(&self, content: &OrderedMap<ElicitValue>) -> Result<(), InvalidFormContent> {
        let missing = self.required.iter().flatten().find(|name| !content.contains(name));
        if let Some(name) = missing {
            return Err(Fault::Missing.of(name));
        }
        for (name, field) in self.properties.iter() {
            if let Some(found) = content.get(name) {
                check(field, found).map_err(|fault| fault.of(name))?;
            }
        }
        Ok(())
    }

    /// Adds the defaults of absent fields.
    pub fn fill_defaults(&self, content: &mut OrderedMap<ElicitValue>) {
        for (name, field) in self.properties.iter() {
            if !content.contains(name)
                && let Some(default) = field.default_value()
            {
                content.insert(name, default);
            }
        }
    }
}

impl PrimitiveSchema {
    /// Checks the value of a field.
    ///
    /// # Errors
    ///
    /// Returns the reason as the end of a sentence that starts with the field, such as `must be a boolean`.
    pub fn check(&self, value: &ElicitValue) -> Result<(), String> {
        check(self, value).map_err(|fault| fault.to_string())
    }

    /// Returns the default value of the field.
    #[must_use]
    pub fn default_value(&self) -> Option<ElicitValue> {
        match self {
            Self::String(field) => field.default_value.clone().map(ElicitValue::String),
            Self::Number(field) => field.default_value.clone().map(ElicitValue::Number),
            Self::Boolean(field) => field.default_value.map(ElicitValue::Boolean),
            Self::SingleSelect(field) => field.default_value.clone().map(ElicitValue::String),
            Self::LegacyEnum(field) => field.default_value.clone().map(ElicitValue::String),
            Self::TitledSingleSelect(field) => field.default_value.clone().map(ElicitValue::String),
            Self::MultiSelect(field) => field.default_value.clone().map(ElicitValue::Strings),
            Self::TitledMultiSelect(field) => field.default_value.clone().map(ElicitValue::Strings),
        }
    }
}

/// The error of form content that does not match its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidFormContent {
    member: Option<String>,
    fault: Fault,
}

impl InvalidFormContent {
    /// Creates the error of content that matches its schema but cannot be deserialized.
    #[must_use]
    pub fn undecodable(fault: &impl fmt::Display) -> Self {
        Self { member: None, fault: Fault::Undecodable(fault.to_string()) }
    }

    /// Returns the invalid field, if it is known.
    #[must_use]
    pub fn member_name(&self) -> Option<&str> {
        self.member.as_deref()
    }
}

impl fmt::Display for InvalidFormContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.member {
            Some(name) => write!(f, "`{name}` {}", self.fault),
            None => write!(f, "the form content {}", self.fault),
        }
    }
}

impl std::error::Error for InvalidFormContent {}

/// The reason why a field is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Missing,
    Unknown,
    Type(&'static str),
    TooSmall(Number),
    TooLarge(Number),
    TooShort(i64),
    TooLong(i64),
    TooFewChoices(i64),
    TooManyChoices(i64),
    NotAChoice,
    /// The labels of the choices.
    NotOneOf(String),
    Undecodable(String),
}

impl Fault {
    pub(super) fn of(self, name: &str) -> InvalidFormContent {
        InvalidFormContent { member: Some(name.to_owned()), fault: self }
    }
}

/// Displayed as the end of a sentence that starts with the field.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("is missing"),
            Self::Unknown => f.write_str("is not a field of the form"),
            Self::Type(wanted) => write!(f, "must be {wanted}"),
            Self::TooSmall(least) => write!(f, "must be at least {least}"),
            Self::TooLarge(most) => write!(f, "must be at most {most}"),
            Self::TooShort(least) => write!(f, "must have {least} or more characters"),
            Self::TooLong(most) => write!(f, "must have {most} or fewer characters"),
            Self::TooFewChoices(least) => write!(f, "must have {least} or more choices"),
            Self::TooManyChoices(most) => write!(f, "must have {most} or fewer choices"),
            Self::NotAChoice => f.write_str("is not one of the choices"),
            Self::NotOneOf(labels) => write!(f, "must be one of: {labels}"),
            Self::Undecodable(fault) => write!(f, "cannot be decoded: {fault}"),
        }
    }
}

/// Checks a value against the schema of its field.
pub(super) fn check(schema: &PrimitiveSchema, found: &ElicitValue) -> Result<(), Fault> {
    use PrimitiveSchema as P;
    match schema {
        P::String(schema) => {
            let length = count(text(found)?.chars().count());
            within(length, schema.min_length, schema.max_length, Fault::TooShort, Fault::TooLong)
        }
        P::Number(schema) => {
            let ElicitValue::Number(number) = found else { return Err(Fault::Type("a number")) };
            if schema.kind == NumberType::Integer && !is_whole(number) {
                return Err(Fault::Type("an integer"));
            }
            if let Some(minimum) = schema.minimum.as_ref().filter(|minimum| is_less(number, minimum)) {
                return Err(Fault::TooSmall(minimum.clone()));
            }
            if let Some(maximum) = schema.maximum.as_ref().filter(|maximum| is_less(maximum, number)) {
                return Err(Fault::TooLarge(maximum.clone()));
            }
            Ok(())
        }
        P::Boolean(_) if matches!(found, ElicitValue::Boolean(_)) => Ok(()),
        P::Boolean(_) => Err(Fault::Type("a boolean")),
        P::SingleSelect(schema) => choice(text(found)?, &schema.values),
        P::LegacyEnum(schema) => choice(text(found)?, &schema.values),
        P::TitledSingleSelect(schema) => option(text(found)?, &schema.options),
        P::MultiSelect(schema) => {
            let chosen = texts(found)?;
            chosen.iter().try_for_each(|text| choice(text, &schema.items.values))?;
            let number = count(chosen.len());
            within(number, schema.min_items, schema.max_items, Fault::TooFewChoices, Fault::TooManyChoices)
        }
        P::TitledMultiSelect(schema) => {
            let chosen = texts(found)?;
            chosen.iter().try_for_each(|text| option(text, &schema.items.options))?;
            let number = count(chosen.len());
            within(number, schema.min_items, schema.max_items, Fault::TooFewChoices, Fault::TooManyChoices)
        }
    }
}

fn text(found: &ElicitValue) -> Result<&str, Fault> {
    if let ElicitValue::String(text) = found { Ok(text) } else { Err(Fault::Type("a string")) }
}

fn texts(found: &ElicitValue) -> Result<&[String], Fault> {
    if let ElicitValue::Strings(list) = found { Ok(list) } else { Err(Fault::Type("a list of strings")) }
}

fn choice(text: &str, values: &[String]) -> Result<(), Fault> {
    if values.iter().any(|value| value == text) { Ok(()) } else { Err(Fault::NotAChoice) }
}

fn option(text: &str, options: &[EnumOption]) -> Result<(), Fault> {
    if options.iter().any(|option| option.value == text) { Ok(()) } else { Err(Fault::NotAChoice) }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn within(
    number: i64,
    least: Option<i64>,
    most: Option<i64>,
    too_few: fn(i64) -> Fault,
    too_many: fn(i64) -> Fault,
) -> Result<(), Fault> {
    match (least, most) {
        (Some(least), _) if number < least => Err(too_few(least)),
        (_, Some(most)) if number > most => Err(too_many(most)),
        _ => Ok(()),
    }
}

fn is_less(left: &Number, right: &Number) -> bool {
    match (left.as_i64(), right.as_i64()) {
        (Some(left), Some(right)) => left < right,
        _ => left.as_f64() < right.as_f64(),
    }
}

/// In JSON Schema, `5.0` is an integer.
fn is_whole(number: &Number) -> bool {
    number.as_i64().is_some() || number.as_f64().fract() == 0.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        BooleanSchema, LegacyTitledEnumSchema, NumberSchema, StringSchema, TitledItems, TitledMultiSelectEnumSchema,
        TitledSingleSelectEnumSchema, UntitledItems, UntitledMultiSelectEnumSchema, UntitledSingleSelectEnumSchema,
    };

    fn list(items: &[&str]) -> Vec<String> {
        items.iter().map(|item| (*item).to_owned()).collect()
    }

    fn options() -> Vec<EnumOption> {
        vec![EnumOption::new("a", "A"), EnumOption::new("b", "B")]
    }

    fn says(field: impl Into<PrimitiveSchema>, found: impl Into<ElicitValue>) -> String {
        let form = RequestedSchema::new(OrderedMap::new()).field("it", field);
        let content = OrderedMap::from([("it", found.into())]);
        form.check(&content).map_or_else(|fault| fault.to_string(), |()| "fits".to_owned())
    }

    #[test]
    fn texts_have_lengths_in_characters() {
        let field = || StringSchema::default().min_length(2).max_length(3);
        assert_eq!(says(field(), "äö"), "fits");
        assert_eq!(says(field(), "äöü"), "fits");
        assert_eq!(says(field(), "ä"), "`it` must have 2 or more characters");
        assert_eq!(says(field(), "äöüß"), "`it` must have 3 or fewer characters");
        assert_eq!(says(field(), 22), "`it` must be a string");
        assert_eq!(says(field(), list(&["aa"])), "`it` must be a string");
    }

    #[test]
    fn numbers_have_bounds() {
        let field = || NumberSchema::new(NumberType::Number).minimum(-1).maximum(1.5);
        assert_eq!(says(field(), -1), "fits");
        assert_eq!(says(field(), 1.5), "fits");
        assert_eq!(says(field(), -1.01), "`it` must be at least -1");
        assert_eq!(says(field(), 2), "`it` must be at most 1.5");
        assert_eq!(says(field(), "1"), "`it` must be a number");
        let big = || NumberSchema::new(NumberType::Integer).maximum(i64::MAX - 1);
        assert_eq!(says(big(), i64::MAX - 1), "fits");
        assert_eq!(says(big(), i64::MAX), "`it` must be at most 9223372036854775806");
    }

    // covers: EL-24
    #[test]
    fn integers_are_whole() {
        let field = || NumberSchema::new(NumberType::Integer);
        assert_eq!(says(field(), 5), "fits");
        assert_eq!(says(field(), 5.0), "fits");
        assert_eq!(says(field(), Number::from(u64::MAX)), "fits");
        assert_eq!(says(field(), 5.5), "`it` must be an integer");
    }

    #[test]
    fn booleans_are_no_texts() {
        assert_eq!(says(BooleanSchema::default(), false), "fits");
        assert_eq!(says(BooleanSchema::default(), "true"), "`it` must be a boolean");
    }

    #[test]
    fn a_choice_is_one_of_them() {
        let plain = || UntitledSingleSelectEnumSchema::new(list(&["a", "b"]));
        let titled = || TitledSingleSelectEnumSchema::new(options());
        let legacy = || LegacyTitledEnumSchema::new(list(&["a", "b"])).names(list(&["A", "B"]));
        let fields: [&dyn Fn() -> PrimitiveSchema; 3] = [&|| plain().into(), &|| titled().into(), &|| legacy().into()];
        for field in fields {
            assert_eq!(says(field(), "b"), "fits");
            assert_eq!(says(field(), "B"), "`it` is not one of the choices");
            assert_eq!(says(field(), true), "`it` must be a string");
        }
    }

    #[test]
    fn several_choices_are_among_them_and_few_enough() {
        let plain =
            || UntitledMultiSelectEnumSchema::new(UntitledItems::new(list(&["a", "b"]))).min_items(1).max_items(2);
        let titled = || TitledMultiSelectEnumSchema::new(TitledItems::new(options())).min_items(1).max_items(2);
        let fields: [&dyn Fn() -> PrimitiveSchema; 2] = [&|| plain().into(), &|| titled().into()];
        for field in fields {
            assert_eq!(says(field(), list(&["a", "b"])), "fits");
            assert_eq!(says(field(), list(&["a", "c"])), "`it` is not one of the choices");
            assert_eq!(says(field(), list(&[])), "`it` must have 1 or more choices");
            assert_eq!(says(field(), list(&["a", "b", "a"])), "`it` must have 2 or fewer choices");
            assert_eq!(says(field(), "a"), "`it` must be a list of strings");
        }
    }

    #[test]
    fn required_members_are_there_and_others_are_ignored() {
        let form = RequestedSchema::new(OrderedMap::new())
            .field("free", StringSchema::default())
            .required_field("needed", StringSchema::default());
        let fault = form.check(&OrderedMap::from([("free", "x")])).unwrap_err();
        assert_eq!((fault.member_name(), fault.to_string().as_str()), (Some("needed"), "`needed` is missing"));
        assert_eq!(form.check(&OrderedMap::from([("needed", "x"), ("unheard_of", "y")])), Ok(()));
    }

    #[test]
    fn defaults_fill_what_is_missing() {
        let form = RequestedSchema::new(OrderedMap::new())
            .field("text", StringSchema::default().default_value("t"))
            .field("number", NumberSchema::new(NumberType::Integer).default_value(3))
            .field("flag", BooleanSchema::default().default_value(true))
            .field("one", UntitledSingleSelectEnumSchema::new(list(&["a"])).default_value("a"))
            .field("titled", TitledSingleSelectEnumSchema::new(options()).default_value("b"))
            .field("legacy", LegacyTitledEnumSchema::new(list(&["a"])).default_value("a"))
            .field(
                "many",
                UntitledMultiSelectEnumSchema::new(UntitledItems::new(list(&["a"]))).default_value(list(&["a"])),
            )
            .field("labels", TitledMultiSelectEnumSchema::new(TitledItems::new(options())).default_value(list(&[])))
            .field("none", StringSchema::default());
        let mut content = OrderedMap::from([("number", 7)]);
        form.fill_defaults(&mut content);
        let expected =
            r#"{"number":7,"text":"t","flag":true,"one":"a","titled":"b","legacy":"a","many":["a"],"labels":[]}"#;
        assert_eq!(serde_json::to_string(&content).unwrap(), expected);
        assert_eq!(form.check(&content), Ok(()));
    }

    /// A server chooses the size of its form: fields are looked up by an index.
    // covers: SEC-11
    #[test]
    fn sec_11_large_forms_are_filled_in() {
        const MANY: usize = 1_000;
        let mut form = RequestedSchema::new(OrderedMap::new());
        form.properties = (0..MANY)
            .map(|number| (number.to_string(), BooleanSchema::default().default_value(true).into()))
            .collect::<OrderedMap<PrimitiveSchema>>();
        form.required = Some((0..MANY).map(|number| number.to_string()).collect());
        let mut content = OrderedMap::new();
        form.fill_defaults(&mut content);
        assert!(content.is_indexed());
        assert_eq!(content.len(), MANY);
        let content = content.clone();
        assert!(!content.is_indexed());
        assert_eq!(form.check(&content), Ok(()));
        assert!(content.is_indexed());
    }
}
