//! Control sequences: what terminals are told besides what they show.

/// Parameters, or the text of a string, that are looked at; what is longer asks nothing.
const LONGEST: usize = 1024;

/// One sequence, complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sequence<'a> {
    /// A single control character, or `ESC` and a letter.
    Escape(u8),
    /// `CSI`, what follows it, and its last byte.
    Control(&'a [u8], u8),
    /// Operating system command.
    Command(&'a [u8]),
    /// Device control string.
    Device(&'a [u8]),
    /// Application program command.
    Application(&'a [u8]),
}

/// Where in the stream of bytes a terminal is.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    state: State,
    /// What the sequence holds so far.
    content: Vec<u8>,
    /// Bytes of a letter in UTF-8 that are still to come: these are no controls.
    letter: u8,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    /// After the first byte of a control of UTF-8, U+0080 to U+009F, or of a letter.
    Wide,
    Escape,
    /// `ESC` and something that is followed by one more byte.
    Charset,
    Control,
    Text(Kind),
    /// After an `ESC` in a text, which ends it.
    TextEscape(Kind),
    TextWide(Kind),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Command,
    Device,
    Application,
    /// Nothing looks at these.
    Other,
}

/// What one byte was.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    /// Something to show.
    Plain,
    /// Part of a sequence that goes on.
    Within,
    /// The last byte of one.
    End(Sequence<'a>),
    /// The last byte of one that is none, or of no interest.
    Nothing,
}

impl Parser {
    /// Whether the last sequence is complete.
    pub(crate) fn is_idle(&self) -> bool {
        self.state == State::Ground
    }

    /// Whether this byte would be shown and change nothing else.
    pub(crate) fn is_plain(&self, byte: u8) -> bool {
        self.state == State::Ground
            && self.letter == 0
            && matches!(byte, b' '..=b'~' | b'\n' | b'\r')
    }

    pub(crate) fn step(&mut self, byte: u8) -> Step<'_> {
        match self.state {
            State::Ground => self.ground(byte),
            // CAN and SUB end whatever there is.
            _ if matches!(byte, 0x18 | 0x1a) => self.end(),
            State::Wide => match byte {
                0x80..=0x9f => self.introduced(byte),
                _ => self.plain(),
            },
            State::Escape => self.escape(byte),
            State::Charset => match byte {
                0x20..=0x2f => Step::Within,
                _ => self.end(),
            },
            State::Control => self.control(byte),
            State::Text(kind) => match byte {
                0x1b => self.within(State::TextEscape(kind)),
                0xc2 => self.within(State::TextWide(kind)),
                0x07 if kind == Kind::Command => self.text(kind),
                0x9c => self.text(kind),
                _ => self.hold(byte),
            },
            State::TextWide(kind) if byte == 0x9c => self.text(kind),
            State::TextWide(kind) => {
                self.state = State::Text(kind);
                self.hold(byte)
            }
            State::TextEscape(kind) => match byte {
                b'\\' => self.text(kind),
                // An `ESC` ends it without `\`, too, and begins the next.
                _ => self.escape(byte),
            },
        }
    }

    fn escape(&mut self, byte: u8) -> Step<'_> {
        match byte {
            b'[' => self.begin(State::Control),
            b']' => self.begin(State::Text(Kind::Command)),
            b'P' => self.begin(State::Text(Kind::Device)),
            b'_' => self.begin(State::Text(Kind::Application)),
            b'X' | b'^' | b'k' => self.begin(State::Text(Kind::Other)),
            0x20..=0x2f => self.begin(State::Charset),
            0x1b => self.begin(State::Escape),
            _ => {
                self.state = State::Ground;
                Step::End(Sequence::Escape(byte))
            }
        }
    }

    fn control(&mut self, byte: u8) -> Step<'_> {
        match byte {
            0x20..=0x3f => self.hold(byte),
            0x40..=0x7e => {
                self.state = State::Ground;
                Step::End(Sequence::Control(&self.content, byte))
            }
            0x1b => self.begin(State::Escape),
            // Controls within a sequence are obeyed by terminals as if they stood before it.
            0x00..=0x1f | 0x7f => Step::Within,
            _ => self.end(),
        }
    }

    fn ground(&mut self, byte: u8) -> Step<'_> {
        if self.letter > 0 {
            if byte & 0xc0 == 0x80 {
                self.letter -= 1;
                return Step::Plain;
            }
            self.letter = 0;
        }
        match byte {
            0x1b => self.begin(State::Escape),
            0x05 => Step::End(Sequence::Escape(byte)),
            0xc2 => self.within(State::Wide),
            0x80..=0x9f => self.introduced(byte),
            0xc3..=0xdf => self.letter(1),
            0xe0..=0xef => self.letter(2),
            0xf0..=0xf7 => self.letter(3),
            _ => Step::Plain,
        }
    }

    /// A control of one byte that stands for `ESC` and another.
    fn introduced(&mut self, byte: u8) -> Step<'_> {
        match byte {
            0x90 => self.begin(State::Text(Kind::Device)),
            0x9b => self.begin(State::Control),
            0x9d => self.begin(State::Text(Kind::Command)),
            0x9f => self.begin(State::Text(Kind::Application)),
            0x98 | 0x9e => self.begin(State::Text(Kind::Other)),
            _ => {
                self.state = State::Ground;
                Step::End(Sequence::Escape(byte - 0x40))
            }
        }
    }

    fn plain(&mut self) -> Step<'_> {
        self.state = State::Ground;
        Step::Plain
    }

    fn letter(&mut self, more: u8) -> Step<'_> {
        self.letter = more;
        Step::Plain
    }

    fn begin(&mut self, state: State) -> Step<'_> {
        self.content.clear();
        self.within(state)
    }

    fn within(&mut self, state: State) -> Step<'_> {
        self.state = state;
        Step::Within
    }

    fn hold(&mut self, byte: u8) -> Step<'_> {
        if self.content.len() < LONGEST {
            self.content.push(byte);
        }
        Step::Within
    }

    fn end(&mut self) -> Step<'_> {
        self.state = State::Ground;
        Step::Nothing
    }

    fn text(&mut self, kind: Kind) -> Step<'_> {
        self.state = State::Ground;
        match kind {
            Kind::Command => Step::End(Sequence::Command(&self.content)),
            Kind::Device => Step::End(Sequence::Device(&self.content)),
            Kind::Application => Step::End(Sequence::Application(&self.content)),
            Kind::Other => Step::Nothing,
        }
    }
}

impl Sequence<'_> {
    /// Whether terminals answer it, as if someone typed.
    pub(crate) fn asks(&self) -> bool {
        match self {
            // ENQ, and what terminals were once asked their kind with.
            Self::Escape(byte) => matches!(byte, 0x05 | b'Z'),
            Self::Control(content, last) => asks(content, *last),
            // A colour, the clipboard, … written as `?`.
            Self::Command(content) => content.contains(&b'?'),
            Self::Device(content) => content.starts_with(b"$q") || content.starts_with(b"+q"),
            // Graphics, which are acknowledged.
            Self::Application(content) => content.starts_with(b"G"),
        }
    }
}

fn asks(content: &[u8], last: u8) -> bool {
    let has = |byte| content.contains(&byte);
    match last {
        // Its kind, its state, its parameters.
        b'c' | b'n' | b'x' => true,
        // Modes, presentation, checksums.
        b'p' | b'w' => has(b'$'),
        b'y' => has(b'*'),
        // Name, keyboard, graphics.
        b'q' => has(b'>'),
        b'u' | b'S' => has(b'?'),
        // Position, size, title of the window.
        b't' => {
            let first = content.split(|byte| *byte == b';').next().unwrap_or_default();
            let number = std::str::from_utf8(first).ok().and_then(|text| text.parse::<u16>().ok());
            number.is_some_and(|number| (11..=21).contains(&number))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequences(bytes: &[u8]) -> Vec<(String, bool)> {
        let mut parser = Parser::default();
        let mut all = Vec::new();
        for byte in bytes {
            if let Step::End(sequence) = parser.step(*byte) {
                all.push((format!("{sequence:?}"), sequence.asks()));
            }
        }
        all
    }

    #[test]
    fn questions_are_known_however_they_are_written() {
        for question in [
            &b"\x05"[..],
            b"\x1bZ",
            b"\x1b[c",
            b"\x1b[>c",
            b"\x1b[=0c",
            b"\x1b[6n",
            b"\x1b[?6n",
            b"\x1b[5\x0an",
            b"\x1b[?2026$p",
            b"\x1b[>0q",
            b"\x1b[?u",
            b"\x1b[21t",
            b"\x1b[18t",
            b"\x1b]11;?\x07",
            b"\x1b]4;1;?\x1b\\",
            b"\x1b]52;c;?\x1b\\",
            b"\x1bP$qm\x1b\\",
            b"\x1bP+q544e\x1b\\",
            b"\x1b_Gi=1,a=q;AAAA\x1b\\",
            b"\x9bc",
            b"\xc2\x9bc",
            b"\xc2\x9d11;?\xc2\x9c",
            b"\x90$qm\x9c",
            b"\x9a",
            "ä\x1b[c".as_bytes(),
            b"\x1b]0;title\x1b[c",
            b"\x1b[1\x1b[c",
        ] {
            let found = sequences(question);
            assert_eq!(found.last().map(|(_, asks)| *asks), Some(true), "{question:?}: {found:?}");
        }
    }

    #[test]
    fn everything_else_asks_nothing() {
        for statement in [
            &b"\x1b[31m"[..],
            b"\x1b[2J",
            b"\x1b[?1049h",
            b"\x1b[22;0;0t",
            b"\x1b[1 q",
            b"\x1b[u",
            b"\x1b]0;title\x07",
            b"\x1b]8;;http://example\x1b\\",
            b"\x1b(0",
            b"\x1b=",
            b"\x1bPq#0;2;0;0;0\x1b\\",
            "Ûc äöü €c 😀[c".as_bytes(),
            b"\x1b[\x18c",
            b"\x1b]0;\x18c",
        ] {
            let found = sequences(statement);
            assert!(found.iter().all(|(_, asks)| !asks), "{statement:?}: {found:?}");
        }
    }

    #[test]
    fn it_knows_whether_it_is_within_something() {
        let mut parser = Parser::default();
        for byte in b"plain\x1b[1;2mplain" {
            parser.step(*byte);
        }
        assert!(parser.is_idle());
        parser.step(0x1b);
        parser.step(b']');
        assert!(!parser.is_idle());
    }
}
