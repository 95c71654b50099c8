//! Watches what goes to the user's terminal: which questions it is asked, which modes it is left in.

use std::collections::BTreeSet;

use super::sequence::{Parser, Sequence, Step};

/// Modes (`CSI ? n h`) that would spoil what comes after: keys, screens, mouse, paste, focus.
const SPOILING: [u16; 16] =
    [1, 9, 47, 66, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 1047, 1049, 2004];
/// Modes in which a terminal speaks without being asked.
const TALKATIVE: [u16; 7] = [9, 1000, 1001, 1002, 1003, 1004, 2004];
/// Shows the cursor, unless it was reset.
const CURSOR: u16 = 25;
/// Longer texts of the past, such as pictures, are not shown again.
const HELD: usize = 64 << 10;

#[derive(Debug, Default)]
pub(crate) struct Watch {
    parser: Parser,
    /// The sequence that is not yet complete, where questions are left out.
    held: Vec<u8>,
    asked: bool,
    left: BTreeSet<Left>,
}

/// A way in which a terminal is not as a shell wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Left {
    /// Only some lines scroll.
    Region,
    Mode(u16),
    HiddenCursor,
    Keypad,
    /// Keys are told in another way.
    Keyboard,
}

impl Watch {
    /// Passes on what is shown. Of what was shown before, questions are left out.
    pub(crate) fn pass(&mut self, shown: &[u8], before: bool, on: &mut Vec<u8>) {
        let live = !before && self.held.is_empty();
        if live {
            on.extend_from_slice(shown);
        }
        for (index, byte) in shown.iter().enumerate() {
            if live && self.parser.is_plain(*byte) {
                continue;
            }
            let step = self.parser.step(*byte);
            let asks = matches!(&step, Step::End(sequence) if sequence.asks());
            let within = matches!(step, Step::Within);
            if let Step::End(sequence) = &step {
                note(sequence, &mut self.left);
            }
            if live {
                self.asked |= asks;
                continue;
            }
            if self.held.len() < HELD {
                self.held.push(*byte);
            }
            if within {
                continue;
            }
            if asks || self.held.len() == HELD {
                self.held.clear();
            }
            on.append(&mut self.held);
            if !before {
                // That was the last of the past.
                return self.pass(&shown[index + 1..], false, on);
            }
        }
    }

    /// Whether something may still come that nobody typed.
    pub(crate) fn expects_answers(&self) -> bool {
        self.asked || TALKATIVE.iter().any(|mode| self.left.contains(&Left::Mode(*mode)))
    }

    /// What sets the terminal back to how a shell wants it.
    pub(crate) fn undo(&self) -> Vec<u8> {
        let mut undo = Vec::new();
        if !self.parser.is_idle() {
            // CAN: ends what was left unfinished.
            undo.push(0x18);
        }
        for left in &self.left {
            match left {
                Left::Region => undo.extend_from_slice(b"\x1b7\x1b[r\x1b8"),
                Left::Mode(mode) => undo.extend_from_slice(format!("\x1b[?{mode}l").as_bytes()),
                Left::HiddenCursor => undo.extend_from_slice(b"\x1b[?25h"),
                Left::Keypad => undo.extend_from_slice(b"\x1b>"),
                Left::Keyboard => undo.extend_from_slice(b"\x1b[<99u\x1b[>4m"),
            }
        }
        // Plain letters in no colour.
        undo.extend_from_slice(b"\x1b(B\x0f\x1b[0m");
        undo
    }
}

/// Notes what a sequence leaves behind, or sets back.
fn note(sequence: &Sequence<'_>, left: &mut BTreeSet<Left>) {
    let mut set = |what, so: bool| {
        if so {
            left.insert(what);
        } else {
            left.remove(&what);
        }
    };
    match sequence {
        Sequence::Escape(b'=') => set(Left::Keypad, true),
        Sequence::Escape(b'>') => set(Left::Keypad, false),
        Sequence::Escape(b'c') | Sequence::Control([b'!'], b'p') => left.clear(),
        Sequence::Control([b'?', modes @ ..], last @ (b'h' | b'l')) => {
            for mode in known(modes) {
                match mode {
                    CURSOR => set(Left::HiddenCursor, *last == b'l'),
                    mode => set(Left::Mode(mode), *last == b'h'),
                }
            }
        }
        Sequence::Control([b'>' | b'=', ..], b'u' | b'm') => set(Left::Keyboard, true),
        Sequence::Control(content, b'r') if !content.starts_with(b"?") => {
            set(Left::Region, !content.is_empty());
        }
        _ => {}
    }
}

/// Those modes of a list that matter.
fn known(modes: &[u8]) -> Vec<u16> {
    let numbers = modes.split(|byte| *byte == b';');
    let numbers = numbers.filter_map(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    numbers.filter(|mode| *mode == CURSOR || SPOILING.contains(mode)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(parts: &[&[u8]], before: bool) -> (Vec<u8>, Watch) {
        let mut watch = Watch::default();
        let mut on = Vec::new();
        for part in parts {
            watch.pass(part, before, &mut on);
        }
        (on, watch)
    }

    #[test]
    fn what_comes_now_is_passed_on_as_it_is() {
        let all = b"a\x1b[31mb\x1b[c\x1b]11;?\x07c\x1b]0;t";

        let (on, watch) = passed(&[all], false);

        assert_eq!(on, all);
        assert!(watch.expects_answers());
    }

    #[test]
    fn questions_of_the_past_are_not_asked_again() {
        let all = b"a\x1b[31mb\x1b[c\x1b]11;?\x07c\x1b[6nd\x05e\x1bP$qm\x1b\\f";

        for size in [1, 2, 3, 7, 100] {
            let parts: Vec<_> = all.chunks(size).collect();
            let (on, watch) = passed(&parts, true);
            assert_eq!(String::from_utf8(on).unwrap(), "a\x1b[31mbcdef", "in parts of {size}");
            assert!(!watch.expects_answers());
        }
    }

    #[test]
    fn a_question_half_in_the_past_is_not_asked_either() {
        let mut watch = Watch::default();
        let mut on = Vec::new();

        watch.pass(b"a\x1b[", true, &mut on);
        watch.pass(b"cb\x1b[c", false, &mut on);

        assert_eq!(on, b"ab\x1b[c");
    }

    #[test]
    fn long_texts_are_not_kept_for_ever() {
        let long = [&b"a\x1bPq"[..], &vec![b'~'; 3 * HELD], b"\x1b\\b\x1bPq~\x1b\\c"].concat();

        let parts: Vec<_> = long.chunks(5000).collect();
        let (on, _) = passed(&parts, true);

        assert_eq!(on, b"ab\x1bPq~\x1b\\c");
    }

    #[test]
    fn modes_are_set_back_if_they_were_set() {
        let undone = |shown: &[u8]| String::from_utf8(passed(&[shown], false).1.undo()).unwrap();
        let plain = "\x1b(B\x0f\x1b[0m";

        assert_eq!(undone(b"nothing"), plain);
        assert_eq!(undone(b"\x1b[?1049h\x1b[?1049l\x1b[?25l\x1b[?25h"), plain);
        assert_eq!(undone(b"\x1b[?1000;1006;7h"), format!("\x1b[?1000l\x1b[?1006l{plain}"));
        assert_eq!(undone(b"\x1b[?25l\x1b="), format!("\x1b[?25h\x1b>{plain}"));
        assert_eq!(undone(b"\x1b[2;10r"), format!("\x1b7\x1b[r\x1b8{plain}"));
        assert_eq!(undone(b"\x1b]0;never ended"), format!("\x18{plain}"));
        assert_eq!(undone(b"\x1b[?1049h\x1bc"), plain);
    }
}
