//! Replacing text in a file: all that is asked for, or nothing.

use std::os::fd::OwnedFd;

use atoll_agent_protocol::message::{Edit, EditFile, Edited, Failure, FailureKind};
use memchr::memmem;
use rustix::{
    fs::{AtFlags, Stat, statat},
    io::{Errno, read},
};

use super::{Files, read::open_regular, write::Draft};
use crate::failure::{exhausted, failure, invalid, of_file, shown};

/// Bytes of a file that is edited, before and after.
const MAX_SIZE: usize = 16 << 20;
const MAX_EDITS: usize = 1000;

/// Edits a file and tells how many places were replaced.
pub(super) async fn edit(files: &Files, ask: EditFile) -> Result<Edited, Failure> {
    let EditFile { path, edits } = ask;
    check(&edits)?;
    let place = files.path(&path)?;
    let _turn = files.turn().await?;
    let begin = move || {
        let (file, stat) = open_regular(&place)?;
        let content = whole(&file, &stat).map_err(|cause| match cause {
            Errno::FBIG => exhausted(format!(
                "{}: a file of more than {} MiB is not edited",
                shown(place.asked()),
                MAX_SIZE >> 20
            )),
            cause => of_file(place.asked(), &cause.into()),
        })?;
        let (content, replaced) = apply(content, &edits)?;
        Ok::<_, Failure>((content, replaced, stat))
    };
    let (content, replaced, old) = files.pool.run(begin).await??;
    let size = content.len() as u64;
    let draft = Draft::begin(files, &path, None).await?;
    let finish = move |draft: &mut Draft| {
        draft.write(&content)?;
        let place = draft.place();
        let now = statat(&place.directory, &place.name, AtFlags::SYMLINK_NOFOLLOW);
        if !now.is_ok_and(|now| same(&old, &now)) {
            let changed = format!("{}: somebody else changed it meanwhile", draft.asked());
            return Err(failure(FailureKind::AlreadyExists, changed));
        }
        draft.commit()
    };
    draft.then(finish).await?;
    Ok(Edited { replaced, size })
}

fn check(edits: &[Edit]) -> Result<(), Failure> {
    if edits.is_empty() || edits.len() > MAX_EDITS {
        return Err(invalid(format!("there are from 1 to {MAX_EDITS} edits")));
    }
    for (number, edit) in (1..).zip(edits) {
        if edit.old.is_empty() {
            return Err(invalid(format!("edit {number}: `old` is empty")));
        }
        if edit.old == edit.new {
            return Err(invalid(format!("edit {number}: `old` and `new` are the same")));
        }
        if edit.expected == Some(0) {
            return Err(invalid(format!("edit {number}: `expected` is at least 1")));
        }
    }
    Ok(())
}

/// Whether nothing was done to it.
fn same(old: &Stat, now: &Stat) -> bool {
    let told = |stat: &Stat| {
        let times = (stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec);
        (stat.st_dev, stat.st_ino, stat.st_size, times)
    };
    told(old) == told(now)
}

fn whole(file: &OwnedFd, stat: &Stat) -> Result<Vec<u8>, Errno> {
    let size = usize::try_from(stat.st_size).unwrap_or(usize::MAX);
    if size > MAX_SIZE {
        return Err(Errno::FBIG);
    }
    let mut content = vec![0; size + 1];
    let mut length = 0;
    loop {
        match read(file, &mut content[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        if length == content.len() {
            if length > MAX_SIZE {
                return Err(Errno::FBIG);
            }
            // It grows, or its size is not told: as in `/proc`.
            content.resize((length + (64 << 10)).min(MAX_SIZE + 1), 0);
        }
    }
    content.truncate(length);
    Ok(content)
}

/// Does one edit after another; how many places were replaced.
fn apply(mut content: Vec<u8>, edits: &[Edit]) -> Result<(Vec<u8>, u64), Failure> {
    let mut replaced = 0;
    for (number, edit) in (1..).zip(edits) {
        let (old, new) = (edit.old.as_bytes(), edit.new.as_bytes());
        let finder = memmem::Finder::new(old);
        let count = finder.find_iter(&content).count();
        let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
        match (count as u64, edit.expected, edit.replace_all) {
            (0, ..) => return Err(invalid(format!("edit {number}: `old` is not in the file"))),
            (found, Some(expected), _) if found != expected => {
                return Err(invalid(format!(
                    "edit {number}: `old` is in the file {times}, not {expected}"
                )));
            }
            (2.., None, false) => {
                return Err(invalid(format!(
                    "edit {number}: `old` is in the file {times}; give more of it, or replace all"
                )));
            }
            _ => {}
        }
        let size =
            (content.len() - count * old.len()).saturating_add(count.saturating_mul(new.len()));
        if size > MAX_SIZE {
            return Err(exhausted("the file would be too large"));
        }
        let mut next = Vec::with_capacity(size);
        let mut from = 0;
        for at in finder.find_iter(&content) {
            next.extend_from_slice(&content[from..at]);
            next.extend_from_slice(new);
            from = at + old.len();
        }
        next.extend_from_slice(&content[from..]);
        (content, replaced) = (next, replaced + count as u64);
    }
    Ok((content, replaced))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(old: &str, new: &str) -> Edit {
        Edit { old: old.into(), new: new.into(), ..Edit::default() }
    }

    fn done(content: &str, edits: &[Edit]) -> Result<(String, u64), String> {
        check(edits).map_err(|failure| failure.message)?;
        let (content, replaced) =
            apply(content.into(), edits).map_err(|failure| failure.message)?;
        Ok((String::from_utf8(content).unwrap(), replaced))
    }

    #[test]
    fn text_is_replaced_where_it_is_meant() {
        let all = Edit { replace_all: true, ..edit("a", "bb") };
        let two = Edit { expected: Some(2), ..edit("a", "") };

        assert_eq!(done("xay", &[edit("a", "b")]), Ok(("xby".into(), 1)));
        assert_eq!(done("aXa", std::slice::from_ref(&all)), Ok(("bbXbb".into(), 2)));
        assert_eq!(done("aXa", &[two]), Ok(("X".into(), 2)));
        assert_eq!(done("a", &[all, edit("bb", "c")]), Ok(("c".into(), 2)));
    }

    #[test]
    fn text_that_is_missing_or_ambiguous_is_told() {
        let message = |content, edits: &[Edit]| done(content, edits).unwrap_err();

        assert_eq!(message("x", &[edit("a", "b")]), "edit 1: `old` is not in the file");
        assert!(message("aaa", &[edit("a", "b")]).contains("3 times"));
        assert!(message("a", &[edit("a", "b"), edit("a", "c")]).starts_with("edit 2: "));
        let one = Edit { expected: Some(2), ..edit("a", "b") };
        assert_eq!(message("a", &[one]), "edit 1: `old` is in the file once, not 2");
        assert!(done("a", &[]).is_err());
        assert!(done("a", &[edit("", "b")]).is_err());
        assert!(done("a", &[edit("a", "a")]).is_err());
    }

    #[test]
    fn a_file_does_not_grow_beyond_bounds() {
        let all = Edit { replace_all: true, ..edit("a", &"b".repeat(1 << 20)) };

        let error = apply(vec![b'a'; 1000], &[all]).unwrap_err();

        assert_eq!(error.kind, i32::from(FailureKind::Exhausted));
    }
}
