//! Rust names for wire names.

/// The field name of a member. Keywords and JSON Schema's vocabulary get names that say what they hold.
// CG-11
pub(crate) fn member(wire: &str) -> String {
    match wire {
        "_meta" => "meta".to_owned(),
        "$schema" => "dialect".to_owned(),
        "type" => "kind".to_owned(),
        "ref" => "reference".to_owned(),
        "enum" => "values".to_owned(),
        "enumNames" => "names".to_owned(),
        "const" => "value".to_owned(),
        "oneOf" | "anyOf" => "options".to_owned(),
        // A setter called `default` would hide `Default::default`.
        "default" => "default_value".to_owned(),
        _ => words(wire.rsplit('/').next().unwrap_or(wire)).join("_"),
    }
}

/// The name of an associated constant.
pub(crate) fn constant(wire: &str) -> String {
    words(wire).join("_").to_ascii_uppercase()
}

/// The name of an enum variant.
pub(crate) fn variant(wire: &str) -> String {
    words(wire)
        .iter()
        .map(|word| {
            let mut letters = word.chars();
            letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect::<String>()
        })
        .collect()
}

/// Lower-case words of a name in camel case, snake case or with slashes.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for letter in name.chars() {
        if !letter.is_ascii_alphanumeric() {
            words.push(String::new());
            continue;
        }
        if letter.is_ascii_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(letter.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_rust_conventions() {
        assert_eq!(member("io.modelcontextprotocol/clientInfo"), "client_info");
        assert_eq!(member("ttlMs"), "ttl_ms");
        assert_eq!(member("_meta"), "meta");
        assert_eq!(constant("sampling/createMessage"), "SAMPLING_CREATE_MESSAGE");
        assert_eq!(constant("date-time"), "DATE_TIME");
        assert_eq!(variant("input_required"), "InputRequired");
        assert_eq!(variant("thisServer"), "ThisServer");
    }
}
