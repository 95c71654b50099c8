//! Finding lines in files.

mod expression;
mod lines;

use std::{collections::VecDeque, os::fd::OwnedFd};

use atoll_agent_protocol::{
    message::{Failure, Grep, Match, Searched, response::Answer},
    mux::Stream,
};
use lines::{Lines, Looked};
use regex::bytes::Regex;
use rustix::{
    fs::{CWD, FileType, Mode, OFlags, fstat},
    io::Errno,
};

use super::{
    Files,
    pattern::Pattern,
    place::{Path, open_at},
    read::open_regular,
    walk::{Next, Walk, open_below},
};
use crate::{
    calls::say,
    failure::{invalid, of_file, shown},
};

/// Lines of one answer.
const MAX_MATCHES: usize = 10_000;
/// Bytes of one answer, about.
const MAX_BYTES: usize = 4 << 20;
const MAX_CONTEXT: u32 = 10;
/// Bytes read of all files together.
const MAX_READ: u64 = 4 << 30;
/// Names visited, and bytes read, before others have their turn.
const TURN: usize = 1000;
const PIECE: usize = 1 << 20;
/// Lines found before others have their turn.
const BATCH: usize = 256;

/// Tells the lines in which something is found, and what was looked at.
pub(super) async fn grep(files: &Files, ask: Grep, stream: &Stream) -> Result<(), Failure> {
    let expression = expression::compile(&ask)?;
    let filter = Pattern::new(ask.glob.as_deref().unwrap_or("**"), ask.hidden)?.anywhere();
    if ask.context > MAX_CONTEXT {
        return Err(invalid(format!("context is at most {MAX_CONTEXT} lines")));
    }
    let context = usize::try_from(ask.context).unwrap_or(0);
    let limit = usize::try_from(ask.limit).unwrap_or(MAX_MATCHES).min(MAX_MATCHES);
    let path = files.path(&ask.path)?;
    let _turn = files.turn().await?;
    let begin = move || Search::begin(&path, filter, expression, context);
    let mut search = files.pool.run(begin).await??;
    let (mut told, mut bytes) = (0, 0);
    'search: loop {
        let turn = move || {
            let over = search.advance();
            (search, over)
        };
        let (back, over) = files.pool.run(turn).await?;
        search = back;
        for found in search.found.drain(..) {
            bytes += size(&found);
            if told == limit || bytes > MAX_BYTES {
                search.end.truncated = true;
                break 'search;
            }
            told += 1;
            if !say(stream, Answer::Match(found)).await {
                return Ok(());
            }
        }
        if over {
            break;
        }
    }
    say(stream, Answer::Searched(search.end())).await;
    Ok(())
}

fn size(found: &Match) -> usize {
    let lines = found.before.iter().chain(&found.after).map(|line| line.len() + 8);
    found.path.len() + found.text.len() + lines.sum::<usize>() + 64
}

/// A search on its way.
struct Search {
    expression: Regex,
    context: usize,
    /// None of a single file.
    walk: Option<Walk>,
    current: Option<Lines>,
    found: VecDeque<Match>,
    read: u64,
    end: Searched,
}

impl Search {
    fn begin(
        path: &Path,
        filter: Pattern,
        expression: Regex,
        context: usize,
    ) -> Result<Self, Failure> {
        let failed = |cause: Errno| of_file(path.asked(), &cause.into());
        let look = open_at(CWD, path.as_str(), OFlags::PATH, Mode::empty()).map_err(failed)?;
        let stat = fstat(&look).map_err(failed)?;
        let (mut walk, mut current) = (None, None);
        let mut end = Searched::default();
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => walk = Some(Walk::new(path, filter).map_err(failed)?),
            FileType::RegularFile => {
                let (file, _) = open_regular(path)?;
                current = Some(Lines::new(file, path.as_str().into(), context));
                end.searched = 1;
            }
            _ => {
                let what = format!("{}: neither a file nor a directory", shown(path.asked()));
                return Err(invalid(what));
            }
        }
        Ok(Self { expression, context, walk, current, found: VecDeque::new(), read: 0, end })
    }

    /// Goes on for a while; true when that was all.
    fn advance(&mut self) -> bool {
        let mut effort = TURN;
        let mut left = PIECE;
        while left > 0 && self.found.len() < BATCH {
            if let Some(lines) = &mut self.current {
                let Looked { read, over } = lines.look(&self.expression, &mut self.found);
                left = left.saturating_sub(read.max(1));
                self.read += read as u64;
                if over {
                    self.end.binary += u64::from(lines.binary);
                    self.end.unreadable += u64::from(lines.broken);
                    self.end.truncated |= lines.too_long;
                    self.current = None;
                }
                let late = self.walk.as_mut().is_some_and(Walk::late);
                if late || self.read > MAX_READ {
                    self.end.truncated = true;
                    return true;
                }
                continue;
            }
            let Some(walk) = &mut self.walk else { return true };
            match walk.next(&mut effort) {
                Next::Found(found) if found.kind == FileType::RegularFile => {
                    match open_file(walk, &found.path) {
                        Ok(Some(file)) => {
                            let told = walk.told(&found.path);
                            self.current = Some(Lines::new(file, told, self.context));
                            self.end.searched += 1;
                        }
                        Ok(None) => {}
                        Err(_) => self.end.unreadable += 1,
                    }
                }
                Next::Found(_) => {}
                Next::Later => return false,
                Next::End => return true,
            }
        }
        false
    }

    fn end(&self) -> Searched {
        let walk = self.walk.as_ref();
        Searched {
            truncated: self.end.truncated || walk.is_some_and(|walk| walk.truncated),
            unreadable: self.end.unreadable + walk.map_or(0, |walk| walk.unreadable),
            ..self.end
        }
    }
}

/// Opens a file to search it; none if it is gone, or no regular one any more.
fn open_file(walk: &Walk, path: &[u8]) -> Result<Option<OwnedFd>, Errno> {
    let regular = |fd: &OwnedFd| {
        let stat = fstat(fd)?;
        Ok::<_, Errno>(FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
    };
    let look = match open_below(walk.root(), path, OFlags::PATH) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
        opened => opened?,
    };
    // Looked at before it is opened, since opening a pipe or a device does something to it.
    if !regular(&look)? {
        return Ok(None);
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match open_below(walk.root(), path, flags) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
        opened => opened?,
    };
    Ok(regular(&file)?.then_some(file))
}
