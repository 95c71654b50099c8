//! `STDOUT[:STDERR]`, in bytes.

use std::str::FromStr;

use atoll_types::process::Written;

/// Where to begin in each stream of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) Written);

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (stdout, stderr) = text.split_once(':').unwrap_or((text, "0"));
        let number =
            |text: &str| text.parse().map_err(|_| format!("`{text}` is not a number of bytes"));
        Ok(Self(Written { stdout: number(stdout)?, stderr: number(stderr)? }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_is_of_standard_output() {
        let parsed = |text: &str| text.parse::<Bytes>().map(|Bytes(at)| (at.stdout, at.stderr));

        assert_eq!(parsed("120"), Ok((120, 0)));
        assert_eq!(parsed("120:7"), Ok((120, 7)));
        assert!(parsed("").is_err() && parsed("-1").is_err() && parsed("1:").is_err());
    }
}
