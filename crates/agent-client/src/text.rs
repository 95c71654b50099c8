//! Words from inside a sandbox, made fit to be shown and logged.

const LONGEST: usize = 300;

/// The text without what could move a terminal's cursor or forge a line of a log, and not long.
pub(crate) fn plain(text: &str) -> String {
    let mut plain: String = text.chars().map(harmless).take(LONGEST).collect();
    if text.chars().nth(LONGEST).is_some() {
        plain.push('…');
    }
    plain
}

fn harmless(c: char) -> char {
    let turns_text = matches!(c,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    if c.is_control() || turns_text { '\u{fffd}' } else { c }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_controls_a_terminal_is_left() {
        assert_eq!(
            plain("a\x1b[2Jb\r\nc\u{9b}d\u{202e}e"),
            "a\u{fffd}[2Jb\u{fffd}\u{fffd}c\u{fffd}d\u{fffd}e"
        );
        assert_eq!(plain("/home/user/ärger"), "/home/user/ärger");
    }

    #[test]
    fn long_words_are_cut() {
        let text = plain(&"ä".repeat(10_000));

        assert_eq!(text.chars().count(), LONGEST + 1);
        assert!(text.ends_with('…'));
    }
}
