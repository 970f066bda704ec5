//! Matches a URI and extracts the values of variables.
//!
//! The pattern is a list of atoms, each of which matches a part of the URI. The first pass goes from right to left, and finds
//! for every atom the positions at which it may start so that the rest matches. The second pass goes from left to right and
//! takes the longest match of each atom, without backtracking. Both take time proportional to the length of the URI for each
//! atom.

use super::named_parameters::{NamedParameter, Pair, chain_ends, value_ends};
use super::operator::Operator;
use super::token::Token;
use super::{Expression, Modifier, Part, Variable};

/// A compiled template.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    atoms: Vec<Atom>,
    variables: usize,
}

#[derive(Clone, Debug)]
enum Atom {
    Literal(Vec<Token>),
    /// One value, identified by its position.
    Positional {
        variable: usize,
        operator: Operator,
        modifier: Modifier,
    },
    /// Values that are identified by their names; all may be absent.
    Named {
        operator: Operator,
        parameters: Vec<NamedParameter>,
    },
}

impl Pattern {
    /// Compiles a template. Variables are numbered by their position in `names`.
    pub(super) fn new(parts: &[Part], names: &[String]) -> Self {
        let number = |variable: &Variable| {
            names.iter().position(|name| *name == variable.name).expect("names has every variable of parts")
        };
        let mut pattern = Self { atoms: Vec::new(), variables: names.len() };
        for part in parts {
            match part {
                Part::Literal(literal) => pattern.literal(Token::all(literal)),
                Part::Expression(Expression { operator, variables }) if operator.is_named() => {
                    let parameters = variables.iter().map(|variable| NamedParameter {
                        variable: number(variable),
                        name: Token::all(&variable.name),
                        modifier: variable.modifier,
                    });
                    pattern.atoms.push(Atom::Named { operator: *operator, parameters: parameters.collect() });
                }
                Part::Expression(Expression { operator, variables }) => {
                    for (index, variable) in variables.iter().enumerate() {
                        let sign = if index == 0 { operator.lead() } else { Some(operator.separator()) };
                        pattern.literal(sign.map(Token::Plain).into_iter().collect());
                        let (operator, modifier) = (*operator, variable.modifier);
                        pattern.atoms.push(Atom::Positional { variable: number(variable), operator, modifier });
                    }
                }
            }
        }
        pattern
    }

    fn literal(&mut self, tokens: Vec<Token>) {
        if let Some(Atom::Literal(before)) = self.atoms.last_mut() {
            before.extend(tokens);
        } else if !tokens.is_empty() {
            self.atoms.push(Atom::Literal(tokens));
        }
    }

    /// Returns the decoded values by the numbers of the variables, if the URI matches.
    pub(super) fn matches(&self, uri: &str) -> Option<Vec<Option<String>>> {
        // Most templates of a server differ in how they begin, so that is compared first.
        if let Some(Atom::Literal(start)) = self.atoms.first()
            && !Token::each(uri).take(start.len()).eq(start.iter().copied())
        {
            return None;
        }
        let uri = Token::all(uri);
        let starts = self.starts(&uri);
        if !starts[0][0] {
            return None;
        }
        let mut values = Values(vec![None; self.variables]);
        let mut at = 0;
        for (atom, next) in self.atoms.iter().zip(&starts[1..]) {
            at = atom.walk(&uri, at, next, &mut values)?;
        }
        Some(values.0.into_iter().map(|value| Some(value?.text)).collect())
    }

    /// Returns for each atom, and for the end, the positions at which it may start.
    fn starts(&self, uri: &[Token]) -> Vec<Vec<bool>> {
        let mut end = vec![false; uri.len() + 1];
        end[uri.len()] = true;
        let mut starts = vec![end];
        for atom in self.atoms.iter().rev() {
            let next = starts.last().expect("never empty");
            starts.push(atom.starts(uri, next));
        }
        starts.reverse();
        starts
    }
}

impl Atom {
    /// Returns the positions at which this atom may start, if the next may start at `next`.
    fn starts(&self, uri: &[Token], next: &[bool]) -> Vec<bool> {
        match self {
            Self::Literal(tokens) => (0..=uri.len())
                .map(|at| next.get(at + tokens.len()) == Some(&true) && uri[at..].starts_with(tokens))
                .collect(),
            Self::Positional { operator, modifier, .. } => {
                let mut starts = vec![false; uri.len() + 1];
                let mut nearest_end = None;
                for at in (0..uri.len()).rev() {
                    nearest_end = if !accepts(*operator, *modifier, uri[at]) {
                        None
                    } else if next[at + 1] {
                        Some(at + 1)
                    } else {
                        nearest_end
                    };
                    starts[at] = nearest_end.is_some_and(|end| end - at <= modifier.max_chars());
                }
                starts
            }
            Self::Named { operator, parameters } => {
                let mut starts = next.to_vec();
                for (at, end) in chain_ends(uri, *operator, parameters).into_iter().enumerate() {
                    starts[at] |= end.is_some_and(|end| next[end]);
                }
                starts
            }
        }
    }

    /// Extracts the values of this atom; returns its end, where the next one may start.
    fn walk(&self, uri: &[Token], at: usize, next: &[bool], values: &mut Values) -> Option<usize> {
        match self {
            Self::Literal(tokens) => Some(at + tokens.len()),
            Self::Positional { variable, operator, modifier } => {
                let taken = uri[at..].iter().take(modifier.max_chars());
                let longest = taken.take_while(|token| accepts(*operator, *modifier, **token)).count();
                let end = (at + 1..=at + longest).rev().find(|end| next[*end])?;
                values.set(*variable, &uri[at..end], *modifier)?;
                Some(end)
            }
            Self::Named { operator, parameters } => {
                let Some(end) = chain_ends(uri, *operator, parameters)[at].filter(|end| next[*end]) else {
                    return Some(at);
                };
                let value_ends = value_ends(uri, *operator);
                let mut at = at;
                let mut lists = vec![None::<String>; parameters.len()];
                while at < end {
                    let pair = Pair::read(uri, at, parameters, &value_ends)?;
                    let parameter = &parameters[pair.parameter];
                    if parameter.modifier == Modifier::Explode {
                        let item = Token::decode(&uri[pair.value..pair.end]);
                        let list = &mut lists[pair.parameter];
                        *list = Some(list.take().map_or_else(|| item.clone(), |before| before + "," + &item));
                    } else {
                        values.set(parameter.variable, &uri[pair.value..pair.end], parameter.modifier)?;
                    }
                    at = pair.end;
                }
                for (parameter, list) in parameters.iter().zip(lists) {
                    if let Some(list) = list {
                        values.set_text(parameter.variable, list, parameter.modifier)?;
                    }
                }
                Some(end)
            }
        }
    }
}

fn accepts(operator: Operator, modifier: Modifier, token: Token) -> bool {
    operator.accepts(token) || (modifier == Modifier::Explode && token == Token::Plain(operator.separator()))
}

/// The values that were found, by the numbers of the variables.
struct Values(Vec<Option<Value>>);

#[derive(Clone)]
struct Value {
    text: String,
    is_prefix: bool,
}

impl Values {
    fn set(&mut self, variable: usize, tokens: &[Token], modifier: Modifier) -> Option<()> {
        self.set_text(variable, Token::decode(tokens), modifier)
    }

    /// Sets a value, unless the variable has a different one.
    fn set_text(&mut self, variable: usize, text: String, modifier: Modifier) -> Option<()> {
        let is_prefix = matches!(modifier, Modifier::Prefix(_));
        let agrees = match &self.0[variable] {
            None => true,
            Some(known) if known.is_prefix && text.starts_with(&known.text) => true,
            Some(known) if is_prefix && known.text.starts_with(&text) => return Some(()),
            Some(known) => known.text == text,
        };
        agrees.then(|| self.0[variable] = Some(Value { text, is_prefix }))
    }
}

#[cfg(test)]
mod tests {
    use crate::uri_template::UriTemplate;

    fn found(template: &str, uri: &str) -> Option<Vec<(String, String)>> {
        let found = UriTemplate::parse(template).unwrap().matches(uri)?;
        Some(found.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// A template, a URI, and the variables that are found.
    type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

    fn matches(cases: &[Case<'_>]) {
        for (template, uri, expected) in cases {
            let expected = expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            assert_eq!(found(template, uri), Some(expected), "{template} {uri}");
        }
    }

    fn refuses(cases: &[(&str, &str)]) {
        for (template, uri) in cases {
            assert_eq!(found(template, uri), None, "{template} {uri}");
        }
    }

    #[test]
    fn literals() {
        matches(&[("", "", &[]), ("a://b", "a://b", &[]), ("a://é%2f", "a://%c3%A9%2F", &[]), ("/%7Ea", "/~a", &[])]);
        refuses(&[("", "x"), ("a", ""), ("a", "ab"), ("a", "A"), ("a/b", "a%2Fb"), ("a%2Fb", "a/b")]);
    }

    #[test]
    fn simple() {
        matches(&[
            ("x://{a}", "x://1", &[("a", "1")]),
            ("x://{a}/y", "x://-._~/y", &[("a", "-._~")]),
            ("{a}", "%2F%20%C3%A9", &[("a", "/ é")]),
            ("{a}", "é日", &[("a", "é日")]),
            ("{a,b}", "1,2", &[("a", "1"), ("b", "2")]),
            ("{a*}", "1,2", &[("a", "1,2")]),
        ]);
        refuses(&[
            ("x://{a}", "x://"),
            ("{a}", "a/b"),
            ("{a}", "a?b"),
            ("{a}", "a#b"),
            ("{a}", "a b"),
            ("{a}", "a\"b"),
            ("{a}", "a%"),
            ("{a}", "a%zz"),
            ("{a}", "a%00%FF"),
            ("{a}", "%C3"),
            ("{a,b}", "1"),
            ("{a,b}", "1,2,3"),
        ]);
    }

    #[test]
    fn reserved_and_fragment() {
        matches(&[
            ("file://{+path}", "file:///a/b?c#d%20e", &[("path", "/a/b?c#d e")]),
            ("{+dir}/{name}", "a/b/c", &[("dir", "a/b"), ("name", "c")]),
            ("x{#a}", "x#b/c?", &[("a", "b/c?")]),
            ("{#a,b}", "#1,2", &[("a", "1"), ("b", "2")]),
        ]);
        refuses(&[("file://{+path}", "file://"), ("{+a}", "a b"), ("{+a}", "a%FF"), ("x{#a}", "x"), ("x{#a}", "x#")]);
    }

    #[test]
    fn label_and_path() {
        matches(&[
            ("x{.a}", "x.tar.gz", &[("a", "tar.gz")]),
            ("x{.a,b}", "x.tar.gz", &[("a", "tar"), ("b", "gz")]),
            ("x{/a,b}", "x/1/2", &[("a", "1"), ("b", "2")]),
            ("x{/a}/{b}", "x/1/2", &[("a", "1"), ("b", "2")]),
            ("x{/a*}", "x/1/2/3", &[("a", "1/2/3")]),
            ("x{/a*,b}", "x/1/2/3", &[("a", "1/2"), ("b", "3")]),
            ("x{/a*}/end", "x/1/end/end", &[("a", "1/end")]),
            ("{/a:1,a}", "/v/value", &[("a", "value")]),
        ]);
        refuses(&[("x{/a,b}", "x/1"), ("x{/a}", "x/1/2"), ("x{/a}", "x/"), ("x{/a*}", "x"), ("x{.a}", "x.")]);
    }

    #[test]
    fn query() {
        matches(&[
            ("x{?a,b}", "x", &[]),
            ("x{?a,b}", "x?a=1&b=2", &[("a", "1"), ("b", "2")]),
            ("x{?a,b}", "x?b=2&a=1", &[("a", "1"), ("b", "2")]),
            ("x{?a,b}", "x?b=2", &[("b", "2")]),
            ("x{?a,b}", "x?a=&b", &[("a", ""), ("b", "")]),
            ("x{?a,ab}", "x?ab=1", &[("ab", "1")]),
            ("x{?a}", "x?a=b/c?d=e:f,g", &[("a", "b/c?d=e:f,g")]),
            ("x{?a}", "x?a=1%262+3", &[("a", "1&2+3")]),
            ("x{?a}{&b,c}", "x?a=1&c=2&b=3", &[("a", "1"), ("b", "3"), ("c", "2")]),
            ("x?v=1{&a}", "x?v=1&a=2", &[("a", "2")]),
            ("x?v=1{&a}", "x?v=1", &[]),
            ("x{?a}{#b}", "x?a=1#2", &[("a", "1"), ("b", "2")]),
            ("x{?a}&end", "x?a=1&end", &[("a", "1")]),
            ("x{?a*}", "x?a=1&a=2", &[("a", "1,2")]),
            ("x{?a*,b}", "x?a=1&b=3&a=2", &[("a", "1,2"), ("b", "3")]),
            ("x{?a%20b}", "x?a%20b=1", &[("a%20b", "1")]),
            ("x{?a:2}", "x?a=12", &[("a", "12")]),
        ]);
        refuses(&[
            ("x{?a}", "x?"),
            ("x{?a}", "x?b=1"),
            ("x{?a}", "x?a=1&b=1"),
            ("x{?a}", "x?a=1&a=2"),
            ("x{?a,b}", "x?a=1&b=1&a=1"),
            ("x{?a}", "x?a=1&"),
            ("x{?a}", "x&a=1"),
            ("x{&a}", "x?a=1"),
            ("x{?a}", "x?a=1#f"),
            ("x{?a}", "x?a=%FF"),
            ("x{?a:2}", "x?a=123"),
            ("x{?a}", "x?A=1"),
        ]);
    }

    #[test]
    fn parameters() {
        matches(&[
            ("x{;a,b}/y", "x;b=2;a/y", &[("a", ""), ("b", "2")]),
            ("x{;a,b}/y", "x/y", &[]),
            ("x{;a*}", "x;a=1;a=2", &[("a", "1,2")]),
        ]);
        refuses(&[("x{;a}", "x;a=1;a=1"), ("x{;a}", "x;a=1/2"), ("x{;a}", "x;ab=1")]);
    }

    #[test]
    fn a_prefix_counts_characters() {
        matches(&[("{a:3}", "%C3%A4%C3%B6%C3%BC", &[("a", "äöü")]), ("{a:1}{b}", "xyz", &[("a", "x"), ("b", "yz")])]);
        refuses(&[("{a:3}", "1234"), ("{a:3}/", "1234/")]);
    }

    #[test]
    fn of_several_splits_the_left_variable_is_longest() {
        matches(&[
            ("{a}{b}", "1234", &[("a", "123"), ("b", "4")]),
            ("{a}{b}", "x%C3%A9", &[("a", "x"), ("b", "é")]),
            ("{a}-{b}", "1-2-3", &[("a", "1-2"), ("b", "3")]),
            ("{+a}/{+b}", "1/2/3", &[("a", "1/2"), ("b", "3")]),
            ("{a}.{b}.{c}", "1.2.3.4", &[("a", "1.2"), ("b", "3"), ("c", "4")]),
            ("{+a}{?b}", "x?b=1", &[("a", "x?b=1")]),
        ]);
        refuses(&[("{a}{b}", "1")]);
    }

    #[test]
    fn a_repeated_variable_has_one_value() {
        matches(&[("{a}/{a}", "1/1", &[("a", "1")]), ("{a}/{a:2}", "123/12", &[("a", "123")])]);
        refuses(&[("{a}/{a}", "1/2"), ("{a:2}/{a}", "12/321"), ("{a}{?a}", "1?a=2")]);
    }

    /// The number of steps is bounded by the lengths; with backtracking these would take forever.
    #[test]
    fn hostile_uris_are_cheap() {
        const LENGTH: usize = 8 * 1024;
        let cases = [
            ("{a}{b}{c}{d}{e}{f}{g}{h}!", "a".repeat(LENGTH)),
            ("{+a}/{+b}/{+c}/{+d}/{+e}/x", "/".repeat(LENGTH)),
            ("{+a}{+b}{+c}{+d}{+e}{+f}", "/".repeat(LENGTH - 1) + " "),
            ("{a*}{b*}{c*}{d:999}{e:999}!", "a,".repeat(LENGTH / 2)),
            ("{+a}{;b*}!!", ";b".repeat(LENGTH / 2)),
            ("{+a}{&b*}{&c*}#!", "&b=1".repeat(LENGTH / 4)),
            ("{+a}{?b,c}{?d}~!", "?b=?c=&".repeat(LENGTH / 7)),
            ("{a}%41", "%C3%".repeat(LENGTH / 4)),
        ];
        for (template, uri) in cases {
            assert_eq!(found(template, &uri), None, "{template}");
        }
        let long = found("{+a}{b}{c:9999}", &"é".repeat(LENGTH)).unwrap();
        assert_eq!(long.iter().map(|(_, value)| value.chars().count()).collect::<Vec<_>>(), [LENGTH - 2, 1, 1]);
        let many = found("x{;b*}", &format!("x{}", ";b=1".repeat(LENGTH / 4))).unwrap();
        assert_eq!(many[0].1.len(), LENGTH / 2 - 1);
    }
}
