//! P4 names as Rust names.

use std::collections::HashMap;

use super::Error;

/// Rust names that are in use, and the program's names behind them.
pub(super) struct Names(HashMap<String, String>);

impl Names {
    pub(super) fn new() -> Self {
        Names(HashMap::new())
    }

    /// Takes a Rust name for a name of the program.
    pub(super) fn take(&mut self, rust: &str, of: &str) -> Result<String, Error> {
        match self.0.insert(rust.to_owned(), of.to_owned()) {
            None => Ok(rust.to_owned()),
            Some(first) => Err(Error::Clash {
                name: rust.to_owned(),
                first,
                second: of.to_owned(),
            }),
        }
    }
}

/// The words of a name: letters and digits, split elsewhere.
fn words(name: &str) -> Result<Vec<&str>, Error> {
    let words: Vec<&str> = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    match words.is_empty() {
        true => Err(Error::Unusable(name.to_owned())),
        false => Ok(words),
    }
}

/// `route_v4` as `RouteV4`.
pub(super) fn camel(name: &str) -> Result<String, Error> {
    let mut camel = String::new();
    for word in words(name)? {
        let (first, rest) = word.split_at(1);
        camel += &first.to_ascii_uppercase();
        camel += rest;
    }
    Ok(after_digit(camel, 'T'))
}

/// `hdr.ipv4.dstAddr` as `hdr_ipv4_dst_addr`, fit to be the name of a field.
pub(super) fn snake(name: &str) -> Result<String, Error> {
    let mut snake = String::new();
    for word in words(name)? {
        if !snake.is_empty() {
            snake.push('_');
        }
        let mut lower_before = false;
        for c in word.chars() {
            if c.is_ascii_uppercase() && lower_before {
                snake.push('_');
            }
            lower_before = c.is_ascii_lowercase();
            snake.push(c.to_ascii_lowercase());
        }
    }
    let snake = after_digit(snake, 'f');
    Ok(match snake.as_str() {
        // These cannot even be raw identifiers.
        "self" | "super" | "crate" => format!("{snake}_"),
        word if KEYWORDS.contains(&word) => format!("r#{word}"),
        _ => snake,
    })
}

/// Rust names do not begin with digits.
fn after_digit(name: String, letter: char) -> String {
    match name.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("{letter}{name}"),
        false => name,
    }
}

const KEYWORDS: [&str; 47] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let",
    "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return",
    "static", "struct", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use",
    "virtual", "where", "while",
];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn rust_names() {
        assert_eq!(camel("route_v4").unwrap(), "RouteV4");
        assert_eq!(camel("ingress.acl").unwrap(), "IngressAcl");
        assert_eq!(camel("NoAction").unwrap(), "NoAction");
        assert_eq!(snake("hdr.ipv4.dstAddr").unwrap(), "hdr_ipv4_dst_addr");
        assert_eq!(snake("hdr.ipv4.$valid$").unwrap(), "hdr_ipv4_valid");
        assert_eq!(snake("vlan[0].id").unwrap(), "vlan_0_id");
        assert_eq!(snake("type").unwrap(), "r#type");
        assert_eq!(snake("self").unwrap(), "self_");
        assert_eq!(snake("802_1q").unwrap(), "f802_1q");
        assert!(matches!(snake("$").unwrap_err(), Error::Unusable(_)));
    }

    #[test]
    fn clashes_name_both() {
        let mut names = Names::new();
        names.take("a_b", "a.b").unwrap();
        let error = names.take("a_b", "a_b").unwrap_err().to_string();
        assert!(
            error.starts_with("`a.b` and `a_b` are both called `a_b`"),
            "{error}"
        );
    }
}
