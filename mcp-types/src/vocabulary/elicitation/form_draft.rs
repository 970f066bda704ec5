//! Forms that a terminal or a page fills in, field by field.

use std::collections::BTreeSet;

use super::field::{FieldChoice, FieldKind, parse};
use super::form_content::{Fault, InvalidFormContent, check};
use crate::{ElicitValue, OrderedMap, PrimitiveSchema, RequestedSchema};

/// A form that is being filled in.
///
/// # Examples
///
/// ```
/// use mcp_types::{BooleanSchema, ElicitResult, FormDraft, NumberSchema, NumberType, RequestedSchema};
///
/// let schema = RequestedSchema::new(Default::default())
///     .required_field("guests", NumberSchema::new(NumberType::Integer).title("Number of guests").maximum(8))
///     .field("vegetarian", BooleanSchema::default().default_value(false));
///
/// let mut draft = FormDraft::new(&schema);
/// for field in draft.fields() {
///     println!("{}{}", field.label(), if field.is_required { " (required)" } else { "" });
/// }
/// assert_eq!(draft.enter("guests", "20").unwrap_err().to_string(), "`guests` must be at most 8");
/// draft.enter("guests", "4")?;
/// draft.enter("vegetarian", "")?; // The default.
/// let result = ElicitResult::accepted(draft.finish()?);
/// # assert_eq!(serde_json::to_string(&result.content).unwrap(), r#"{"guests":4,"vegetarian":false}"#);
/// # Ok::<_, mcp_types::InvalidFormContent>(())
/// ```
#[derive(Clone, Debug)]
pub struct FormDraft<'a> {
    schema: &'a RequestedSchema,
    required: BTreeSet<&'a str>,
    content: OrderedMap<ElicitValue>,
}

/// A field of a form, with all that is needed to show it. Its texts are the server's: escape them where they are shown.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FormField<'a> {
    /// The name of the field, unique in the form.
    pub name: &'a str,
    /// The label of the field.
    pub title: Option<&'a str>,
    /// The description of the field.
    pub description: Option<&'a str>,
    /// The kind of the field.
    pub kind: FieldKind,
    /// Whether the field needs a value.
    pub is_required: bool,
    /// The value of the field if none is entered.
    pub default_value: Option<ElicitValue>,
    /// The choices in display order; none if the field is not a choice.
    pub choices: Vec<FieldChoice<'a>>,
    /// The schema of the field, with its limits.
    pub schema: &'a PrimitiveSchema,
}

impl FormField<'_> {
    /// Returns the title of the field, or its name.
    #[must_use]
    pub fn label(&self) -> &str {
        self.title.unwrap_or(self.name)
    }
}

impl<'a> FormDraft<'a> {
    /// Creates an empty draft of a form.
    #[must_use]
    pub fn new(schema: &'a RequestedSchema) -> Self {
        let required = schema.required.iter().flatten().map(String::as_str).collect();
        Self { schema, required, content: OrderedMap::new() }
    }

    /// Returns the fields in display order.
    pub fn fields(&self) -> impl Iterator<Item = FormField<'a>> + use<'a> {
        let required = self.required.clone();
        self.schema.properties.iter().map(move |(name, schema)| FormField {
            name,
            title: schema.title(),
            description: schema.description(),
            kind: schema.kind(),
            is_required: required.contains(name),
            default_value: schema.default_value(),
            choices: schema.choices(),
            schema,
        })
    }

    /// Sets the value of a field from text that a user entered, as [`PrimitiveSchema::parse`] reads it. Empty text removes
    /// the value, so that the field has its default.
    ///
    /// # Errors
    ///
    /// Returns an error, and changes nothing, if the text is not a value of the field, if it is empty and the field is
    /// required and has no default, or if the form has no such field.
    pub fn enter(&mut self, name: &str, text: &str) -> Result<(), InvalidFormContent> {
        let field = self.field(name)?;
        if text.is_empty() {
            if self.required.contains(name) && field.default_value().is_none() {
                return Err(Fault::Missing.of(name));
            }
            self.content.remove(name);
            return Ok(());
        }
        let value = parse(field, text).map_err(|fault| fault.of(name))?;
        self.content.insert(name, value);
        Ok(())
    }

    /// Sets the value of a field.
    ///
    /// # Errors
    ///
    /// Returns an error, and changes nothing, if the value does not match the field, or if the form has no such field.
    pub fn set(&mut self, name: &str, value: impl Into<ElicitValue>) -> Result<(), InvalidFormContent> {
        let value = value.into();
        check(self.field(name)?, &value).map_err(|fault| fault.of(name))?;
        self.content.insert(name, value);
        Ok(())
    }

    /// Returns the value that was set for a field.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&ElicitValue> {
        self.content.get(name)
    }

    /// Adds the defaults of the other fields, and returns the content for
    /// [`ElicitResult::accepted`](crate::ElicitResult::accepted).
    ///
    /// # Errors
    ///
    /// Returns an error for the first required field without a value or a default, or with an invalid default.
    pub fn finish(mut self) -> Result<OrderedMap<ElicitValue>, InvalidFormContent> {
        self.schema.fill_defaults(&mut self.content);
        self.schema.check(&self.content)?;
        Ok(self.content)
    }

    fn field(&self, name: &str) -> Result<&'a PrimitiveSchema, InvalidFormContent> {
        self.schema.properties.get(name).ok_or_else(|| Fault::Unknown.of(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BooleanSchema, NumberSchema, NumberType, StringSchema, UntitledSingleSelectEnumSchema};

    fn schema() -> RequestedSchema {
        let sizes = ["small", "large"].map(str::to_owned).to_vec();
        RequestedSchema::new(OrderedMap::new())
            .required_field("name", StringSchema::default().title("Your name"))
            .field("size", UntitledSingleSelectEnumSchema::new(sizes).default_value("large"))
            .required_field("agree", BooleanSchema::default().description("The terms").default_value(true))
            .field("age", NumberSchema::new(NumberType::Integer).minimum(18))
    }

    /// A form can be walked: fields in order, with all that is shown.
    // covers: GW-10
    #[test]
    fn gw_10_forms_are_walked() {
        let schema = schema();
        let fields: Vec<_> = FormDraft::new(&schema).fields().collect();
        let shown: Vec<_> = fields.iter().map(|field| (field.label(), field.kind, field.is_required)).collect();
        assert_eq!(
            shown,
            [
                ("Your name", FieldKind::Text, true),
                ("size", FieldKind::OneChoice, false),
                ("agree", FieldKind::Boolean, true),
                ("age", FieldKind::Integer, false),
            ]
        );
        assert_eq!(fields[1].choices.len(), 2);
        assert_eq!((fields[1].default_value.clone(), fields[2].description), (Some("large".into()), Some("The terms")));
    }

    /// What is entered is checked at once, and what is left empty has its default.
    // covers: GW-10
    #[test]
    fn gw_10_forms_are_filled_in() {
        let schema = schema();
        let mut draft = FormDraft::new(&schema);
        let fault = |result: Result<(), InvalidFormContent>| result.unwrap_err().to_string();
        assert_eq!(fault(draft.enter("name", "")), "`name` is missing");
        assert_eq!(fault(draft.enter("age", "17")), "`age` must be at least 18");
        assert_eq!(fault(draft.enter("other", "1")), "`other` is not a field of the form");
        assert_eq!(fault(draft.set("agree", "yes")), "`agree` must be a boolean");
        assert_eq!(draft.clone().finish().unwrap_err().to_string(), "`name` is missing");
        draft.enter("name", "Ada").unwrap();
        draft.enter("size", "small").unwrap();
        draft.enter("size", "").unwrap();
        draft.enter("agree", "").unwrap();
        draft.set("age", 36).unwrap();
        assert_eq!((draft.get("age"), draft.get("size")), (Some(&36.into()), None));
        let content = draft.finish().unwrap();
        assert_eq!(serde_json::to_string(&content).unwrap(), r#"{"name":"Ada","age":36,"size":"large","agree":true}"#);
    }
}
