//! From an address back to variables.
//!
//! The pattern is a list of atoms, and each takes a stretch of the address. From the right to the left it is noted
//! for every atom where it may start so that all the rest matches; then one walk from the left, which never has to
//! turn back, makes the choices. Both take time in proportion to the length of the address for each atom.

use super::operator::Operator;
use super::token::Token;
use super::{Expression, Modifier, Part, Variable};

/// What an address has to look like.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    atoms: Vec<Atom>,
    variables: usize,
}

#[derive(Clone, Debug)]
enum Atom {
    Literal(Vec<Token>),
    /// One value that its position tells.
    Run {
        variable: usize,
        operator: Operator,
        modifier: Modifier,
    },
    /// Values that their names tell; all may be absent.
    Named {
        operator: Operator,
        parameters: Vec<Parameter>,
    },
}

#[derive(Clone, Debug)]
struct Parameter {
    variable: usize,
    name: Vec<Token>,
    modifier: Modifier,
}

impl Pattern {
    /// Variables are numbered by their place in `names`.
    pub(super) fn new(parts: &[Part], names: &[String]) -> Self {
        let number = |variable: &Variable| {
            names.iter().position(|name| *name == variable.name).expect("names has every variable of parts")
        };
        let mut pattern = Self { atoms: Vec::new(), variables: names.len() };
        for part in parts {
            match part {
                Part::Literal(literal) => pattern.literal(Token::all(literal)),
                Part::Expression(Expression { operator, variables }) if operator.is_named() => {
                    let parameters = variables.iter().map(|variable| Parameter {
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
                        pattern.atoms.push(Atom::Run { variable: number(variable), operator, modifier });
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

    /// The decoded values by the numbers of the variables.
    pub(super) fn matches(&self, uri: &str) -> Option<Vec<Option<String>>> {
        // Most templates of a server are ruled out by how they begin, and that must not cost as much as a match.
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

    /// For each atom, and for what follows the last one, at which places it may start.
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
    /// Where this atom may start, if the next may start at `next`.
    fn starts(&self, uri: &[Token], next: &[bool]) -> Vec<bool> {
        match self {
            Self::Literal(tokens) => (0..=uri.len())
                .map(|at| next.get(at + tokens.len()) == Some(&true) && uri[at..].starts_with(tokens))
                .collect(),
            Self::Run { operator, modifier, .. } => {
                let mut starts = vec![false; uri.len() + 1];
                let mut nearest_end = None;
                for at in (0..uri.len()).rev() {
                    nearest_end = if !run_takes(*operator, *modifier, uri[at]) {
                        None
                    } else if next[at + 1] {
                        Some(at + 1)
                    } else {
                        nearest_end
                    };
                    starts[at] = nearest_end.is_some_and(|end| end - at <= modifier.longest());
                }
                starts
            }
            Self::Named { operator, parameters } => {
                let mut starts = next.to_vec();
                for (at, end) in chains(uri, *operator, parameters).into_iter().enumerate() {
                    starts[at] |= end.is_some_and(|end| next[end]);
                }
                starts
            }
        }
    }

    /// Takes what belongs to this atom and returns the place behind it, where the next one may start.
    fn walk(&self, uri: &[Token], at: usize, next: &[bool], values: &mut Values) -> Option<usize> {
        match self {
            Self::Literal(tokens) => Some(at + tokens.len()),
            Self::Run { variable, operator, modifier } => {
                let taken = uri[at..].iter().take(modifier.longest());
                let longest = taken.take_while(|token| run_takes(*operator, *modifier, **token)).count();
                let end = (at + 1..=at + longest).rev().find(|end| next[*end])?;
                values.set(*variable, &uri[at..end], *modifier)?;
                Some(end)
            }
            Self::Named { operator, parameters } => {
                let Some(end) = chains(uri, *operator, parameters)[at].filter(|end| next[*end]) else {
                    return Some(at);
                };
                let values_end = stretches(uri, *operator);
                let mut at = at;
                let mut lists = vec![None::<String>; parameters.len()];
                while at < end {
                    let pair = Pair::read(uri, at, parameters, &values_end)?;
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

fn run_takes(operator: Operator, modifier: Modifier, token: Token) -> bool {
    operator.takes(token) || (modifier == Modifier::Explode && token == Token::Plain(operator.separator()))
}

/// For each place, where the value ends that starts there.
fn stretches(uri: &[Token], operator: Operator) -> Vec<usize> {
    let mut ends = vec![uri.len(); uri.len() + 1];
    for at in (0..uri.len()).rev() {
        ends[at] = if operator.takes(uri[at]) { ends[at + 1] } else { at };
    }
    ends
}

/// For each place with the operator's sign, where the parameters end that start there, each used once unless it is a
/// list.
fn chains(uri: &[Token], operator: Operator, parameters: &[Parameter]) -> Vec<Option<usize>> {
    let lead = operator.lead().map(Token::Plain);
    let separator = Token::Plain(operator.separator());
    let values_end = stretches(uri, operator);
    let mut ends = vec![None; uri.len() + 1];
    let mut latest = vec![usize::MAX; parameters.len()];
    for at in (0..uri.len()).rev() {
        if uri[at] != separator && Some(uri[at]) != lead {
            continue;
        }
        let Some(pair) = Pair::read(uri, at, parameters, &values_end) else { continue };
        let goes_on = uri.get(pair.end) == Some(&separator);
        let is_list = parameters[pair.parameter].modifier == Modifier::Explode;
        // A chain has to stop before a name that it has; `latest` is the nearest place where this name comes again.
        let again = if is_list { usize::MAX } else { latest[pair.parameter] };
        ends[at] = Some(ends[pair.end].filter(|_| goes_on).map_or(pair.end, |end: usize| end.min(again)));
        if uri[at] == separator {
            latest[pair.parameter] = at;
        }
    }
    // Only what starts with the lead is the start of an expression.
    for (at, token) in uri.iter().enumerate() {
        ends[at] = ends[at].filter(|_| Some(*token) == lead);
    }
    ends
}

/// One parameter with its sign, name and value.
struct Pair {
    parameter: usize,
    value: usize,
    end: usize,
}

impl Pair {
    /// Reads the parameter whose sign is at `at`.
    fn read(uri: &[Token], at: usize, parameters: &[Parameter], values_end: &[usize]) -> Option<Self> {
        let rest = &uri[at + 1..];
        parameters.iter().enumerate().find_map(|(parameter, known)| {
            let after = at + 1 + known.name.len();
            if !rest.starts_with(&known.name) {
                return None;
            }
            let has_value = uri.get(after) == Some(&Token::Plain('='));
            let value = if has_value { after + 1 } else { after };
            let end = values_end[value];
            let is_whole = has_value || end == after;
            (is_whole && end - value <= known.modifier.longest()).then_some(Self { parameter, value, end })
        })
    }
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

    /// Fails if the variable has another value already.
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
    use super::*;
    use crate::uri_template::UriTemplate;

    fn found(template: &str, uri: &str) -> Option<Vec<(String, String)>> {
        let found = UriTemplate::parse(template).unwrap().matches(uri)?;
        Some(found.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// A template, an address, and the variables that are found.
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

    /// All short addresses, against reading the parameters one after the other from each place.
    #[test]
    fn chains_stop_at_the_first_repetition() {
        let parameter = |variable, name, modifier| Parameter { variable, name: Token::all(name), modifier };
        let parameters = [parameter(0, "a", Modifier::Whole), parameter(1, "b", Modifier::Explode)];
        for operator in [Operator::Query, Operator::Continuation, Operator::Parameter] {
            let (lead, separator) = (operator.lead().unwrap(), operator.separator());
            for number in 0..5_usize.pow(6) {
                let sign = |place: u32| [lead, separator, 'a', 'b', '='][number / 5_usize.pow(place) % 5];
                let uri: Vec<_> = (0..6).map(|place| Token::Plain(sign(place))).collect();
                let values_end = stretches(&uri, operator);
                let one_by_one = |start: usize| {
                    let (mut at, mut has_a, mut end) = (start, false, None);
                    while let Some(pair) = Pair::read(&uri, at, &parameters, &values_end) {
                        if pair.parameter == 0 && std::mem::replace(&mut has_a, true) {
                            break;
                        }
                        end = Some(pair.end);
                        at = pair.end;
                        if uri.get(at) != Some(&Token::Plain(separator)) {
                            break;
                        }
                    }
                    end
                };
                for (start, end) in chains(&uri, operator, &parameters).into_iter().enumerate() {
                    let expected = if uri.get(start) == Some(&Token::Plain(lead)) { one_by_one(start) } else { None };
                    assert_eq!(end, expected, "{uri:?} from {start}");
                }
            }
        }
    }

    /// The number of steps is bounded by the lengths; with backtracking these would take forever.
    #[test]
    fn hostile_addresses_are_cheap() {
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
