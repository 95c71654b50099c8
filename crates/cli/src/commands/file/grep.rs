//! `atoll file grep`.

use atoll_types::{
    id::SessionId,
    search::{Grep, Match, Matches},
};
use clap::Args;

use super::NOTHING;
use crate::{failure::Result, invocation::Invocation, words};

/// Find lines in files
#[derive(Debug, Args)]
#[command(
    after_help = "PATTERN is a regular expression without look-around and back-references. Binary files are skipped, and
so are names that begin with a dot, unless --hidden or --glob asks for them; links are not followed.
Exit code 1: there is none.

Examples:
  atoll file grep SESSION 'def \\w+' src
  atoll file grep SESSION -i todo --glob '*.{py,md}' --context 2
  atoll file grep SESSION -F 'a[0]' main.c --json | jq '.matches[].line'"
)]
pub(crate) struct Arguments {
    #[arg(value_name = "SESSION")]
    session: SessionId,
    #[arg(value_name = "PATTERN")]
    pattern: String,
    /// A file or a directory; the home directory if not said
    #[arg(value_name = "PATH")]
    path: Option<String>,
    /// Only files whose name (or path, if it holds a `/`) fits
    #[arg(long, short, value_name = "PATTERN")]
    glob: Option<String>,
    /// Take the pattern as text
    #[arg(long, short = 'F')]
    literal: bool,
    /// Upper and lower case are the same
    #[arg(long, short)]
    ignore_case: bool,
    /// Look into names that begin with a dot, too
    #[arg(long)]
    hidden: bool,
    /// Show this many lines before and after, up to 10
    #[arg(long, short = 'C', value_name = "LINES", default_value_t = 0)]
    context: u32,
    /// How many lines to tell at most, up to 10000
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    limit: u32,
}

pub(super) async fn run(arguments: Arguments, invocation: &Invocation) -> Result<u8> {
    let client = invocation.client().await?;
    let grep = Grep {
        pattern: arguments.pattern,
        path: arguments.path,
        glob: arguments.glob,
        literal: arguments.literal,
        ignore_case: arguments.ignore_case,
        hidden: arguments.hidden,
        context: arguments.context,
        limit: Some(arguments.limit),
    };
    let found = client.grep_files(&arguments.session, &grep).await?;
    let empty = found.matches.is_empty();
    if !(empty && invocation.printer.for_people()) {
        invocation.printer.answer(&found, || text(&found))?;
    }
    if found.truncated {
        invocation.printer.note("there may be more than this");
    }
    if found.unreadable > 0 {
        invocation.printer.note(format!("{} could not be read", found.unreadable));
    }
    Ok(if empty { NOTHING } else { 0 })
}

fn text(found: &Matches) -> String {
    let apart = found.matches.iter().any(|one| !(one.before.is_empty() && one.after.is_empty()));
    let blocks: Vec<_> = found.matches.iter().map(block).collect();
    blocks.join(if apart { "\n--\n" } else { "\n" })
}

/// A line as compilers tell places, with its neighbours.
fn block(found: &Match) -> String {
    let path = words::printable(&found.path);
    let first = found.line.saturating_sub(found.before.len() as u64);
    let near = |from: u64, lines: &[String]| -> Vec<String> {
        let lines = (from..).zip(lines);
        lines.map(|(number, line)| format!("{path}-{number}-{}", words::printable(line))).collect()
    };
    let cut = if found.cut { " …" } else { "" };
    let text = words::printable(&found.text);
    let line = format!("{path}:{}:{}:{text}{cut}", found.line, found.column);
    [near(first, &found.before), vec![line], near(found.line + 1, &found.after)].concat().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_shown_with_its_place_and_neighbours() {
        let found = Match {
            path: "/a".into(),
            line: 2,
            column: 3,
            text: "x\u{1b}y".into(),
            cut: true,
            before: vec!["one".into()],
            after: vec!["three".into()],
            ..Match::default()
        };

        assert_eq!(block(&found), "/a-1-one\n/a:2:3:x\\u{1b}y …\n/a-3-three");
    }
}
