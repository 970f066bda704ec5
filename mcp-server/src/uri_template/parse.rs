//! The grammar of templates (RFC 6570, section 2).

use super::operator::Operator;
use super::token::{TRIPLET, encoded_byte};
use super::{Expression, Modifier, Part, Variable};

/// The error of parsing a URI template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault}, at byte {at} of the template")]
pub struct InvalidTemplate {
    at: usize,
    fault: Fault,
}

impl InvalidTemplate {
    /// Returns the position of the fault, in bytes from the start of the template.
    #[must_use]
    pub fn position(&self) -> usize {
        self.at
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Fault {
    #[error("`{{` is not closed")]
    Unclosed,
    #[error("`}}` closes nothing")]
    Unopened,
    #[error("`{0}` is not allowed outside of braces")]
    Literal(char),
    #[error("`%` is not followed by two hexadecimal digits")]
    Percent,
    #[error("the operator `{0}` is reserved for later use")]
    ReservedOperator(char),
    #[error("a variable needs a name")]
    MissingName,
    #[error("`{0}` is not allowed in the name of a variable")]
    Name(char),
    #[error("a prefix is a number from 1 to 9999")]
    Prefix,
}

impl Fault {
    fn at(self, at: usize) -> InvalidTemplate {
        InvalidTemplate { at, fault: self }
    }
}

pub(super) fn parts(text: &str) -> Result<Vec<Part>, InvalidTemplate> {
    let mut parts = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if let Some(inside) = rest.strip_prefix('{') {
            let length = inside.find(['{', '}']).filter(|end| inside[*end..].starts_with('}'));
            let length = length.ok_or_else(|| Fault::Unclosed.at(at))?;
            parts.push(Part::Expression(expression(&inside[..length], at + 1)?));
            at += length + 2;
        } else {
            let length = rest.find('{').unwrap_or(rest.len());
            check_literal(&rest[..length], at)?;
            parts.push(Part::Literal(rest[..length].to_owned()));
            at += length;
        }
    }
    Ok(parts)
}

fn check_literal(literal: &str, start: usize) -> Result<(), InvalidTemplate> {
    for (at, character) in literal.char_indices() {
        let fault = match character {
            '%' if encoded_byte(&literal.as_bytes()[at..]).is_some() => continue,
            '%' => Fault::Percent,
            '}' => Fault::Unopened,
            ' ' | '"' | '<' | '>' | '\\' | '^' | '`' | '|' => Fault::Literal(character),
            _ if character.is_control() => Fault::Literal(character),
            _ => continue,
        };
        return Err(fault.at(start + at));
    }
    Ok(())
}

fn expression(text: &str, start: usize) -> Result<Expression, InvalidTemplate> {
    let sign = text.chars().next().ok_or_else(|| Fault::MissingName.at(start))?;
    if "=,!@|".contains(sign) {
        return Err(Fault::ReservedOperator(sign).at(start));
    }
    let operator = Operator::of(sign);
    let mut at = start + usize::from(operator.is_some());
    let mut variables = Vec::new();
    for spec in text[at - start..].split(',') {
        variables.push(variable(spec, at)?);
        at += spec.len() + 1;
    }
    Ok(Expression { operator: operator.unwrap_or(Operator::Simple), variables })
}

fn variable(spec: &str, start: usize) -> Result<Variable, InvalidTemplate> {
    let (name, modifier) = if let Some(name) = spec.strip_suffix('*') {
        (name, Modifier::Explode)
    } else if let Some((name, length)) = spec.split_once(':') {
        (name, Modifier::Prefix(prefix(length).ok_or_else(|| Fault::Prefix.at(start + name.len() + 1))?))
    } else {
        (spec, Modifier::Whole)
    };
    check_name(name, start)?;
    Ok(Variable { name: name.to_owned(), modifier })
}

fn prefix(digits: &str) -> Option<usize> {
    let is_number = digits.len() <= 4 && digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    digits.parse().ok().filter(|_| is_number)
}

/// Accepts letters, digits, `_` and encoded bytes, and dots between them.
fn check_name(name: &str, start: usize) -> Result<(), InvalidTemplate> {
    if name.is_empty() {
        return Err(Fault::MissingName.at(start));
    }
    let mut at = 0;
    let mut after_dot = true;
    while let Some(character) = name[at..].chars().next() {
        let is_dot = character == '.';
        let length = match character {
            '%' => encoded_byte(&name.as_bytes()[at..]).map(|_| TRIPLET).ok_or(Fault::Percent),
            '.' if after_dot || at + 1 == name.len() => Err(Fault::Name(character)),
            '.' | '_' => Ok(1),
            _ if character.is_ascii_alphanumeric() => Ok(1),
            _ => Err(Fault::Name(character)),
        };
        at += length.map_err(|fault| fault.at(start + at))?;
        after_dot = is_dot;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str, at: usize, says: &str) {
        let fault = parts(text).unwrap_err();
        assert_eq!(fault.to_string(), format!("{says}, at byte {at} of the template"), "{text}");
        assert_eq!(fault.position(), at);
    }

    #[test]
    fn operators_and_modifiers_are_recognised() {
        let signs =
            [("", "Simple"), ("+", "Reserved"), ("#", "Fragment"), (".", "Label"), ("/", "Path"), (";", "Parameter")];
        for (sign, name) in signs.into_iter().chain([("?", "Query"), ("&", "Continuation")]) {
            let parts = parts(&format!("x{{{sign}a.b,c_1:3,%41*}}")).unwrap();
            let [Part::Literal(literal), Part::Expression(expression)] = &parts[..] else { panic!("{parts:?}") };
            assert_eq!(literal, "x");
            assert_eq!(format!("{:?}", expression.operator), name);
            let variables: Vec<_> =
                expression.variables.iter().map(|found| (found.name.as_str(), found.modifier)).collect();
            let expected = [("a.b", Modifier::Whole), ("c_1", Modifier::Prefix(3)), ("%41", Modifier::Explode)];
            assert_eq!(variables, expected);
        }
        assert_eq!(parts("").unwrap(), []);
        assert_eq!(parts("é'%20").unwrap(), [Part::Literal("é'%20".to_owned())]);
    }

    #[test]
    fn faults_say_what_and_where() {
        refused("ab{c", 2, "`{` is not closed");
        refused("{a{b}}", 0, "`{` is not closed");
        refused("é}", 2, "`}` closes nothing");
        refused("a b", 1, "` ` is not allowed outside of braces");
        refused("é\u{7f}", 2, "`\u{7f}` is not allowed outside of braces");
        refused("ab%4", 2, "`%` is not followed by two hexadecimal digits");
        refused("{}", 1, "a variable needs a name");
        refused("{?}", 2, "a variable needs a name");
        refused("{?a,}", 4, "a variable needs a name");
        refused("{*}", 1, "a variable needs a name");
        refused("{:3}", 1, "a variable needs a name");
        refused("x{=a}", 2, "the operator `=` is reserved for later use");
        refused("{|a}", 1, "the operator `|` is reserved for later use");
        refused("{a,b-c}", 4, "`-` is not allowed in the name of a variable");
        refused("{a b}", 2, "` ` is not allowed in the name of a variable");
        refused("{a..b}", 3, "`.` is not allowed in the name of a variable");
        refused("{a.}", 2, "`.` is not allowed in the name of a variable");
        refused("{é}", 1, "`é` is not allowed in the name of a variable");
        refused("{a*b}", 2, "`*` is not allowed in the name of a variable");
        refused("{a:3*}", 2, "`:` is not allowed in the name of a variable");
        refused("{a%4}", 2, "`%` is not followed by two hexadecimal digits");
        for length in ["", "0", "10000", "-1", "+1", "x", "01"] {
            refused(&format!("{{a:{length}}}"), 3, "a prefix is a number from 1 to 9999");
        }
    }
}
