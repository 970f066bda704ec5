//! The values of variables in a URI.

use serde::de::DeserializeOwned;

use crate::handlers::text_values::{self, InvalidText};

/// The variables of a [`UriTemplate`](super::UriTemplate) with their decoded values, in the order of the template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UriVariables {
    pairs: Vec<(String, String)>,
}

impl UriVariables {
    pub(super) fn new(pairs: Vec<(String, String)>) -> Self {
        Self { pairs }
    }

    /// Returns the value of a variable; optional parameters may have none.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Returns the variables that have a value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Decodes the variables as the fields of a `T`: numbers and booleans are parsed, enums are selected by name, and an
    /// `Option` is `None` for an absent parameter.
    ///
    /// # Errors
    ///
    /// Returns an error with the name of the variable if a value is missing or does not fit its field.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, InvalidText> {
        text_values::decode(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use crate::uri_template::UriTemplate;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Query {
        owner: String,
        id: u32,
        page: Option<u8>,
        #[serde(default)]
        raw: bool,
    }

    #[test]
    fn variables_become_fields() {
        let template = UriTemplate::parse("db://{owner}/{id}{?page,raw}").unwrap();
        let found = template.matches("db://J%C3%B6rg/7?raw=true").unwrap();
        assert_eq!(found.iter().collect::<Vec<_>>(), [("owner", "Jörg"), ("id", "7"), ("raw", "true")]);
        let query: Query = found.decode().unwrap();
        assert_eq!(query, Query { owner: "Jörg".to_owned(), id: 7, page: None, raw: true });

        let fault = template.matches("db://x/7?page=many").unwrap().decode::<Query>().unwrap_err();
        assert_eq!(fault.name(), Some("page"));
        assert_eq!(fault.to_string(), "`page`: `many` is not a whole number from 0 to 255");
    }
}
