//! Everything Atoll itself says. Standard output is data, standard error is talk.
//!
//! A table on a terminal, JSON in a pipe. Colour only repeats what the words say. What guests
//! write does not come through here.

use std::{
    fmt,
    io::{self, IsTerminal as _},
};

use anstyle::{AnsiColor, Style};
use atoll_config::Surroundings;
use serde::Serialize;

use crate::{
    arguments::Globals,
    failure::{Doing as _, Failure, Result, USAGE},
};

/// Where output goes and in which form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Printer {
    form: Form,
    quiet: bool,
    /// Standard output and standard error take colour.
    colour: (bool, bool),
    /// Standard error is a terminal that can redraw a line.
    progress: bool,
}

/// The form of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Table,
    /// Nobody said, and the output is no terminal.
    Json,
    /// JSON was asked for in so many words.
    JsonAskedFor,
}

/// A failure for programs, in the form servers give it.
#[derive(Serialize)]
struct Problems<'a> {
    error: Problem<'a>,
}

#[derive(Serialize)]
struct Problem<'a> {
    code: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

/// How a word is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Good,
    Weak,
    Bad,
}

impl Printer {
    pub(crate) fn new(globals: &Globals, here: &Surroundings) -> Self {
        let (out, err) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        let plain = here.plain();
        Self {
            form: match (globals.json, globals.table || out) {
                (true, _) => Form::JsonAskedFor,
                (false, true) => Form::Table,
                (false, false) => Form::Json,
            },
            quiet: globals.quiet,
            colour: (out && !plain, err && !plain),
            progress: err && !plain && !globals.quiet,
        }
    }

    pub(crate) fn quiet(self) -> bool {
        self.quiet
    }

    /// Whether JSON was asked for, which a pipe alone does not.
    pub(crate) fn json_asked_for(self) -> bool {
        self.form == Form::JsonAskedFor
    }

    /// Whether answers are texts for people.
    pub(crate) fn for_people(self) -> bool {
        self.form == Form::Table
    }

    pub(crate) fn progress(self) -> bool {
        self.progress
    }

    /// The answer: `value` for programs, `text` for people.
    pub(crate) fn answer(self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result {
        if self.form == Form::Table {
            return self::text(&text());
        }
        let json = serde_json::to_string_pretty(value);
        self::text(&json.doing(|| "cannot write the answer".into())?)
    }

    /// One line: what is said is the same in a pipe, and JSON only where it was asked for.
    pub(crate) fn line(self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result {
        if self.form != Form::JsonAskedFor {
            return self::text(&text());
        }
        self::text(&serde_json::to_string(value).doing(|| "cannot write the answer".into())?)
    }

    /// One of many lines that come as things happen: a line of JSON each for programs. False when
    /// nobody reads them any more.
    pub(crate) fn event(
        self,
        value: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> Result<bool> {
        use io::Write as _;
        let line = if self.form == Form::Table {
            text()
        } else {
            serde_json::to_string(value).doing(|| "cannot write the answer".into())?
        };
        let mut out = io::stdout();
        match writeln!(out, "{line}").and_then(|()| out.flush()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(Failure::new(format!("cannot write: {error}"))),
        }
    }

    /// A heading within a text for people.
    pub(crate) fn heading(self, text: &str) -> String {
        styled(self.colour.0, Style::new().bold(), text)
    }

    /// A word of a text for people, in the colour of its meaning.
    pub(crate) fn word(self, tone: Tone, text: &str) -> String {
        styled(self.colour.0, style(tone), text)
    }

    /// A table without frames, its columns as wide as they must be.
    pub(crate) fn table<R, C>(self, headings: &[&str], rows: R) -> String
    where
        R: IntoIterator<Item = C>,
        C: IntoIterator<Item = String>,
    {
        let headings = headings.iter().map(|heading| self.heading(heading)).collect();
        let rows = rows.into_iter().map(|row| row.into_iter().collect());
        let rows: Vec<Vec<String>> = std::iter::once(headings).chain(rows).collect();
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let widest = |column: usize| {
            let cells = rows.iter().filter_map(|row: &Vec<String>| row.get(column));
            cells.map(|cell| width(cell)).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(widest).collect();
        let lines: Vec<_> = rows.iter().map(|row| line(row, &widths)).collect();
        lines.join("\n")
    }

    /// Something to know, said aside.
    pub(crate) fn note(self, text: impl fmt::Display) {
        if !self.quiet {
            let _ = write(io::stderr(), &format!("atoll: {text}"));
        }
    }

    /// What to do about the note before.
    pub(crate) fn hint(self, text: impl fmt::Display) {
        if !self.quiet {
            let _ = write(io::stderr(), &format!("{} {text}", self.label(Tone::Plain, "hint:")));
        }
    }

    /// Ends a line of somebody else's, so that what is said next has its own.
    pub(crate) fn new_line(self) {
        if !self.quiet {
            let _ = write(io::stderr(), "");
        }
    }

    /// Why a command stops; said even when asked to be quiet.
    pub(crate) fn failure(self, failure: &Failure) {
        if self.form == Form::JsonAskedFor {
            let Failure { message, hint, code, kind } = failure;
            let problem = Problem {
                code: kind.as_deref().unwrap_or(if *code == USAGE { "usage" } else { "failed" }),
                message,
                hint: hint.as_deref(),
            };
            if let Ok(json) = serde_json::to_string(&Problems { error: problem }) {
                let _ = write(io::stderr(), &json);
            }
            return;
        }
        let label = self.label(Tone::Bad, "error:");
        let _ = write(io::stderr(), &format!("{label} {}", failure.message));
        if let Some(hint) = &failure.hint {
            let _ = write(io::stderr(), &format!("{} {hint}", self.label(Tone::Plain, "hint:")));
        }
    }

    fn label(self, tone: Tone, text: &str) -> String {
        styled(self.colour.1, style(tone).bold(), text)
    }
}

/// Prints a text that is the same for people and programs.
pub(crate) fn text(text: &str) -> Result {
    write(io::stdout(), text)
}

fn style(tone: Tone) -> Style {
    match tone {
        Tone::Plain => Style::new(),
        Tone::Good => AnsiColor::Green.on_default(),
        Tone::Weak => AnsiColor::Yellow.on_default(),
        Tone::Bad => AnsiColor::Red.on_default(),
    }
}

fn styled(colour: bool, style: Style, text: &str) -> String {
    if colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
}

/// One line of a table, nothing after its last word.
fn line(row: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (cell, wide) in row.iter().zip(widths) {
        line.push_str(cell);
        line.push_str(&" ".repeat(wide - width(cell) + 2));
    }
    line.trim_end().to_owned()
}

/// How many places of the screen a text takes, colours not counted.
fn width(text: &str) -> usize {
    let mut coloured = false;
    let shown = text.chars().filter(|c| {
        let was = coloured;
        coloured = (coloured || *c == '\u{1b}') && *c != 'm';
        !was && *c != '\u{1b}'
    });
    shown.count()
}

/// Writes a text and the end of its line. A reader that has gone away is no failure.
fn write(mut to: impl io::Write, text: &str) -> Result {
    let written = to.write_all(text.trim_end_matches('\n').as_bytes());
    match written.and_then(|()| to.write_all(b"\n")).and_then(|()| to.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write: {error}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Printer =
        Printer { form: Form::Table, quiet: false, colour: (false, false), progress: false };

    #[test]
    fn a_table_has_aligned_columns_and_no_trailing_spaces() {
        let shown = PLAIN.table(
            &["NAME", "STATE"],
            [["a", "ready"], ["longer", "b"]].map(|row| row.map(String::from)),
        );

        assert_eq!(shown, "NAME    STATE\na       ready\nlonger  b");
    }

    #[test]
    fn colour_does_not_move_columns() {
        let coloured = Printer { colour: (true, true), ..PLAIN };
        let word = coloured.word(Tone::Good, "ready");

        let shown =
            coloured.table(&["A", "B"], [[word, "b".into()], ["longer".into(), "c".into()]]);

        let plain =
            shown.replace("\u{1b}[32m", "").replace("\u{1b}[1m", "").replace("\u{1b}[0m", "");
        assert_eq!(plain, "A       B\nready   b\nlonger  c");
    }

    #[test]
    fn colour_is_only_there_when_asked_for() {
        let coloured = Printer { colour: (true, true), ..PLAIN };

        assert_eq!(PLAIN.word(Tone::Bad, "refused"), "refused");
        assert_eq!(coloured.word(Tone::Bad, "refused"), "\u{1b}[31mrefused\u{1b}[0m");
    }
}
