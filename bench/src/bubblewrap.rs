//! bubblewrap as a careful person would call it from root: its defaults are no sandbox there.

use std::path::Path;

use crate::subject::Subject;

const HARDENED: &[&str] = &[
    "bwrap",
    "--unshare-all",
    "--unshare-user",
    "--disable-userns",
    "--uid",
    "1000",
    "--gid",
    "1000",
    "--cap-drop",
    "ALL",
    "--die-with-parent",
    "--new-session",
    "--clearenv",
    "--ro-bind",
    "/usr",
    "/usr",
    "--symlink",
    "usr/bin",
    "/bin",
    "--symlink",
    "usr/lib",
    "/lib",
    "--symlink",
    "usr/lib64",
    "/lib64",
    "--ro-bind",
    "/etc/ld.so.cache",
    "/etc/ld.so.cache",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--tmpfs",
    "/tmp",
    "--tmpfs",
    "/home",
];

/// The least a sandbox can do: start `/bin/true`.
pub(crate) fn nothing() -> Subject {
    Subject::command("bwrap /bin/true", HARDENED.iter().copied().chain(["/bin/true"]), "")
}

pub(crate) fn python(python: &Path, program: &Path) -> Subject {
    let program = program.to_string_lossy();
    let python = python.to_string_lossy();
    let words =
        HARDENED.iter().copied().chain(["--ro-bind", &program, "/main.py", &python, "/main.py"]);
    Subject::command("bwrap python3 FILE", words, "hello")
}
