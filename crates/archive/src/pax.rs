//! Extended headers: `length key=value` records, where values hold any byte.

use crate::failure::{Failed, Result};

/// Adds a record.
pub(crate) fn record(to: &mut Vec<u8>, key: &str, value: &[u8]) {
    // The length counts its own digits.
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while rest + digits(length) != length {
        length = rest + digits(length);
    }
    to.extend_from_slice(format!("{length} {key}=").as_bytes());
    to.extend_from_slice(value);
    to.push(b'\n');
}

fn digits(mut number: usize) -> usize {
    let mut digits = 1;
    while number >= 10 {
        number /= 10;
        digits += 1;
    }
    digits
}

/// Calls `each` with every record.
pub(crate) fn records<'a>(
    mut data: &'a [u8],
    mut each: impl FnMut(&'a [u8], &'a [u8]) -> Result<()>,
) -> Result<()> {
    let broken = || Failed::malformed("an extended header makes no sense");
    while !data.is_empty() {
        let space = data.iter().take(8).position(|byte| *byte == b' ').ok_or_else(broken)?;
        let length = decimal(&data[..space]).ok_or_else(broken)?;
        if length <= space + 1 || length > data.len() {
            return Err(broken());
        }
        let (record, rest) = data.split_at(length);
        let record = record[space + 1..].strip_suffix(b"\n").ok_or_else(broken)?;
        let equals = record.iter().position(|byte| *byte == b'=').ok_or_else(broken)?;
        each(&record[..equals], &record[equals + 1..])?;
        data = rest;
    }
    Ok(())
}

/// A number without a sign.
pub(crate) fn decimal<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    str::from_utf8(text).ok()?.parse().ok()
}

/// Whole seconds of a time such as `-12.5`, towards the past.
pub(crate) fn seconds(text: &[u8]) -> Option<i64> {
    let (whole, fraction) = match text.iter().position(|byte| *byte == b'.') {
        Some(point) => (&text[..point], &text[point + 1..]),
        None => (text, &b""[..]),
    };
    if !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    match whole.strip_prefix(b"-") {
        Some(digits) => {
            let whole: i64 = decimal(digits)?;
            let begun = i64::from(fraction.iter().any(|digit| *digit != b'0'));
            whole.checked_neg()?.checked_sub(begun)
        }
        None => decimal(whole),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(data: &[u8]) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut found = Vec::new();
        records(data, |key, value| {
            found.push((key.to_vec(), value.to_vec()));
            Ok(())
        })?;
        Ok(found)
    }

    proptest! {
        #[test]
        fn every_record_is_read_as_it_was_written(values: Vec<Vec<u8>>) {
            let mut data = Vec::new();
            for value in &values {
                record(&mut data, "path", value);
            }
            let found = read(&data).unwrap();
            prop_assert_eq!(found, values.into_iter().map(|v| (b"path".to_vec(), v)).collect::<Vec<_>>());
        }

        #[test]
        fn no_bytes_are_too_strange_to_be_refused(data: Vec<u8>) {
            let _ = read(&data);
        }
    }

    #[test]
    fn lengths_count_their_own_digits() {
        for size in [1, 80, 90, 91, 92, 93, 980, 990, 991, 992] {
            let mut data = Vec::new();
            record(&mut data, "k", &vec![b'v'; size]);
            let text = String::from_utf8(data.clone()).unwrap();
            assert_eq!(text.split(' ').next().unwrap().parse::<usize>().unwrap(), data.len());
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for data in [
            "x",
            "0 a=b\n",
            "6 a=b\n6",
            "7 a=b\n",
            "5 a=b\n",
            "6 a:b\n",
            "-6 a=b\n",
            "99999999999999999999999 a=b\n",
        ] {
            assert!(read(data.as_bytes()).is_err(), "{data}");
        }
    }

    #[test]
    fn times_are_read() {
        for (text, expected) in [
            ("12", Some(12)),
            ("12.9", Some(12)),
            ("-1.5", Some(-2)),
            ("-3", Some(-3)),
            ("1e3", None),
            ("", None),
            ("+1", None),
        ] {
            assert_eq!(seconds(text.as_bytes()), expected, "{text}");
        }
    }
}
