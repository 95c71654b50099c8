//! From a host's pattern to a regular expression that takes neither long nor much room.

use atoll_agent_protocol::message::{Failure, Grep};
use regex::bytes::{Regex, RegexBuilder};

use crate::failure::{invalid, shown};

/// Bytes of a pattern.
const MAX_LENGTH: usize = 16 << 10;
/// Bytes of the program it becomes, and of what that program keeps while it runs.
const MAX_PROGRAM: usize = 1 << 20;
const MAX_DEPTH: u32 = 50;

pub(super) fn compile(ask: &Grep) -> Result<Regex, Failure> {
    if ask.pattern.is_empty() || ask.pattern.len() > MAX_LENGTH {
        return Err(invalid(format!("a pattern has from 1 to {MAX_LENGTH} bytes")));
    }
    let text = if ask.literal { regex::escape(&ask.pattern) } else { ask.pattern.clone() };
    check(&text)?;
    RegexBuilder::new(&text)
        .case_insensitive(ask.ignore_case)
        .size_limit(MAX_PROGRAM)
        .dfa_size_limit(MAX_PROGRAM)
        .nest_limit(MAX_DEPTH)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => invalid("the pattern is too large"),
            // The last line says what is wrong; those before it draw where.
            other => {
                let text = other.to_string();
                invalid(format!("the pattern: {}", shown(text.lines().last().unwrap_or_default())))
            }
        })
}

/// Says where a pattern makes no sense.
fn check(text: &str) -> Result<(), Failure> {
    use regex_syntax::{Error, ParserBuilder};

    let mut parser = ParserBuilder::new().utf8(false).nest_limit(MAX_DEPTH).build();
    let (what, at) = match parser.parse(text) {
        Ok(_) => return Ok(()),
        Err(Error::Parse(error)) => (error.kind().to_string(), error.span().start),
        Err(Error::Translate(error)) => (error.kind().to_string(), error.span().start),
        Err(other) => return Err(invalid(format!("the pattern: {}", shown(&other.to_string())))),
    };
    let (line, column) = (at.line, at.column);
    let place =
        if line > 1 { format!("line {line}, sign {column}") } else { format!("sign {column}") };
    Err(invalid(format!("the pattern at {place}: {}", shown(&what))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(pattern: &str) -> String {
        let ask = Grep { pattern: pattern.to_owned(), ..Grep::default() };
        compile(&ask).map_or_else(|failure| failure.message, |_| String::new())
    }

    #[test]
    fn what_makes_no_sense_is_told_with_its_place() {
        for (pattern, place) in [("a(b", "sign 2"), ("ab[", "sign 3"), ("a\\q", "sign 2")] {
            assert!(message(pattern).contains(place), "{pattern}: {}", message(pattern));
        }
        assert!(message("(?=a)").contains("sign 1"), "{}", message("(?=a)"));
    }

    #[test]
    fn what_would_take_too_much_is_refused() {
        assert_eq!(message("(?:\\w{100}){100}"), "the pattern is too large");
        assert_ne!(message(&"(".repeat(1000)), "");
        assert_ne!(message(&"a".repeat(20_000)), "");
        assert_ne!(message(""), "");
    }

    #[test]
    fn text_is_taken_as_it_is() {
        let ask = Grep { pattern: "a.(b".to_owned(), literal: true, ..Grep::default() };

        let expression = compile(&ask).unwrap();

        assert!(expression.is_match(b"xa.(b"));
        assert!(!expression.is_match(b"xaz(b"));
    }
}
