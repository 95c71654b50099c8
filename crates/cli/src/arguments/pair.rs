//! `NAME=VALUE`.

use std::str::FromStr;

/// A name and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) name: String,
    pub(crate) value: String,
}

impl FromStr for Pair {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => {
                Ok(Self { name: name.to_owned(), value: value.to_owned() })
            }
            _ => Err("write it as NAME=VALUE".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_equals_sign_divides() {
        let pair: Pair = "A=b=c".parse().unwrap();

        assert_eq!((pair.name.as_str(), pair.value.as_str()), ("A", "b=c"));
        assert_eq!("A=".parse::<Pair>().unwrap().value, "");
    }

    #[test]
    fn a_name_is_needed() {
        assert!("=b".parse::<Pair>().is_err());
        assert!("b".parse::<Pair>().is_err());
    }
}
