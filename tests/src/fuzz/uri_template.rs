//! Any template, any values, any address.

use std::collections::BTreeSet;

use mcp_server::UriTemplate;

/// A template is read or refused with a short text; what it matches can be expanded, and then matches again with the same
/// values; and where a template leaves no doubt which character belongs to which variable, matching inverts expanding.
///
/// The lines are the template, an address to match, and values for the variables in their order; the last one goes on for
/// all that have none.
///
/// # Panics
///
/// Panics if one of these promises does not hold.
pub fn uri_template(data: &[u8]) {
    let text = String::from_utf8_lossy(&data[..data.len().min(MOST)]);
    let mut lines = text.split('\n');
    let (template_text, uri) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let values: Vec<&str> = lines.collect();
    let template = match UriTemplate::parse(template_text) {
        Ok(template) => template,
        Err(fault) => {
            let fault = fault.to_string();
            assert!(!fault.is_empty() && fault.len() < 500, "a fault is one short sentence: {fault}");
            return;
        }
    };
    assert_eq!(template.as_str(), template_text, "a template stays as it was written");
    let names: Vec<&str> = template.variables().collect();
    let shape = Shape::of(template_text);
    if let Some(found) = template.matches(uri) {
        assert!(found.iter().all(|(name, _)| names.contains(&name)), "a value has a variable");
        if shape.keeps_values {
            let again = template.expand(|name| found.get(name).map(Into::into));
            assert_eq!(template.matches(&again), Some(found), "{template_text} matches {uri}, but not {again} like it");
        }
    }
    let last = values.last().copied().unwrap_or("value");
    let single_value = |name: &str| {
        let index = names.iter().position(|known| *known == name).unwrap_or_default();
        values.get(index).copied().unwrap_or(last)
    };
    let expanded = template.expand(|name| Some(single_value(name).into()));
    assert!(expanded.bytes().all(|byte| byte.is_ascii_graphic()), "{expanded:?} is no address");
    let found = template.matches(&expanded);
    // Reserved expansion keeps what is encoded already, so that it is decoded when it is matched, if it can be.
    let is_plain = |value: &str| !(value.is_empty() || shape.has_reserved && value.contains('%'));
    if shape.is_clear && names.iter().all(|name| is_plain(single_value(name))) {
        let found = found.unwrap_or_else(|| panic!("{template_text} does not match {expanded}"));
        for name in &names {
            let expected: String = single_value(name).chars().take(shape.longest(name)).collect();
            assert_eq!(found.get(name), Some(expected.as_str()), "{template_text}: {expanded}");
        }
    }
}

/// How much of the input is looked at.
const MOST: usize = 2048;

/// What a template looks like, read in another way than the template itself is.
struct Shape<'a> {
    /// Whether each value goes into the address once, in a form that stands for nothing else.
    keeps_values: bool,
    /// Whether an address says where each value begins and ends.
    is_clear: bool,
    /// Whether reserved characters are expanded as they are.
    has_reserved: bool,
    variables: Vec<&'a str>,
}

impl<'a> Shape<'a> {
    /// Reads a template that is known to be valid.
    fn of(template: &'a str) -> Self {
        let mut shape = Self { keeps_values: true, is_clear: true, has_reserved: false, variables: Vec::new() };
        // The first part precedes all expressions.
        let parts: Vec<&str> = template.split('{').skip(1).collect();
        for (index, part) in parts.iter().enumerate() {
            let (expression, literal) = part.split_once('}').unwrap_or((part, ""));
            let operator = expression.chars().next().filter(|sign| "+#./;?&".contains(*sign));
            let variables = expression.strip_prefix(|sign| Some(sign) == operator).unwrap_or(expression);
            let count = variables.split(',').count();
            let is_last = literal.is_empty() && index + 1 == parts.len();
            shape.variables.extend(variables.split(','));
            shape.has_reserved |= matches!(operator, Some('+' | '#'));
            shape.is_clear &= match operator {
                None | Some('/') => literal.starts_with('/') || is_last,
                Some('.') => count == 1 && (literal.starts_with('/') || is_last),
                Some('+' | '#') => count == 1 && is_last,
                Some(_) => is_last,
            };
            // Names that differ in their encoding alone are the same in an address.
            shape.is_clear &= !expression.contains('%');
        }
        let names: BTreeSet<&str> = shape.variables.iter().map(|variable| name_of(variable)).collect();
        let is_once = names.len() == shape.variables.len();
        shape.keeps_values = is_once && !shape.has_reserved;
        shape.is_clear &= is_once;
        shape
    }

    /// How many characters of a variable's value are expanded.
    fn longest(&self, name: &str) -> usize {
        let variable = self.variables.iter().find(|variable| name_of(variable) == name);
        let prefix = variable.and_then(|variable| variable.split_once(':'));
        prefix.and_then(|(_, length)| length.parse().ok()).unwrap_or(usize::MAX)
    }
}

fn name_of(variable: &str) -> &str {
    variable.split([':', '*']).next().unwrap_or_default()
}
