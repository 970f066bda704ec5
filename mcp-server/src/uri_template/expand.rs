//! Expands a template to a URI (RFC 6570, section 3).

use super::operator::{Operator, is_reserved, is_unreserved};
use super::token::{TRIPLET, encoded_byte};
use super::{Expression, Modifier, Part, Variable};

/// The value of a variable of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UriValue {
    /// A text.
    Text(String),
    /// Several texts; an empty list counts as no value.
    List(Vec<String>),
    /// Names with texts; an empty list counts as no value.
    Pairs(Vec<(String, String)>),
}

impl From<&str> for UriValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for UriValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<String>> for UriValue {
    fn from(list: Vec<String>) -> Self {
        Self::List(list)
    }
}

impl From<Vec<(String, String)>> for UriValue {
    fn from(pairs: Vec<(String, String)>) -> Self {
        Self::Pairs(pairs)
    }
}

pub(super) fn expand(parts: &[Part], lookup: &mut dyn FnMut(&str) -> Option<UriValue>) -> String {
    let mut uri = String::new();
    for part in parts {
        match part {
            Part::Literal(literal) => encode(&mut uri, literal, true),
            Part::Expression(Expression { operator, variables }) => {
                let mut out = Output { uri: &mut uri, operator: *operator, is_first: true };
                for variable in variables {
                    if let Some(value) = lookup(&variable.name) {
                        out.variable(variable, &value);
                    }
                }
            }
        }
    }
    uri
}

/// Writes one expression into the URI.
struct Output<'a> {
    uri: &'a mut String,
    operator: Operator,
    is_first: bool,
}

impl Output<'_> {
    fn variable(&mut self, variable: &Variable, value: &UriValue) {
        let Variable { name, modifier } = variable;
        let explodes = *modifier == Modifier::Explode;
        match value {
            UriValue::Text(text) => {
                let end = text.char_indices().nth(modifier.max_chars()).map_or(text.len(), |(end, _)| end);
                self.write_items(name, &[&text[..end]]);
            }
            UriValue::List(items) if explodes => items.iter().for_each(|item| self.write_items(name, &[item])),
            UriValue::Pairs(pairs) if explodes => {
                for (key, text) in pairs {
                    self.separate();
                    self.encode(key);
                    self.uri.push('=');
                    self.encode(text);
                }
            }
            UriValue::List(items) => self.write_items(name, &items.iter().map(String::as_str).collect::<Vec<_>>()),
            UriValue::Pairs(pairs) => {
                self.write_items(name, &pairs.iter().flat_map(|(key, text)| [key.as_str(), text]).collect::<Vec<_>>());
            }
        }
    }

    /// Writes items separated by commas, after the name if the operator requires it.
    fn write_items(&mut self, name: &str, items: &[&str]) {
        if items.is_empty() {
            return;
        }
        self.separate();
        if self.operator.is_named() {
            encode(self.uri, name, true);
            if items != [""] || self.operator.marks_empty() {
                self.uri.push('=');
            }
        }
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.uri.push(',');
            }
            self.encode(item);
        }
    }

    fn separate(&mut self) {
        let sign = if self.is_first { self.operator.lead() } else { Some(self.operator.separator()) };
        self.uri.extend(sign);
        self.is_first = false;
    }

    fn encode(&mut self, text: &str) {
        encode(self.uri, text, self.operator.keeps_reserved());
    }
}

fn encode(uri: &mut String, text: &str, keep_reserved: bool) {
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let mut length = character.len_utf8();
        if is_unreserved(character) || (keep_reserved && is_reserved(character)) {
            uri.push(character);
        } else if keep_reserved && encoded_byte(rest.as_bytes()).is_some() {
            length = TRIPLET;
            uri.push_str(&rest[..length]);
        } else {
            for byte in &rest.as_bytes()[..length] {
                uri.push('%');
                uri.push(char::from(DIGITS[usize::from(byte >> 4)]));
                uri.push(char::from(DIGITS[usize::from(byte & 0xF)]));
            }
        }
        rest = &rest[length..];
    }
}

const DIGITS: &[u8; 16] = b"0123456789ABCDEF";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uri_template::UriTemplate;

    /// The variables of the examples in RFC 6570, sections 1.2 and 3.2.
    fn example(name: &str) -> Option<UriValue> {
        let list = |items: &[&str]| UriValue::List(items.iter().map(|item| (*item).to_owned()).collect());
        let pairs = |items: &[(&str, &str)]| {
            UriValue::Pairs(items.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect())
        };
        Some(match name {
            "count" => list(&["one", "two", "three"]),
            "dom" => list(&["example", "com"]),
            "dub" => "me/too".into(),
            "hello" => "Hello World!".into(),
            "half" => "50%".into(),
            "var" => "value".into(),
            "who" => "fred".into(),
            "base" => "http://example.com/home/".into(),
            "path" => "/foo/bar".into(),
            "list" => list(&["red", "green", "blue"]),
            "keys" => pairs(&[("semi", ";"), ("dot", "."), ("comma", ",")]),
            "v" => "6".into(),
            "x" => "1024".into(),
            "y" => "768".into(),
            "empty" => "".into(),
            "empty_keys" => pairs(&[]),
            _ => return None,
        })
    }

    fn expands(cases: &[(&str, &str)]) {
        for (template, expected) in cases {
            assert_eq!(UriTemplate::parse(template).unwrap().expand(example), *expected, "{template}");
        }
    }

    #[test]
    fn literals_are_encoded_where_they_must_be() {
        expands(&[("a/b?c#d", "a/b?c#d"), ("é%20'{var}", "%C3%A9%20'value")]);
    }

    #[test]
    fn simple() {
        expands(&[
            ("{var}", "value"),
            ("{hello}", "Hello%20World%21"),
            ("{half}", "50%25"),
            ("O{empty}X", "OX"),
            ("O{undef}X", "OX"),
            ("{x,y}", "1024,768"),
            ("{x,hello,y}", "1024,Hello%20World%21,768"),
            ("?{x,empty}", "?1024,"),
            ("?{x,undef}", "?1024"),
            ("?{undef,y}", "?768"),
            ("{var:3}", "val"),
            ("{var:30}", "value"),
            ("{list}", "red,green,blue"),
            ("{list*}", "red,green,blue"),
            ("{keys}", "semi,%3B,dot,.,comma,%2C"),
            ("{keys*}", "semi=%3B,dot=.,comma=%2C"),
            ("{count}", "one,two,three"),
        ]);
    }

    #[test]
    fn reserved() {
        expands(&[
            ("{+var}", "value"),
            ("{+hello}", "Hello%20World!"),
            ("{+half}", "50%25"),
            ("{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"),
            ("{+base}index", "http://example.com/home/index"),
            ("O{+empty}X", "OX"),
            ("O{+undef}X", "OX"),
            ("{+path}/here", "/foo/bar/here"),
            ("here?ref={+path}", "here?ref=/foo/bar"),
            ("up{+path}{var}/here", "up/foo/barvalue/here"),
            ("{+x,hello,y}", "1024,Hello%20World!,768"),
            ("{+path,x}/here", "/foo/bar,1024/here"),
            ("{+path:6}/here", "/foo/b/here"),
            ("{+list}", "red,green,blue"),
            ("{+list*}", "red,green,blue"),
            ("{+keys}", "semi,;,dot,.,comma,,"),
            ("{+keys*}", "semi=;,dot=.,comma=,"),
        ]);
    }

    #[test]
    fn fragment() {
        expands(&[
            ("{#var}", "#value"),
            ("{#hello}", "#Hello%20World!"),
            ("{#half}", "#50%25"),
            ("foo{#empty}", "foo#"),
            ("foo{#undef}", "foo"),
            ("{#x,hello,y}", "#1024,Hello%20World!,768"),
            ("{#path,x}/here", "#/foo/bar,1024/here"),
            ("{#path:6}/here", "#/foo/b/here"),
            ("{#list}", "#red,green,blue"),
            ("{#list*}", "#red,green,blue"),
            ("{#keys}", "#semi,;,dot,.,comma,,"),
            ("{#keys*}", "#semi=;,dot=.,comma=,"),
        ]);
    }

    #[test]
    fn label() {
        expands(&[
            ("{.who}", ".fred"),
            ("{.who,who}", ".fred.fred"),
            ("{.half,who}", ".50%25.fred"),
            ("www{.dom*}", "www.example.com"),
            ("X{.var}", "X.value"),
            ("X{.empty}", "X."),
            ("X{.undef}", "X"),
            ("X{.var:3}", "X.val"),
            ("X{.list}", "X.red,green,blue"),
            ("X{.list*}", "X.red.green.blue"),
            ("X{.keys}", "X.semi,%3B,dot,.,comma,%2C"),
            ("X{.keys*}", "X.semi=%3B.dot=..comma=%2C"),
            ("X{.empty_keys}", "X"),
            ("X{.empty_keys*}", "X"),
        ]);
    }

    #[test]
    fn path() {
        expands(&[
            ("{/who}", "/fred"),
            ("{/who,who}", "/fred/fred"),
            ("{/half,who}", "/50%25/fred"),
            ("{/who,dub}", "/fred/me%2Ftoo"),
            ("{/var}", "/value"),
            ("{/var,empty}", "/value/"),
            ("{/var,undef}", "/value"),
            ("{/var,x}/here", "/value/1024/here"),
            ("{/var:1,var}", "/v/value"),
            ("{/list}", "/red,green,blue"),
            ("{/list*}", "/red/green/blue"),
            ("{/list*,path:4}", "/red/green/blue/%2Ffoo"),
            ("{/keys}", "/semi,%3B,dot,.,comma,%2C"),
            ("{/keys*}", "/semi=%3B/dot=./comma=%2C"),
        ]);
    }

    #[test]
    fn parameter() {
        expands(&[
            ("{;who}", ";who=fred"),
            ("{;half}", ";half=50%25"),
            ("{;empty}", ";empty"),
            ("{;v,empty,who}", ";v=6;empty;who=fred"),
            ("{;v,bar,who}", ";v=6;who=fred"),
            ("{;x,y}", ";x=1024;y=768"),
            ("{;x,y,empty}", ";x=1024;y=768;empty"),
            ("{;x,y,undef}", ";x=1024;y=768"),
            ("{;hello:5}", ";hello=Hello"),
            ("{;list}", ";list=red,green,blue"),
            ("{;list*}", ";list=red;list=green;list=blue"),
            ("{;keys}", ";keys=semi,%3B,dot,.,comma,%2C"),
            ("{;keys*}", ";semi=%3B;dot=.;comma=%2C"),
        ]);
    }

    #[test]
    fn query() {
        expands(&[
            ("{?who}", "?who=fred"),
            ("{?half}", "?half=50%25"),
            ("{?x,y}", "?x=1024&y=768"),
            ("{?x,y,empty}", "?x=1024&y=768&empty="),
            ("{?x,y,undef}", "?x=1024&y=768"),
            ("{?var:3}", "?var=val"),
            ("{?list}", "?list=red,green,blue"),
            ("{?list*}", "?list=red&list=green&list=blue"),
            ("{?keys}", "?keys=semi,%3B,dot,.,comma,%2C"),
            ("{?keys*}", "?semi=%3B&dot=.&comma=%2C"),
        ]);
    }

    #[test]
    fn continuation() {
        expands(&[
            ("{&who}", "&who=fred"),
            ("{&half}", "&half=50%25"),
            ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
            ("{&x,y,empty}", "&x=1024&y=768&empty="),
            ("{&var:3}", "&var=val"),
            ("{&list}", "&list=red,green,blue"),
            ("{&list*}", "&list=red&list=green&list=blue"),
            ("{&keys}", "&keys=semi,%3B,dot,.,comma,%2C"),
            ("{&keys*}", "&semi=%3B&dot=.&comma=%2C"),
        ]);
    }

    #[test]
    fn a_prefix_counts_characters() {
        let template = UriTemplate::parse("{a:2}").unwrap();
        assert_eq!(template.expand(|_| Some("äöü".into())), "%C3%A4%C3%B6");
    }
}
