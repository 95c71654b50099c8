//! Amounts that know their unit: `"512m"` or a number of bytes, `"1.5s"` or a number of seconds.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The text is not an amount of what was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidQuantity(String);

/// A number of bytes. Written as a number, or as text with `k`, `m`, `g` or `t` (powers of 1024).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(pub u64);

/// A length of time. Written as seconds, or as text with `ms`, `s`, `m`, `h` or `d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub Duration);

impl FromStr for Size {
    type Err = InvalidQuantity;

    fn from_str(text: &str) -> Result<Self, InvalidQuantity> {
        let wrong = || {
            InvalidQuantity(format!("`{text}` is not a size: write bytes, or 512k, 64m, 2g, 1t"))
        };
        let (number, unit) = split(text).ok_or_else(wrong)?;
        let shift = match unit.to_ascii_lowercase().as_str() {
            "" | "b" => 0,
            "k" | "kb" | "ki" | "kib" => 10,
            "m" | "mb" | "mi" | "mib" => 20,
            "g" | "gb" | "gi" | "gib" => 30,
            "t" | "tb" | "ti" | "tib" => 40,
            _ => return Err(wrong()),
        };
        let number: u64 = number.parse().map_err(|_| wrong())?;
        number.checked_mul(1 << shift).map(Self).ok_or_else(wrong)
    }
}

impl FromStr for Span {
    type Err = InvalidQuantity;

    fn from_str(text: &str) -> Result<Self, InvalidQuantity> {
        let wrong = || {
            InvalidQuantity(format!(
                "`{text}` is not a time: write seconds, or 250ms, 30s, 5m, 2h, 1d"
            ))
        };
        let (number, unit) = split(text).ok_or_else(wrong)?;
        let unit = match unit {
            "ms" => 0.001,
            "" | "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86400.0,
            _ => return Err(wrong()),
        };
        let number: f64 = number.parse().map_err(|_| wrong())?;
        Self::seconds(number * unit).ok_or_else(wrong)
    }
}

impl Span {
    /// A span of that many seconds; none if it is negative, not a number or past counting.
    pub fn seconds(seconds: f64) -> Option<Self> {
        Duration::try_from_secs_f64(seconds).ok().map(Self)
    }
}

/// Divides `1.5s` into `1.5` and `s`; none if it does not begin with a digit.
fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text.starts_with(|c: char| c.is_ascii_digit()).then(|| text.split_at(end))
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut value, mut unit) = (self.0, "");
        for next in ["k", "m", "g", "t"] {
            if value == 0 || value % 1024 != 0 {
                break;
            }
            (value, unit) = (value / 1024, next);
        }
        write!(f, "{value}{unit}")
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s", self.0.as_secs_f64())
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(self.0)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(self.0.as_secs_f64())
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Size;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of bytes or a text such as \"512m\"")
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Size, E> {
                Ok(Size(value))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Size, E> {
                u64::try_from(value).map(Size).map_err(|_| E::custom("a size is not negative"))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Size, E> {
                text.parse().map_err(E::custom)
            }
        }
        from.deserialize_any(Visitor)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Span;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of seconds or a text such as \"30s\"")
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Span, E> {
                Ok(Span(Duration::from_secs(value)))
            }
            fn visit_i64<E: de::Error>(self, _: i64) -> Result<Span, E> {
                Err(E::custom("a time is not negative"))
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Span, E> {
                Span::seconds(value).ok_or_else(|| E::custom("a time is a finite, positive number"))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Span, E> {
                text.parse().map_err(E::custom)
            }
        }
        from.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_numbers_or_text_with_a_unit() {
        for (text, bytes) in [("7", 7), ("2k", 2048), ("64M", 64 << 20), ("1gib", 1 << 30)] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        assert_eq!(serde_json::from_str::<Size>("1024").unwrap(), Size(1024));
    }

    #[test]
    fn spans_are_numbers_or_text_with_a_unit() {
        for (text, milliseconds) in [("250ms", 250), ("1.5", 1500), ("2m", 120_000), ("3s", 3000)] {
            assert_eq!(text.parse(), Ok(Span(Duration::from_millis(milliseconds))), "{text}");
        }
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for bad in ["", "-1", "1x", "m", "1e999", "NaN", "inf", "99999999999t", "1.2.3s"] {
            assert!(bad.parse::<Size>().is_err(), "{bad}");
        }
        for bad in ["", "-1", "1x", "s", "NaN", "inf", "-1s", "99999999999999999999999d"] {
            assert!(bad.parse::<Span>().is_err(), "{bad}");
        }
        for bad in ["-1", "null", "true", "[]", "\"\""] {
            assert!(serde_json::from_str::<Size>(bad).is_err(), "{bad}");
            assert!(serde_json::from_str::<Span>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_size_is_shown_in_its_largest_whole_unit() {
        let shown: Vec<_> = [0, 1000, 1 << 20, 3 << 30].map(|n| Size(n).to_string()).to_vec();
        assert_eq!(shown, ["0", "1000", "1m", "3g"]);
    }
}
