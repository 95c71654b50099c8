//! A range of the host's ids for each sandbox, no two of them the same.
//!
//! Which are taken is nowhere written down: each sandbox's agent holds a descriptor of one file
//! with a lock on the byte of its range. The kernel gives the lock back when the agent is gone,
//! however it ended, and daemons with other state directories see it too.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io,
    os::{
        fd::AsFd as _,
        unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    },
    path::Path,
};

use atoll_launcher::{IDS, Ids};

use rustix::process::{getegid, geteuid};

use crate::{allowance::Allowance, root::GUEST, sys};

/// The first id used: above what people, services and `subuid` ranges have.
const FIRST: u32 = 0x4000_0000;

/// How many ranges there are between that and the ids the kernel means something else by.
const RANGES: u32 = (0xffff_0000 - FIRST) / IDS;

/// Ids, as long as any copy of the descriptor is open.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) file: File,
    pub(crate) ids: Ids,
}

/// What an ordinary user always has: itself. There is nothing to take.
pub(crate) fn oneself() -> io::Result<Lease> {
    Ok(Lease { file: File::open("/dev/null")?, ids: Ids::One(GUEST) })
}

/// Takes some of an ordinary user's other ids. `shown`: the host's directories are.
pub(crate) fn borrowed(path: &Path, allowance: &Allowance, shown: bool) -> io::Result<Lease> {
    let (file, number) = take(path, allowance.shares())?;
    let oneself = || (geteuid().as_raw(), getegid().as_raw());
    let lent = allowance.share(number, shown.then(oneself));
    Ok(Lease { file, ids: Ids::Lent(lent) })
}

/// Takes a free range of root's.
pub(crate) fn lease(path: &Path) -> io::Result<Lease> {
    let (file, range) = take(path, RANGES)?;
    Ok(Lease { file, ids: Ids::Range(FIRST + range * IDS) })
}

/// Takes one of `count` that is free, anywhere: one given back a moment ago is not likely to be the next.
fn take(path: &Path, count: u32) -> io::Result<(File, u32)> {
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    let start = getrandom::u32().map_err(|error| io::Error::other(error.to_string()))?;
    for next in 0..count {
        let range = start.wrapping_add(next) % count;
        if sys::lock_byte(file.as_fd(), range)? {
            return Ok((file, range));
        }
    }
    Err(io::Error::new(io::ErrorKind::QuotaExceeded, "every range of ids is taken"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(lease: &Lease) -> u32 {
        match lease.ids {
            Ids::Range(first) => first,
            _ => panic!("{lease:?}"),
        }
    }

    #[test]
    fn no_two_leases_share_an_id() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run/ids");
        let leases: Vec<_> = (0..200).map(|_| lease(&path).unwrap()).collect();
        let firsts: std::collections::BTreeSet<_> = leases.iter().map(number).collect();
        assert_eq!(firsts.len(), leases.len());
        assert!(firsts.iter().all(|first| first % IDS == 0 && first.checked_add(IDS).is_some()));
    }

    #[test]
    fn a_range_is_free_again_when_the_last_descriptor_is_closed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ids");
        let first = lease(&path).unwrap();
        let byte = (number(&first) - FIRST) / IDS;
        let copy = first.file.try_clone().unwrap();
        drop(first);
        let other = File::options().read(true).write(true).open(&path).unwrap();
        assert!(!sys::lock_byte(other.as_fd(), byte).unwrap());
        drop(copy);
        assert!(sys::lock_byte(other.as_fd(), byte).unwrap());
    }
}
