//! Variables in the texts of a configuration.

/// Replaces `${NAME}` and `${NAME:-DEFAULT}` in one pass. The default counts if the variable is not set or empty.
pub(super) fn expand(text: &str, lookup: &impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        expanded.push_str(before);
        let (reference, after) = after.split_once('}').ok_or("`${` has no `}`")?;
        let (name, default) = match reference.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (reference, None),
        };
        if !is_name(name) {
            return Err("`${...}` must contain the name of an environment variable".to_owned());
        }
        let value = lookup(name).filter(|value| default.is_none() || !value.is_empty());
        match (value, default) {
            (Some(value), _) => expanded.push_str(&value),
            (None, Some(default)) => expanded.push_str(default),
            (None, None) => return Err(format!("the environment variable `{name}` is not set")),
        }
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

fn is_name(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}
