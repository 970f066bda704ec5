//! Matches the parameters of `{;a,b}`, `{?a,b}` and `{&a,b}`, which are identified by their names.

use super::Modifier;
use super::operator::Operator;
use super::token::Token;

#[derive(Clone, Debug)]
pub(super) struct NamedParameter {
    pub(super) variable: usize,
    pub(super) name: Vec<Token>,
    pub(super) modifier: Modifier,
}

/// Returns for each position the end of the value that starts there.
pub(super) fn value_ends(uri: &[Token], operator: Operator) -> Vec<usize> {
    let mut ends = vec![uri.len(); uri.len() + 1];
    for at in (0..uri.len()).rev() {
        ends[at] = if operator.accepts(uri[at]) { ends[at + 1] } else { at };
    }
    ends
}

/// Returns for each position of the operator's sign the end of the longest chain of parameters that starts there. A chain has
/// each parameter once, or repeatedly if it is a list.
pub(super) fn chain_ends(uri: &[Token], operator: Operator, parameters: &[NamedParameter]) -> Vec<Option<usize>> {
    let lead = operator.lead().map(Token::Plain);
    let separator = Token::Plain(operator.separator());
    let value_ends = value_ends(uri, operator);
    let mut ends = vec![None; uri.len() + 1];
    let mut latest = vec![usize::MAX; parameters.len()];
    for at in (0..uri.len()).rev() {
        if uri[at] != separator && Some(uri[at]) != lead {
            continue;
        }
        let Some(pair) = Pair::read(uri, at, parameters, &value_ends) else { continue };
        let continues = uri.get(pair.end) == Some(&separator);
        let is_list = parameters[pair.parameter].modifier == Modifier::Explode;
        // A chain ends before a name that it already has; `latest` is the nearest position with this name.
        let again = if is_list { usize::MAX } else { latest[pair.parameter] };
        ends[at] = Some(ends[pair.end].filter(|_| continues).map_or(pair.end, |end: usize| end.min(again)));
        if uri[at] == separator {
            latest[pair.parameter] = at;
        }
    }
    // An expression starts with its first sign only, not with a separator.
    for (at, token) in uri.iter().enumerate() {
        ends[at] = ends[at].filter(|_| Some(*token) == lead);
    }
    ends
}

/// One parameter with its sign, name and value.
pub(super) struct Pair {
    pub(super) parameter: usize,
    /// Where the value starts.
    pub(super) value: usize,
    pub(super) end: usize,
}

impl Pair {
    /// Parses the parameter whose sign is at `at`.
    pub(super) fn read(uri: &[Token], at: usize, parameters: &[NamedParameter], value_ends: &[usize]) -> Option<Self> {
        let rest = &uri[at + 1..];
        parameters.iter().enumerate().find_map(|(parameter, known)| {
            let after = at + 1 + known.name.len();
            if !rest.starts_with(&known.name) {
                return None;
            }
            let has_value = uri.get(after) == Some(&Token::Plain('='));
            let value = if has_value { after + 1 } else { after };
            let end = value_ends[value];
            let is_whole = has_value || end == after;
            (is_whole && end - value <= known.modifier.max_chars()).then_some(Self { parameter, value, end })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares all short URIs with parsing the parameters one by one from each position.
    #[test]
    fn chains_stop_at_the_first_repetition() {
        let parameter = |variable, name, modifier| NamedParameter { variable, name: Token::all(name), modifier };
        let parameters = [parameter(0, "a", Modifier::Whole), parameter(1, "b", Modifier::Explode)];
        for operator in [Operator::Query, Operator::Continuation, Operator::Parameter] {
            let (lead, separator) = (operator.lead().unwrap(), operator.separator());
            for number in 0..5_usize.pow(6) {
                let sign = |place: u32| [lead, separator, 'a', 'b', '='][number / 5_usize.pow(place) % 5];
                let uri: Vec<_> = (0..6).map(|place| Token::Plain(sign(place))).collect();
                let value_ends = value_ends(&uri, operator);
                let one_by_one = |start: usize| {
                    let (mut at, mut has_a, mut end) = (start, false, None);
                    while let Some(pair) = Pair::read(&uri, at, &parameters, &value_ends) {
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
                for (start, end) in chain_ends(&uri, operator, &parameters).into_iter().enumerate() {
                    let expected = if uri.get(start) == Some(&Token::Plain(lead)) { one_by_one(start) } else { None };
                    assert_eq!(end, expected, "{uri:?} from {start}");
                }
            }
        }
    }
}
