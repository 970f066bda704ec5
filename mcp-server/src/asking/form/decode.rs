//! Decodes the values of forms into Rust types.

use mcp_types::{ElicitValue, InvalidFormContent, Number, NumberType, OrderedMap, PrimitiveSchema, RequestedSchema};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Fills in defaults, validates the values, and decodes them as a `T`.
///
/// # Errors
///
/// Returns an error if the values do not fit the form, or if `T` does not accept what its schema allows.
pub fn decode<T: DeserializeOwned>(
    form: &RequestedSchema,
    mut content: OrderedMap<ElicitValue>,
) -> Result<T, InvalidFormContent> {
    form.fill_defaults(&mut content);
    form.check(&content)?;
    for (name, found) in content.iter_mut() {
        if let (Some(PrimitiveSchema::Number(schema)), ElicitValue::Number(number)) = (form.properties.get(name), found)
            && schema.kind == NumberType::Integer
        {
            write_as_integer(number);
        }
    }
    let members = content.into_iter().map(|(name, found)| (name, to_json(found))).collect();
    T::deserialize(Value::Object(members)).map_err(|fault| InvalidFormContent::undecodable(&fault))
}

/// Turns `5.0` into `5`, which is all that serde takes for an integer.
fn write_as_integer(number: &mut Number) {
    // Whole numbers up to 2^53 are exact in both.
    const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;
    let value = number.as_f64();
    if number.as_i64().is_none() && value.abs() <= MAX_EXACT_INTEGER {
        *number = Number::from(value as i64);
    }
}

fn to_json(found: ElicitValue) -> Value {
    serde_json::to_value(found).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use mcp_types::{NumberSchema, StringSchema};
    use serde::Deserialize;

    use super::*;

    #[test]
    fn content_becomes_values() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct Person {
            count: u8,
            ratio: f64,
            name: String,
        }
        let form = RequestedSchema::new(OrderedMap::new())
            .required_field("count", NumberSchema::new(NumberType::Integer))
            .required_field("ratio", NumberSchema::new(NumberType::Number))
            .field("name", StringSchema::default().default_value("nobody"));
        let content = |count: f64| OrderedMap::from([("count", count), ("ratio", 2.0)]);
        assert_eq!(decode(&form, content(5.0)), Ok(Person { count: 5, ratio: 2.0, name: "nobody".to_owned() }));
        let fault = decode::<Person>(&form, content(5.5)).unwrap_err();
        assert_eq!(fault.to_string(), "`count` must be an integer");
        let fault = decode::<Person>(&form, content(256.0)).unwrap_err();
        assert_eq!(fault.to_string(), "the form content cannot be decoded: invalid value: integer `256`, expected u8");
    }
}
