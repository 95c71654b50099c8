//! The sandbox's file system, made in its own mount namespace from inside its user namespace.
//!
//! All that is writable and the sandbox's own is on one tmpfs, so that the disk limit is one
//! number. For a host root that tmpfs is the root itself, with the host's directories bound into
//! it; for a directory root it carries the upper layer of an overlay.

use std::{
    io::Write as _,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    path::Path,
};

use atoll_launcher::{Bind, Failure, Ids, Plan, Step, Weakness};
use rustix::{
    fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, Uid, chownat, mkdirat, symlinkat},
    mount::{MountAttrFlags, MountPropagationFlags, UnmountFlags, mount_change, unmount},
    process::{fchdir, pivot_root},
};

use crate::{devices, failure::At as _, identity, mounts, proc, shared, sys};

/// Where the new root is made. Covered, in this mount namespace only, after all that is shown
/// from the host has been opened.
const STAGE: &str = "/tmp";

/// Builds the root and moves into it. `trees` are the mounts the parent made: the lower layer if
/// there is one, then one for each bind shown as a user's, each followed by as many directories
/// in it to be covered as `covers` says.
pub(crate) fn build(plan: &Plan, trees: Vec<OwnedFd>, covers: Vec<usize>) -> Result<(), Failure> {
    rustix::process::umask(Mode::empty());
    let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", flags).at(Step::MakeRoot, "/")?;

    let mut trees = trees.into_iter();
    let terminals = if let Ids::One(_) = plan.ids { trees.next() } else { None };
    let lower = match &plan.lower {
        Some(path) if plan.is_ordinary() => {
            let attributes = sys::NO_SUID | sys::NO_DEV | sys::READ_ONLY;
            Some(mounts::copy_with(CWD, path, attributes).at(Step::Bind, path)?)
        }
        Some(_) => trees.next(),
        None => None,
    };
    let binds = opened(plan, trees, covers)?;
    let nodes = devices::open().at(Step::Devices, "")?;
    // Until here it was the user to whom those directories belong.
    if let Ids::Lent(_) = plan.ids {
        identity::become_root().at(Step::Identity, "")?;
    }

    let stage = stage(plan).at(Step::MakeRoot, STAGE)?;
    let root = match lower {
        None => stage.try_clone().at(Step::MakeRoot, "")?,
        Some(lower) => overlay(&stage, lower).at(Step::MakeRoot, "overlay")?,
    };
    devices::show(root.as_fd(), &stage, plan.lower.is_some(), nodes, terminals)
        .at(Step::Devices, "")?;
    let counts = proc::show(plan, root.as_fd()).at(Step::Proc, "")?;
    fill(plan, root.as_fd())?;
    for path in &plan.writable {
        split(root.as_fd(), path).at(Step::MakeRoot, path)?;
    }
    for (bind, (tree, hidden)) in plan.binds.iter().zip(binds) {
        show(root.as_fd(), bind, &tree).at(Step::Bind, &bind.target)?;
        // Before the next is shown, which may be meant to go there.
        cover(&hidden).at(Step::Bind, &bind.target)?;
    }
    if !plan.writable.is_empty() {
        let attributes = sys::NO_SUID | sys::NO_DEV | sys::READ_ONLY;
        sys::set_mount(root.as_fd(), attributes, None, false).at(Step::MakeRoot, "/")?;
    }
    counts.set().at(Step::Proc, "counts")?;
    enter(&root).at(Step::MakeRoot, "/")
}

/// Everything shown from the host, as detached mounts with their rights, and what is to be covered
/// of each.
fn opened(
    plan: &Plan,
    mut owned: impl Iterator<Item = OwnedFd>,
    covers: Vec<usize>,
) -> Result<Vec<(OwnedFd, Vec<OwnedFd>)>, Failure> {
    let mut covers = covers.into_iter();
    let mut attributes = sys::NO_SUID | sys::NO_DEV | sys::READ_ONLY;
    if plan.is_weak(Weakness::WritableBinds) {
        attributes &= !sys::READ_ONLY;
    }
    let open = |bind: &Bind| {
        let opened = if bind.as_user.is_some() && plan.is_ordinary() {
            return shared::as_it_is(bind);
        } else if bind.as_user.is_some() {
            let missing = || std::io::Error::from(rustix::io::Errno::BADF);
            let mut next = || owned.next().ok_or_else(missing);
            let count = covers.next().ok_or_else(missing);
            next()
                .and_then(|tree| Ok((tree, (0..count?).map(|_| next()).collect::<Result<_, _>>()?)))
        } else {
            mounts::copy_with(CWD, &bind.source, attributes).map(|tree| (tree, Vec::new()))
        };
        opened.at(Step::Bind, &bind.source)
    };
    plan.binds.iter().map(open).collect()
}

/// The tmpfs for everything writable.
fn stage(plan: &Plan) -> std::io::Result<OwnedFd> {
    let (size, inodes) = (plan.disk.to_string(), plan.inodes.to_string());
    let all = [("mode", Some("755")), ("size", Some(&*size)), ("nr_inodes", Some(&*inodes))];
    let options = if plan.is_weak(Weakness::Disk) { &all[..1] } else { &all[..] };
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let stage = mounts::make("tmpfs", options, attributes)?;
    mounts::put_at(&stage, Path::new(STAGE))?;
    Ok(stage)
}

/// The directory below, what the sandbox writes above.
fn overlay(stage: &OwnedFd, lower: OwnedFd) -> std::io::Result<OwnedFd> {
    for name in ["lower", "upper", "work", "root"] {
        mkdirat(stage, name, Mode::from_raw_mode(0o755))?;
    }
    let at = |name| format!("{STAGE}/{name}");
    mounts::put_at(lower, Path::new(&at("lower")))?;
    let (lower, upper, work) = (at("lower"), at("upper"), at("work"));
    let options = [
        ("lowerdir", Some(&*lower)),
        ("upperdir", Some(&*upper)),
        ("workdir", Some(&*work)),
        ("userxattr", None),
    ];
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let root = mounts::make("overlay", &options, attributes)?;
    mounts::put_at(&root, Path::new(&at("root")))?;
    Ok(root)
}

/// The plan's directories, files and links.
fn fill(plan: &Plan, root: BorrowedFd<'_>) -> Result<(), Failure> {
    for directory in &plan.directories {
        let make = || -> std::io::Result<()> {
            let made = mounts::directory(root, &directory.path)?;
            // Where there is but one owner, it is that one's already.
            if !matches!(plan.ids, Ids::One(_)) {
                let owner = directory.owner;
                let (uid, gid) = (Uid::from_raw(owner), Gid::from_raw(owner));
                chownat(&made, "", Some(uid), Some(gid), AtFlags::EMPTY_PATH)?;
            }
            let opened = mounts::find(root, &directory.path, OFlags::RDONLY | OFlags::DIRECTORY)?;
            rustix::fs::fchmod(opened, Mode::from_raw_mode(directory.mode))?;
            Ok(())
        };
        make().at(Step::MakeRoot, &directory.path)?;
    }
    for link in &plan.links {
        let make = || -> std::io::Result<()> {
            let (Some(parent), Some(name)) = (link.path.parent(), link.path.file_name()) else {
                return Err(rustix::io::Errno::INVAL.into());
            };
            let parent = mounts::directory(root, parent)?;
            match symlinkat(&link.target, parent, name) {
                Err(rustix::io::Errno::EXIST) => Ok(()),
                made => Ok(made?),
            }
        };
        make().at(Step::MakeRoot, &link.path)?;
    }
    for text in &plan.files {
        let make = || -> std::io::Result<()> {
            if mounts::find(root, &text.path, OFlags::PATH | OFlags::NOFOLLOW).is_ok() {
                return Ok(());
            }
            let file = mounts::file(root, &text.path)?;
            std::fs::File::from(file).write_all(text.content.as_bytes())
        };
        make().at(Step::MakeRoot, &text.path)?;
    }
    Ok(())
}

/// Makes a directory of the root a mount of its own, which stays writable when the root does not.
fn split(root: BorrowedFd<'_>, path: &Path) -> std::io::Result<()> {
    let directory = mounts::directory(root, path)?;
    mounts::put(mounts::copy(directory.as_fd(), "")?, directory.as_fd())
}

fn show(root: BorrowedFd<'_>, bind: &Bind, tree: &OwnedFd) -> std::io::Result<()> {
    let kind = FileType::from_raw_mode(rustix::fs::fstat(tree)?.st_mode);
    let target = if kind == FileType::Directory {
        mounts::directory(root, &bind.target)?
    } else {
        mounts::file(root, &bind.target)?
    };
    mounts::put(tree, target.as_fd())
}

/// Puts an empty directory over each of these, in which nothing can be made.
fn cover(hidden: &[OwnedFd]) -> std::io::Result<()> {
    for directory in hidden {
        let options = [("mode", Some("555")), ("size", Some("4k")), ("nr_inodes", Some("1"))];
        let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
            | MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        mounts::put(mounts::make("tmpfs", &options, attributes)?, directory.as_fd())?;
    }
    Ok(())
}

/// Makes `root` the root, and lets go of the host's.
fn enter(root: &OwnedFd) -> std::io::Result<()> {
    fchdir(root)?;
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    Ok(rustix::process::chdir("/")?)
}
