//! Where a container's files are: places to write in, what is shown of the host, the agent's own.

use std::{
    collections::HashMap,
    path::{Component, Path, PathBuf},
};

use atoll_agent_protocol::message::BOOT_FILE;
use atoll_engine::{Error, Result};
use bollard::models::{
    Mount, MountBindOptions, MountBindOptionsPropagationEnum, MountTmpfsOptions, MountType,
};

use crate::{
    boot::{GUEST, HOME},
    config::Weakness,
    container::Plan,
};

/// Where the agent, what it is told and its socket are inside: its user's alone.
pub(crate) const OWN: &str = "/.atoll";

/// What neither a volume of an image nor a mount may replace.
pub(crate) const KEPT: [&str; 5] = [OWN, "/dev", "/etc", "/proc", "/sys"];

/// Volumes an image may declare.
const MOST_VOLUMES: usize = 8;

/// A place has room for one file for so many bytes of it.
const BYTES_PER_FILE: i64 = 4096;

/// Mounts, as Docker has two kinds.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) tmpfs: HashMap<String, String>,
    pub(crate) mounts: Vec<Mount>,
}

impl Plan<'_> {
    /// So many 32nds of the disk; never 0, which would be no limit.
    pub(crate) fn share(&self, parts: u64) -> i64 {
        i64::try_from(self.bounds.disk / 32 * parts).unwrap_or(i64::MAX).max(4096)
    }

    /// All of them.
    pub(crate) fn files(&self) -> Result<Files> {
        let volumes = self.volumes()?;
        let home = 26 - u64::try_from(volumes.len()).unwrap_or(u64::MAX).min(8);
        let places =
            [(HOME, home, "0755", GUEST), ("/tmp", 4, "1777", 0), ("/var/tmp", 1, "1777", 0)];
        let taken = |path: &Path| self.shown.iter().any(|shown| shown.guest == path);
        let declared = |path: &Path| volumes.iter().any(|volume| volume == path);

        let own = "size=64k,mode=0700,nosuid,nodev,exec";
        let mut tmpfs = HashMap::from([(OWN.to_owned(), own.to_owned())]);
        for (path, parts, mode, owner) in places {
            // Where an image declares a volume, only a mount of the other kind keeps Docker from
            // making it; such a place does not let programs in it be run.
            if !taken(Path::new(path)) && !declared(Path::new(path)) {
                let size = self.share(parts);
                // Files without content are no less a burden.
                let files = (size / BYTES_PER_FILE).clamp(1024, 1 << 20);
                let limits = format!("size={size},nr_inodes={files}");
                let owner = format!("mode={mode},uid={owner},gid={owner}");
                tmpfs.insert(path.to_owned(), format!("{limits},{owner},nosuid,nodev,exec"));
            }
        }
        let mut mounts = vec![
            bind(&self.place.agent(), &format!("{OWN}/agent"), false),
            bind(&self.place.file(BOOT_FILE), &format!("{OWN}/{BOOT_FILE}"), false),
            bind(&self.place.run(), &format!("{OWN}/run"), true),
            bind(&self.place.file("passwd"), "/etc/passwd", false),
            bind(&self.place.file("group"), "/etc/group", false),
        ];
        if !self.weak(Weakness::ImageVolumes) {
            for path in volumes.iter().filter(|path| !taken(path)) {
                let parts = places.iter().find(|place| Path::new(place.0) == path);
                mounts.push(empty(path, self.share(parts.map_or(1, |place| place.1)), 0o1777));
            }
        }
        for shown in self.shown {
            let guest = shown.guest.to_string_lossy();
            mounts.push(bind(&shown.host, &guest, shown.writable));
            mounts.extend(shown.hidden.iter().map(|path| empty(path, 4096, 0o555)));
        }
        Ok(Files { tmpfs, mounts })
    }

    /// Where the image wants volumes: each gets an empty place of the sandbox's own instead.
    fn volumes(&self) -> Result<Vec<PathBuf>> {
        let refused = |why: &str| Err(Error::invalid(format!("the image declares {why}")));
        if self.image.volumes.len() > MOST_VOLUMES {
            return refused(&format!("more than {MOST_VOLUMES} volumes"));
        }
        let mut volumes = Vec::new();
        for text in &self.image.volumes {
            let path: PathBuf = Path::new(text).components().collect();
            let plain = path.is_absolute()
                && path
                    .components()
                    .all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
                && !text.contains('\0');
            let kept = KEPT.iter().any(|kept| path.starts_with(kept));
            if !plain || kept || path == Path::new("/") {
                return refused("a volume where a sandbox cannot have one");
            }
            volumes.push(path);
        }
        volumes.sort();
        volumes.dedup();
        Ok(volumes)
    }
}

/// An empty directory in memory.
fn empty(path: &Path, size: i64, mode: i64) -> Mount {
    Mount {
        target: Some(path.to_string_lossy().into_owned()),
        typ: Some(MountType::TMPFS),
        tmpfs_options: Some(MountTmpfsOptions {
            size_bytes: Some(size),
            mode: Some(mode),
            options: None,
        }),
        ..Default::default()
    }
}

/// A directory or file of the host, by itself: without what is mounted in it.
fn bind(source: &Path, target: &str, writable: bool) -> Mount {
    Mount {
        typ: Some(MountType::BIND),
        source: Some(source.to_string_lossy().into_owned()),
        target: Some(target.to_owned()),
        read_only: Some(!writable),
        bind_options: Some(MountBindOptions {
            propagation: Some(MountBindOptionsPropagationEnum::RPRIVATE),
            non_recursive: Some(true),
            ..Default::default()
        }),
        ..Default::default()
    }
}
