//! What a root is made of.

mod host;

use atoll_launcher::{Bind, Directory, Link, Text};

pub(crate) use host::{host, listed};

/// The guest's user and group inside.
pub(crate) const GUEST: u32 = 1000;

/// The guest's home.
pub(crate) const HOME: &str = "/home/user";

/// Where guests may write, besides their home.
pub(crate) const WRITABLE: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Parts of a plan.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) binds: Vec<Bind>,
    pub(crate) directories: Vec<Directory>,
    pub(crate) links: Vec<Link>,
    pub(crate) files: Vec<Text>,
}

impl Parts {
    /// What every root has: places to write in, and names for who is there.
    pub(crate) fn common(hostname: &str) -> Self {
        let mut parts = Self::default();
        parts.directory(HOME, 0o755, GUEST);
        for path in WRITABLE {
            parts.directory(path, 0o1777, 0);
        }
        parts.file("/etc/hostname", format!("{hostname}\n"));
        parts.file(
            "/etc/hosts",
            format!("127.0.0.1 localhost {hostname}\n::1 localhost ip6-localhost ip6-loopback\n"),
        );
        parts.file("/etc/passwd", PASSWD);
        parts.file("/etc/group", GROUP);
        parts.file("/etc/nsswitch.conf", NSSWITCH);
        parts.file("/etc/resolv.conf", "");
        parts
    }

    pub(crate) fn directory(&mut self, path: &str, mode: u32, owner: u32) {
        self.directories.push(Directory { path: path.into(), mode, owner });
    }

    pub(crate) fn file(&mut self, path: &str, content: impl Into<String>) {
        self.files.push(Text { path: path.into(), content: content.into() });
    }
}

const PASSWD: &str = "\
root:x:0:0:root:/root:/usr/sbin/nologin
user:x:1000:1000:user:/home/user:/bin/sh
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
";

const GROUP: &str = "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n";

const NSSWITCH: &str = "passwd: files\ngroup: files\nhosts: files\n";
