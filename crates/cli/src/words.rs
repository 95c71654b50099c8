//! Values as people read them.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

/// A word of the wire: `create_failed` as it is spelled there.
pub(crate) fn of(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

/// How long ago that was.
pub(crate) fn since(then: Timestamp) -> String {
    span(Timestamp::now().duration_since(then).try_into().unwrap_or_default())
}

/// How long it is until then.
pub(crate) fn until(then: Timestamp) -> String {
    span(then.duration_since(Timestamp::now()).try_into().unwrap_or_default())
}

/// A time in its two largest units: `3s`, `5m 10s`, `2h 5m`, `3d 4h`.
pub(crate) fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    let units = [("d", 86400), ("h", 3600), ("m", 60), ("s", 1)];
    let first = units.iter().position(|(_, length)| seconds >= *length).unwrap_or(3);
    let (unit, length) = units[first];
    let large = format!("{}{unit}", seconds / length);
    match units.get(first + 1) {
        Some((unit, shorter)) if seconds % length / shorter > 0 => {
            format!("{large} {}{unit}", seconds % length / shorter)
        }
        _ => large,
    }
}

/// A number of bytes: `512 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    indicatif::HumanBytes(bytes).to_string()
}

/// A signal: `11 (SIGSEGV)`. Those without a name are a number.
pub(crate) fn signal(number: i32) -> String {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
        "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
        "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    let name = usize::try_from(number).ok().and_then(|number| NAMES.get(number.checked_sub(1)?));
    name.map_or_else(|| number.to_string(), |name| format!("{number} (SIG{name})"))
}

/// What a server advises, in the words of the command line. Other fields it names are settings.
pub(crate) fn advice(said: &str) -> String {
    said.replace("mark the request `\"trusted\": true`", "say --trusted").replace(
        "say it in `language`, or run the file as a `command`",
        "say it with -l, as in -l python",
    )
}

/// What a server says of a request's fields, in the words of the command line.
pub(crate) fn flags(said: &str) -> String {
    const FLAGS: [(&str, &str); 14] = [
        ("`limits.memory`", "--memory"),
        ("`limits.cpus`", "--cpus"),
        ("`limits.cpu_time`", "--cpu-time"),
        ("`limits.pids`", "--pids"),
        ("`limits.disk`", "--disk"),
        ("`limits.output`", "--output"),
        ("`timeout`", "--timeout"),
        ("`language`:", "--language:"),
        ("`environment`:", "--environment:"),
        ("`engine`:", "--engine:"),
        ("`metadata`:", "--metadata:"),
        ("`mounts`:", "--volume:"),
        ("`env`:", "--env:"),
        ("`cwd`:", "--cwd:"),
    ];
    FLAGS.iter().fold(said.to_owned(), |said, (field, flag)| said.replace(field, flag))
}

/// A text somebody else chose, with nothing in it that a terminal would obey.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let escaped = c.is_control().then(|| c.escape_default());
            let plain = if c.is_control() { None } else { Some(c) };
            escaped.into_iter().flatten().chain(plain)
        })
        .collect()
}

/// A text in lines of at most that many letters, broken between words.
pub(crate) fn wrap(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last().map_or(0, |line| line.chars().count());
        if line > 0 && line + 1 + word.chars().count() > most {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

/// Names and values, one pair to a line, the values beneath each other.
pub(crate) fn pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let pairs: Vec<_> = pairs.into_iter().collect();
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines: Vec<_> =
        pairs.iter().map(|(name, value)| format!("{name:width$}  {value}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_told_in_its_two_largest_units() {
        let shown = [0, 3, 60, 310, 7500, 273_600].map(|s| span(Duration::from_secs(s)));

        assert_eq!(shown, ["0s", "3s", "1m", "5m 10s", "2h 5m", "3d 4h"]);
    }

    #[test]
    fn a_signal_has_its_name() {
        let shown = [1, 11, 31, 34, 0].map(signal);

        assert_eq!(shown, ["1 (SIGHUP)", "11 (SIGSEGV)", "31 (SIGSYS)", "34", "0"]);
    }

    #[test]
    fn fields_are_flags_here() {
        let asked = "use another, or mark the request `\"trusted\": true`";
        let setting = "the operator lists it under `mounts`";

        assert_eq!(flags("`limits.memory` is 2g"), "--memory is 2g");
        assert_eq!(advice(asked), "use another, or say --trusted");
        assert_eq!(advice(setting), setting);
    }

    #[test]
    fn an_escape_sequence_is_shown_not_obeyed() {
        assert_eq!(printable("a\u{1b}[31mb\nä"), "a\\u{1b}[31mb\\nä");
    }

    #[test]
    fn a_long_text_is_broken_between_words() {
        assert_eq!(wrap("aa bb cc d", 5), ["aa bb", "cc d"]);
        assert_eq!(wrap("longer-than-that b", 5), ["longer-than-that", "b"]);
        assert_eq!(wrap("", 5), [""]);
    }

    #[test]
    fn values_stand_beneath_each_other() {
        assert_eq!(pairs([("a", "1"), ("long", "2")]), "a     1\nlong  2");
    }
}
