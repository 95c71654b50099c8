//! What an agent finds in files. How much of it may come is decided here.

use atoll_agent_protocol::message::{self, request::Call, response::Answer};
use atoll_engine::{Edit, Edited, Error, Glob, Grep, Listing, Match, Matches, Result};

use crate::{AgentSandbox, entry, failure, files::checked, line};

/// What is told if the caller does not say, and at most.
const LIMIT: u32 = 1000;
const MOST: u32 = 10_000;
/// Bytes of one answer, more than any honest agent sends.
const MAX_BYTES: usize = 16 << 20;
/// Bytes of a pattern.
const MAX_PATTERN: usize = 64 << 10;
/// Texts to replace, and their bytes.
const MAX_EDITS: usize = 1000;
const MAX_EDIT_BYTES: usize = 2 << 20;
/// Lines of context in a match.
const MAX_CONTEXT: usize = 10;

pub(crate) fn glob(glob: &Glob) -> Result<(Call, usize)> {
    let limit = limit(glob.limit)?;
    let call = Call::Glob(message::Glob {
        pattern: pattern(&glob.pattern)?,
        path: directory(glob.path.as_deref())?,
        hidden: glob.hidden,
        limit,
    });
    Ok((call, limit as usize))
}

pub(crate) fn grep(grep: &Grep) -> Result<(Call, usize)> {
    let limit = limit(grep.limit)?;
    let call = Call::Grep(message::Grep {
        pattern: pattern(&grep.pattern)?,
        path: directory(grep.path.as_deref())?,
        glob: grep.glob.as_deref().map(pattern).transpose()?,
        literal: grep.literal,
        ignore_case: grep.ignore_case,
        hidden: grep.hidden,
        context: grep.context,
        limit,
    });
    Ok((call, limit as usize))
}

pub(crate) fn edit(path: &str, edits: &[Edit]) -> Result<Call> {
    let bytes: usize = edits.iter().map(|edit| edit.old.len() + edit.new.len()).sum();
    if edits.len() > MAX_EDITS || bytes > MAX_EDIT_BYTES {
        return Err(Error::invalid(format!(
            "edits are at most {MAX_EDITS}, of {} MiB together",
            MAX_EDIT_BYTES >> 20
        )));
    }
    let edits = edits.iter().map(|edit| message::Edit {
        old: edit.old.clone(),
        new: edit.new.clone(),
        replace_all: edit.replace_all,
        expected: edit.expected,
    });
    Ok(Call::Edit(message::EditFile { path: checked(path)?.path, edits: edits.collect() }))
}

pub(crate) fn edited(answer: &Answer) -> Result<Edited> {
    match answer {
        Answer::Edited(done) => Ok(Edited { replaced: done.replaced, size: done.size }),
        _ => Err(failure::nonsense()),
    }
}

impl AgentSandbox {
    pub(crate) async fn found_files(&self, call: Call, limit: usize) -> Result<Listing> {
        let stream = self.inner.flows.begin(call).await?;
        stream.finish();
        let (mut entries, mut bytes) = (Vec::new(), 0);
        loop {
            match line::answer(&stream).await? {
                Answer::Entry(found) if entry::is_name(&found.name) && is_path(&found.path) => {
                    bytes += found.path.len() + found.target.as_ref().map_or(0, Vec::len);
                    if entries.len() == limit || bytes > MAX_BYTES {
                        return Err(failure::nonsense());
                    }
                    entries.push(entry::read(&found));
                }
                Answer::Done(done) => return Ok(Listing { entries, truncated: done.truncated }),
                _ => return Err(failure::nonsense()),
            }
        }
    }

    pub(crate) async fn found_lines(&self, call: Call, limit: usize) -> Result<Matches> {
        let stream = self.inner.flows.begin(call).await?;
        stream.finish();
        let (mut matches, mut bytes) = (Vec::new(), 0);
        loop {
            match line::answer(&stream).await? {
                Answer::Match(found) if is_path(&found.path) => {
                    let lines = found.before.iter().chain(&found.after).map(Vec::len);
                    bytes += found.path.len() + found.text.len() + lines.sum::<usize>();
                    let context = found.before.len().max(found.after.len());
                    if matches.len() == limit || bytes > MAX_BYTES || context > MAX_CONTEXT {
                        return Err(failure::nonsense());
                    }
                    matches.push(read(&found));
                }
                Answer::Searched(end) => {
                    return Ok(Matches {
                        matches,
                        truncated: end.truncated,
                        searched: end.searched,
                        binary: end.binary,
                        unreadable: end.unreadable,
                    });
                }
                _ => return Err(failure::nonsense()),
            }
        }
    }
}

fn read(found: &message::Match) -> Match {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Match {
        path: text(&found.path),
        line: found.line,
        column: found.column,
        length: found.length,
        text: text(&found.text),
        cut: found.cut,
        before: found.before.iter().map(|line| text(line)).collect(),
        after: found.after.iter().map(|line| text(line)).collect(),
    }
}

/// Whether it can be a guest's path.
pub(crate) fn is_path(path: &[u8]) -> bool {
    path.starts_with(b"/") && !path.contains(&0)
}

fn limit(asked: Option<u32>) -> Result<u32> {
    match asked.unwrap_or(LIMIT) {
        limit @ 1..=MOST => Ok(limit),
        _ => Err(Error::invalid(format!("`limit` is from 1 to {MOST}"))),
    }
}

fn pattern(text: &str) -> Result<String> {
    if text.is_empty() || text.len() > MAX_PATTERN {
        return Err(Error::invalid("a pattern is not empty, and not too long"));
    }
    Ok(text.to_owned())
}

/// Where to look: at home, unless something was said.
fn directory(path: Option<&str>) -> Result<String> {
    checked(path.unwrap_or(".")).map(|of| of.path)
}
