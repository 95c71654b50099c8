//! Patterns for names of files, matched one part of a path at a time, so that a walk need not go
//! where nothing can match.

use atoll_agent_protocol::message::Failure;

use crate::failure::invalid;

/// Bytes of a pattern.
const MAX_LENGTH: usize = 4096;
/// Patterns that braces may stand for.
const MAX_ALTERNATIVES: usize = 64;
/// Parts of one of them: the bits of a state.
const MAX_PARTS: usize = 60;

/// What is looked for.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    alternatives: Vec<Vec<Part>>,
    hidden: bool,
}

/// How far each alternative has come: a bit for each part that may be next.
pub(super) type State = Box<[u64]>;

#[derive(Debug, Clone, PartialEq)]
enum Part {
    /// Any number of directories.
    Directories,
    Name(Vec<Token>),
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Any,
    One,
    Sign(u32),
    Set { except: bool, ranges: Vec<(u32, u32)> },
}

impl Pattern {
    /// A pattern for paths below a directory; `hidden` if wildcards stand for leading dots, too.
    pub(super) fn new(text: &str, hidden: bool) -> Result<Self, Failure> {
        if text.is_empty() {
            return Err(invalid("the pattern is empty"));
        }
        if text.len() > MAX_LENGTH || text.contains('\0') {
            return Err(invalid("the pattern is too long, or holds a NUL"));
        }
        if text.starts_with('/') {
            return Err(invalid("a pattern is relative: give the directory as the path"));
        }
        let signs: Vec<char> = text.chars().collect();
        let alternatives: Result<Vec<_>, _> =
            expand(&signs)?.iter().map(|one| parts(one)).collect();
        Ok(Self { alternatives: alternatives?, hidden })
    }

    /// A pattern without `/` is for names, wherever they are.
    pub(super) fn anywhere(mut self) -> Self {
        for parts in &mut self.alternatives {
            if parts.len() == 1 {
                parts.insert(0, Part::Directories);
            }
        }
        self
    }

    pub(super) fn start(&self) -> State {
        self.alternatives.iter().map(|parts| closure(parts, 1)).collect()
    }

    /// Goes one name further: whether that is a match, and where others may be below it.
    pub(super) fn step(&self, state: &State, name: &[u8]) -> (bool, Option<State>) {
        let signs = signs(name);
        let mut matched = false;
        let next: State = (self.alternatives.iter().zip(state))
            .map(|(parts, state)| {
                let next = self.step_one(parts, *state, &signs);
                let end = 1 << parts.len();
                matched |= next & end != 0;
                next & !end
            })
            .collect();
        let more = next.iter().any(|state| *state != 0);
        (matched, more.then_some(next))
    }

    fn step_one(&self, parts: &[Part], state: u64, name: &[u32]) -> u64 {
        let hidden = name.first() == Some(&u32::from('.'));
        let mut next = 0;
        for (index, part) in parts.iter().enumerate() {
            if state & (1 << index) == 0 {
                continue;
            }
            match part {
                Part::Directories if !hidden || self.hidden => next |= 1 << index,
                Part::Directories => {}
                Part::Name(tokens) => {
                    let says_so = tokens.first() == Some(&Token::Sign(u32::from('.')));
                    if (!hidden || self.hidden || says_so) && matches(tokens, name) {
                        next |= 1 << (index + 1);
                    }
                }
            }
        }
        closure(parts, next)
    }
}

/// `**` may stand for no directory at all.
fn closure(parts: &[Part], mut state: u64) -> u64 {
    for (index, part) in parts.iter().enumerate() {
        if *part == Part::Directories && state & (1 << index) != 0 {
            state |= 1 << (index + 1);
        }
    }
    state
}

/// Bytes that are no UTF-8 are signs of their own, beyond all others.
fn signs(name: &[u8]) -> Vec<u32> {
    let mut signs = Vec::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        signs.extend(chunk.valid().chars().map(u32::from));
        signs.extend(chunk.invalid().iter().map(|byte| 0x11_0000 + u32::from(*byte)));
    }
    signs
}

/// Goes back to the last `*` only, so that no name takes long.
fn matches(tokens: &[Token], name: &[u32]) -> bool {
    let (mut token, mut at) = (0, 0);
    let mut retry = None;
    loop {
        match tokens.get(token) {
            Some(Token::Any) => {
                token += 1;
                retry = Some((token, at));
                continue;
            }
            Some(one) if name.get(at).is_some_and(|sign| one.takes(*sign)) => {
                (token, at) = (token + 1, at + 1);
                continue;
            }
            None if at == name.len() => return true,
            _ => {}
        }
        match retry {
            Some((after, from)) if from < name.len() => {
                (token, at) = (after, from + 1);
                retry = Some((after, from + 1));
            }
            _ => return false,
        }
    }
}

impl Token {
    fn takes(&self, sign: u32) -> bool {
        match self {
            Self::Any => false,
            Self::One => true,
            Self::Sign(one) => *one == sign,
            Self::Set { except, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&sign)) != *except
            }
        }
    }
}

/// All that braces stand for, in order.
fn expand(signs: &[char]) -> Result<Vec<Vec<char>>, Failure> {
    let mut done = Vec::new();
    let mut todo = vec![signs.to_vec()];
    while let Some(text) = todo.pop() {
        match braces(&text)? {
            None => done.push(text),
            Some((open, choices, close)) => {
                for (start, end) in choices.into_iter().rev() {
                    todo.push([&text[..open], &text[start..end], &text[close + 1..]].concat());
                }
            }
        }
        if done.len() + todo.len() > MAX_ALTERNATIVES {
            let most = format!("the pattern's braces stand for more than {MAX_ALTERNATIVES}");
            return Err(invalid(most));
        }
    }
    Ok(done)
}

/// The first brace, where each of its choices begins and ends, and the brace that closes it.
type Braces = (usize, Vec<(usize, usize)>, usize);

fn braces(text: &[char]) -> Result<Option<Braces>, Failure> {
    let (mut open, mut depth) = (None, 0);
    let mut cuts = Vec::new();
    let mut at = 0;
    while let Some(sign) = text.get(at) {
        match sign {
            '\\' => at += 1,
            '[' => at = set_end(text, at)?,
            '{' => {
                depth += 1;
                if depth == 1 {
                    open = Some(at);
                    cuts.push(at);
                }
            }
            ',' if depth == 1 => cuts.push(at),
            '}' if depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    cuts.push(at);
                    let choices = cuts.windows(2).map(|pair| (pair[0] + 1, pair[1])).collect();
                    return Ok(Some((open.unwrap_or(0), choices, at)));
                }
            }
            _ => {}
        }
        at += 1;
    }
    match open {
        Some(open) => Err(invalid(format!("the pattern's `{{` at {} is not closed", open + 1))),
        None => Ok(None),
    }
}

/// Where a set that begins here ends. A `]` that comes first is in it.
fn set_end(text: &[char], start: usize) -> Result<usize, Failure> {
    let mut at = start + 1;
    if matches!(text.get(at), Some('!' | '^')) {
        at += 1;
    }
    if text.get(at) == Some(&']') {
        at += 1;
    }
    while let Some(sign) = text.get(at) {
        match sign {
            '\\' => at += 1,
            ']' => return Ok(at),
            '/' => break,
            _ => {}
        }
        at += 1;
    }
    Err(invalid(format!("the pattern's `[` at {} is not closed", start + 1)))
}

fn parts(text: &[char]) -> Result<Vec<Part>, Failure> {
    let mut parts = Vec::new();
    for part in text.split(|sign| *sign == '/') {
        match part {
            [] | ['.'] => {}
            ['.', '.'] => return Err(invalid("a pattern does not go up: it holds `..`")),
            ['*', '*'] if parts.last() == Some(&Part::Directories) => {}
            ['*', '*'] => parts.push(Part::Directories),
            part => parts.push(Part::Name(tokens(part)?)),
        }
    }
    // `a/**` is what is in `a`, not `a` itself.
    if parts.last() == Some(&Part::Directories) {
        parts.push(Part::Name(vec![Token::Any]));
    }
    match parts.len() {
        0 => Err(invalid("the pattern names nothing")),
        1..=MAX_PARTS => Ok(parts),
        _ => Err(invalid("the pattern has too many parts")),
    }
}

fn tokens(part: &[char]) -> Result<Vec<Token>, Failure> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(sign) = part.get(at) {
        match sign {
            '*' if tokens.last() == Some(&Token::Any) => {}
            '*' => tokens.push(Token::Any),
            '?' => tokens.push(Token::One),
            '[' => {
                let end = set_end(part, at)?;
                tokens.push(set(&part[at + 1..end])?);
                at = end;
            }
            '\\' => {
                at += 1;
                let sign = part.get(at).ok_or_else(|| invalid("the pattern ends in `\\`"))?;
                tokens.push(Token::Sign(u32::from(*sign)));
            }
            sign => tokens.push(Token::Sign(u32::from(*sign))),
        }
        at += 1;
    }
    Ok(tokens)
}

/// What is between `[` and `]`.
fn set(text: &[char]) -> Result<Token, Failure> {
    let (except, text) = match text {
        ['!' | '^', rest @ ..] => (true, rest),
        text => (false, text),
    };
    let mut signs = Vec::new();
    let mut escaped = false;
    for sign in text {
        if *sign == '\\' && !escaped {
            escaped = true;
            continue;
        }
        signs.push((u32::from(*sign), *sign == '-' && !escaped));
        escaped = false;
    }
    let mut ranges = Vec::new();
    let mut rest = &signs[..];
    while let Some(((low, _), after)) = rest.split_first() {
        match after {
            [(_, true), (high, _), after @ ..] => {
                if low > high {
                    return Err(invalid("a set of the pattern has a range that runs backwards"));
                }
                ranges.push((*low, *high));
                rest = after;
            }
            after => {
                ranges.push((*low, *low));
                rest = after;
            }
        }
    }
    Ok(Token::Set { except, ranges })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, hidden: bool, path: &str) -> bool {
        let pattern = Pattern::new(pattern, hidden).unwrap();
        let mut state = Some(pattern.start());
        let mut matched = false;
        for name in path.split('/') {
            let Some(here) = state else { return false };
            (matched, state) = pattern.step(&here, name.as_bytes());
        }
        matched
    }

    #[test]
    fn names_are_matched_by_their_parts() {
        let cases = [
            ("*.rs", "a.rs", true),
            ("*.rs", "src/a.rs", false),
            ("**/*.rs", "a.rs", true),
            ("**/*.rs", "src/deep/a.rs", true),
            ("src/**", "src/deep/a.rs", true),
            ("src/**", "src", false),
            ("src/**/a.rs", "src/a.rs", true),
            ("src/**/a.rs", "src/x/y/a.rs", true),
            ("**/a/**/b", "x/a/y/z/b", true),
            ("a?c", "abc", true),
            ("a?c", "aäc", true),
            ("a?c", "ac", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[!a-c]x", "dx", true),
            ("[]]", "]", true),
            ("[a\\-c]", "b", false),
            ("[a\\-c]", "-", true),
            ("{a,b/c}.txt", "a.txt", true),
            ("{a,b/c}.txt", "b/c.txt", true),
            ("{a,{b,c}}d", "cd", true),
            ("{a,}d", "d", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("./a//b", "a/b", true),
            ("a*b*c*d", "axxbyyczzd", true),
            ("a*b*c*d", "axxbyyczz", false),
            ("}", "}", true),
        ];
        for (pattern, path, expected) in cases {
            assert_eq!(found(pattern, false, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn hidden_names_are_found_by_those_who_say_so() {
        let cases = [
            ("*", ".a", false),
            (".*", ".a", true),
            ("[.]a", ".a", false),
            ("?a", ".a", false),
            ("**/b", ".a/b", false),
            (".a/**/b", ".a/c/b", true),
            ("**/.b", "a/.b", true),
        ];
        for (pattern, path, expected) in cases {
            assert_eq!(found(pattern, false, path), expected, "{pattern} {path}");
            assert!(found(pattern, true, path), "hidden: {pattern} {path}");
        }
    }

    #[test]
    fn a_pattern_that_makes_no_sense_is_refused() {
        let many = "{a,b}".repeat(7);
        let deep = "a/".repeat(100);
        for bad in ["", "/a", "a/../b", "[a", "{a,b", "a\\", "[z-a]", "///", &many, &deep, "a\0"] {
            assert!(Pattern::new(bad, false).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn no_pattern_takes_long() {
        let pattern = "a*".repeat(100) + "b";
        let name = "a".repeat(255);

        assert!(!found(&pattern, false, &name));
    }

    #[test]
    fn bytes_that_are_no_text_are_one_sign_each() {
        let pattern = Pattern::new("a??b", false).unwrap();

        assert!(pattern.step(&pattern.start(), b"a\xff\xfeb").0);
        assert!(!pattern.step(&pattern.start(), b"a\xffb").0);
    }

    #[test]
    fn a_walk_goes_only_where_something_can_be() {
        let pattern = Pattern::new("src/*.rs", false).unwrap();

        assert!(pattern.step(&pattern.start(), b"target").1.is_none());
        assert!(pattern.step(&pattern.start(), b"src").1.is_some());
    }
}
