//! What people answered, against the form that they were shown (EL-20).

use std::fmt;

use mcp_types::{ElicitValue, EnumOption, Number, NumberType, OrderedMap, PrimitiveSchema, RequestedSchema};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Checks an accepted answer: required members, types, bounds, lengths and choices.
///
/// Members that the form does not have are ignored. Formats are not checked: the type that the answer is read into
/// knows more about dates and addresses.
///
/// # Errors
///
/// The first member that breaks the form.
pub fn validate(form: &RequestedSchema, content: &OrderedMap<ElicitValue>) -> Result<(), InvalidAnswer> {
    let missing = form.required.iter().flatten().find(|name| !content.contains(name));
    if let Some(name) = missing {
        return Err(Fault::Missing.of(name));
    }
    for (name, schema) in form.properties.iter() {
        if let Some(found) = content.get(name) {
            value(schema, found).map_err(|fault| fault.of(name))?;
        }
    }
    Ok(())
}

/// Fills in the defaults of members that the answer does not have.
pub fn apply_defaults(form: &RequestedSchema, content: &mut OrderedMap<ElicitValue>) {
    for (name, schema) in form.properties.iter() {
        if !content.contains(name)
            && let Some(default) = default_of(schema)
        {
            content.insert(name, default);
        }
    }
}

/// Fills in defaults, checks the answer and reads it as a `T`.
///
/// # Errors
///
/// If the answer breaks the form, or `T` is pickier than its schema said.
pub fn decode<T: DeserializeOwned>(
    form: &RequestedSchema,
    mut content: OrderedMap<ElicitValue>,
) -> Result<T, InvalidAnswer> {
    apply_defaults(form, &mut content);
    validate(form, &content)?;
    for (name, found) in content.iter_mut() {
        if let (Some(PrimitiveSchema::Number(schema)), ElicitValue::Number(number)) = (form.properties.get(name), found)
            && schema.kind == NumberType::Integer
        {
            write_as_integer(number);
        }
    }
    let members = content.into_iter().map(|(name, found)| (name, plain(found))).collect();
    T::deserialize(Value::Object(members))
        .map_err(|fault| InvalidAnswer { member: None, fault: Fault::Unreadable(fault.to_string()) })
}

/// An answer that does not fit the form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidAnswer {
    member: Option<String>,
    fault: Fault,
}

impl InvalidAnswer {
    /// The member at fault, if it is known.
    #[must_use]
    pub fn member_name(&self) -> Option<&str> {
        self.member.as_deref()
    }
}

impl fmt::Display for InvalidAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.member {
            Some(name) => write!(f, "`{name}` {}", self.fault),
            None => write!(f, "the answer {}", self.fault),
        }
    }
}

impl std::error::Error for InvalidAnswer {}

/// Reads as the end of a sentence that starts with the member.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    #[error("is missing")]
    Missing,
    #[error("must be {0}")]
    Type(&'static str),
    #[error("must be at least {0}")]
    TooSmall(Number),
    #[error("must be at most {0}")]
    TooLarge(Number),
    #[error("must have {0} or more characters")]
    TooShort(i64),
    #[error("must have {0} or fewer characters")]
    TooLong(i64),
    #[error("must have {0} or more choices")]
    TooFewChoices(i64),
    #[error("must have {0} or fewer choices")]
    TooManyChoices(i64),
    #[error("is none of the choices")]
    NotAChoice,
    #[error("cannot be read: {0}")]
    Unreadable(String),
}

impl Fault {
    fn of(self, name: &str) -> InvalidAnswer {
        InvalidAnswer { member: Some(name.to_owned()), fault: self }
    }
}

/// Checks one value against its field.
pub(super) fn value(schema: &PrimitiveSchema, found: &ElicitValue) -> Result<(), Fault> {
    use PrimitiveSchema as P;
    match schema {
        P::String(schema) => {
            let length = count(text(found)?.chars().count());
            within(length, schema.min_length, schema.max_length, Fault::TooShort, Fault::TooLong)
        }
        P::Number(schema) => {
            let ElicitValue::Number(number) = found else { return Err(Fault::Type("a number")) };
            if schema.kind == NumberType::Integer && !is_whole(number) {
                return Err(Fault::Type("a whole number"));
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
        _ => Ok(()),
    }
}

/// The value that a field starts with.
pub(super) fn default_of(schema: &PrimitiveSchema) -> Option<ElicitValue> {
    use PrimitiveSchema as P;
    match schema {
        P::String(schema) => schema.default_value.clone().map(ElicitValue::String),
        P::Number(schema) => schema.default_value.clone().map(ElicitValue::Number),
        P::Boolean(schema) => schema.default_value.map(ElicitValue::Boolean),
        P::SingleSelect(schema) => schema.default_value.clone().map(ElicitValue::String),
        P::LegacyEnum(schema) => schema.default_value.clone().map(ElicitValue::String),
        P::TitledSingleSelect(schema) => schema.default_value.clone().map(ElicitValue::String),
        P::MultiSelect(schema) => schema.default_value.clone().map(ElicitValue::Strings),
        P::TitledMultiSelect(schema) => schema.default_value.clone().map(ElicitValue::Strings),
        _ => None,
    }
}

fn text(found: &ElicitValue) -> Result<&str, Fault> {
    if let ElicitValue::String(text) = found { Ok(text) } else { Err(Fault::Type("a text")) }
}

fn texts(found: &ElicitValue) -> Result<&[String], Fault> {
    if let ElicitValue::Strings(list) = found { Ok(list) } else { Err(Fault::Type("a list of texts")) }
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

/// To JSON Schema `5.0` is an integer.
fn is_whole(number: &Number) -> bool {
    number.as_i64().is_some() || number.as_f64().fract() == 0.0
}

/// Turns `5.0` into `5`, which is all that serde takes for an integer.
fn write_as_integer(number: &mut Number) {
    // Whole numbers up to 2^53 are exact in both.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let value = number.as_f64();
    if number.as_i64().is_none() && value.abs() <= EXACT {
        *number = Number::from(value as i64);
    }
}

fn plain(found: ElicitValue) -> Value {
    serde_json::to_value(found).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use mcp_types::{
        BooleanSchema, LegacyTitledEnumSchema, NumberSchema, StringSchema, TitledItems, TitledMultiSelectEnumSchema,
        TitledSingleSelectEnumSchema, UntitledItems, UntitledMultiSelectEnumSchema, UntitledSingleSelectEnumSchema,
    };
    use serde::Deserialize;

    use super::*;

    fn list(items: &[&str]) -> Vec<String> {
        items.iter().map(|item| (*item).to_owned()).collect()
    }

    fn options() -> Vec<EnumOption> {
        vec![EnumOption::new("a", "A"), EnumOption::new("b", "B")]
    }

    fn says(field: impl Into<PrimitiveSchema>, found: impl Into<ElicitValue>) -> String {
        let form = RequestedSchema::new(OrderedMap::new()).field("it", field);
        let content = OrderedMap::from([("it", found.into())]);
        validate(&form, &content).map_or_else(|fault| fault.to_string(), |()| "fits".to_owned())
    }

    #[test]
    fn texts_have_lengths_in_characters() {
        let field = || StringSchema::default().min_length(2).max_length(3);
        assert_eq!(says(field(), "äö"), "fits");
        assert_eq!(says(field(), "äöü"), "fits");
        assert_eq!(says(field(), "ä"), "`it` must have 2 or more characters");
        assert_eq!(says(field(), "äöüß"), "`it` must have 3 or fewer characters");
        assert_eq!(says(field(), 22), "`it` must be a text");
        assert_eq!(says(field(), list(&["aa"])), "`it` must be a text");
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

    /// EL-24
    #[test]
    fn integers_are_whole() {
        let field = || NumberSchema::new(NumberType::Integer);
        assert_eq!(says(field(), 5), "fits");
        assert_eq!(says(field(), 5.0), "fits");
        assert_eq!(says(field(), Number::from(u64::MAX)), "fits");
        assert_eq!(says(field(), 5.5), "`it` must be a whole number");
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
            assert_eq!(says(field(), "B"), "`it` is none of the choices");
            assert_eq!(says(field(), true), "`it` must be a text");
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
            assert_eq!(says(field(), list(&["a", "c"])), "`it` is none of the choices");
            assert_eq!(says(field(), list(&[])), "`it` must have 1 or more choices");
            assert_eq!(says(field(), list(&["a", "b", "a"])), "`it` must have 2 or fewer choices");
            assert_eq!(says(field(), "a"), "`it` must be a list of texts");
        }
    }

    #[test]
    fn required_members_are_there_and_others_are_ignored() {
        let form = RequestedSchema::new(OrderedMap::new())
            .field("free", StringSchema::default())
            .required_field("needed", StringSchema::default());
        let fault = validate(&form, &OrderedMap::from([("free", "x")])).unwrap_err();
        assert_eq!((fault.member_name(), fault.to_string().as_str()), (Some("needed"), "`needed` is missing"));
        assert_eq!(validate(&form, &OrderedMap::from([("needed", "x"), ("unheard_of", "y")])), Ok(()));
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
        apply_defaults(&form, &mut content);
        let expected =
            r#"{"number":7,"text":"t","flag":true,"one":"a","titled":"b","legacy":"a","many":["a"],"labels":[]}"#;
        assert_eq!(serde_json::to_string(&content).unwrap(), expected);
        assert_eq!(validate(&form, &content), Ok(()));
    }

    #[test]
    fn answers_become_values() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct Answer {
            count: u8,
            ratio: f64,
            name: String,
        }
        let form = RequestedSchema::new(OrderedMap::new())
            .required_field("count", NumberSchema::new(NumberType::Integer))
            .required_field("ratio", NumberSchema::new(NumberType::Number))
            .field("name", StringSchema::default().default_value("nobody"));
        let content = |count: f64| OrderedMap::from([("count", count), ("ratio", 2.0)]);
        assert_eq!(decode(&form, content(5.0)), Ok(Answer { count: 5, ratio: 2.0, name: "nobody".to_owned() }));
        let fault = decode::<Answer>(&form, content(5.5)).unwrap_err();
        assert_eq!(fault.to_string(), "`count` must be a whole number");
        let fault = decode::<Answer>(&form, content(256.0)).unwrap_err();
        assert_eq!(fault.to_string(), "the answer cannot be read: invalid value: integer `256`, expected u8");
        assert_eq!(fault.member_name(), None);
    }
}
