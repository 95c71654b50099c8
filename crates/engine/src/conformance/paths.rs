//! One corpus of hostile paths, and every call about files over all of it.
//!
//! A path is right where a guest would come out that follows it itself, and nowhere else. New
//! calls that take a path are added to [`Call`].

use futures_util::TryStreamExt as _;

use super::{
    Failure, Stage,
    case::{CaseResult, broken, cases, check},
    files::content,
    scratch::{Scratch, text},
    watching,
};
use crate::{Command, Edit, Error, ErrorKind, Glob, Grep};

/// What the one file of the traps holds: nothing else on a host does.
const INSIDE: &str = "atoll-trap\n";

/// Makes the places that [`CORPUS`] speaks of, in the home directory.
pub const TRAPS: &str = "mkdir -p tree/real; echo atoll-trap > tree/real/file; \
    ln -s real tree/dirlink; ln -s real/file tree/link; ln -s link tree/link2; \
    ln -s /etc tree/etc; ln -s loop2 tree/loop1; ln -s loop1 tree/loop2; ln -s gone tree/broken; \
    ln -s ../../../../../../../.. tree/up; mkfifo tree/pipe; ln -s pipe tree/topipe; \
    ln -s /proc/self/root tree/magic; ln -s /proc/self/fd tree/descriptors; \
    ln -s /dev/zero tree/zero; i=0; ln -s real/file tree/c0; \
    while [ $i -lt 60 ]; do ln -s c$i tree/c$((i+1)); i=$((i+1)); done";

/// Paths that lead to what a guest finds there, or to an error.
pub const CORPUS: &[&str] = &[
    "tree/real/file",
    "./tree//real/./file",
    "tree/../tree/real/file",
    "tree/real/../real/file",
    "tree/link",
    "tree/link2",
    "tree/dirlink/file",
    "tree/dirlink",
    "tree/dirlink/.",
    "tree/dirlink/..",
    "tree/dirlink/../real/file",
    "tree/etc",
    "tree/etc/passwd",
    "tree/up/etc/passwd",
    "tree/up",
    "tree/loop1",
    "tree/loop1/x",
    "tree/broken",
    "tree/broken/x",
    "tree/pipe",
    "tree/topipe",
    "tree/zero",
    "tree/c20",
    "tree/c60",
    "tree/real/file/x",
    ".",
    "..",
    "/",
    "//",
    "/..",
    "/../../etc/passwd",
    "../../../../../../../../etc/passwd",
    "~",
    "~/x",
    "....//....//etc/passwd",
    "..\\..\\etc\\passwd",
    "%2e%2e%2fetc%2fpasswd",
    "%252e%252e%252fetc",
    "tree/real\u{200b}",
    "tree/re\u{0430}l",
    "tree/real/fi\nle",
    "tree-evil",
    "tree/\u{fffd}",
    "/etc/shadow",
    "/dev/zero",
    "/dev/null",
    "/dev/mem",
    "C:\\x",
    "file:///etc",
    " ",
    "*",
    "-rf",
    "--",
    "$HOME",
    "`id`",
];

/// Paths through the kernel's shortcuts to open files, which would be the agent's own.
pub const MAGIC: &[&str] = &[
    "/proc/self/root/etc/passwd",
    "/proc/thread-self/root/etc/passwd",
    "/proc/self/cwd/tree",
    "/proc/self/root",
    "/proc/self/fd/0",
    "/proc/self/fd/3",
    "/dev/fd/0",
    "/dev/stdin",
    "/proc/self/exe",
    "tree/magic",
    "tree/magic/etc/passwd",
    "tree/descriptors/0",
    "/proc/1/root/etc/passwd",
    "/proc/1/cwd",
];

/// Paths that no kernel takes.
pub const MEANINGLESS: &[&str] = &["", "\0", "tree\0", "tree/real/file\0.txt"];

cases![
    every_call_finds_what_the_guest_finds,
    no_call_follows_a_shortcut_of_the_kernel,
    a_path_without_meaning_is_invalid_everywhere,
    no_path_makes_a_call_break_or_tell_of_the_host,
];

/// What can be done with a path without changing much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Read,
    List,
    Stat,
    Copy,
    Pack,
    Glob,
    Grep,
    Edit,
    Watch,
}

const CALLS: &[Call] = &[
    Call::Read,
    Call::List,
    Call::Stat,
    Call::Copy,
    Call::Pack,
    Call::Glob,
    Call::Grep,
    Call::Edit,
    Call::Watch,
];

impl Call {
    /// Does it, to the end.
    async fn make(self, scratch: &Scratch, path: &str) -> Result<(), Error> {
        let (files, at) = (scratch.files(), Some(path.to_owned()));
        match self {
            Self::Read => files.read(path).await?.try_for_each(async |_| Ok(())).await,
            Self::List => files.list(path).await.map(drop),
            Self::Stat => files.stat(path).await.map(drop),
            Self::Copy => {
                // One that may not be written, as its original may not, would be in the way.
                files.remove("copied").await.or_else(ignore_missing)?;
                files.copy(path, "copied").await
            }
            // Of a whole tree the beginning will do.
            Self::Pack => files.pack(path).await?.try_next().await.map(drop),
            Self::Glob => {
                let glob = Glob { pattern: "*".into(), path: at, ..Glob::default() };
                files.glob(&glob).await.map(drop)
            }
            Self::Grep => {
                let grep = Grep {
                    pattern: "zzz".into(),
                    path: at,
                    // Nowhere else, however much there is below.
                    glob: Some("real/file".into()),
                    ..Grep::default()
                };
                files.grep(&grep).await.map(drop)
            }
            Self::Edit => {
                let (old, new) = ("atoll-trap".to_owned(), "atoll-trap!".to_owned());
                files.edit(path, &[Edit { old, new, ..Edit::default() }]).await.map(drop)
            }
            Self::Watch => watching::begin(scratch, path, false).await.map(drop),
        }
    }

    /// What a guest asks instead; none if it has nothing like that.
    fn of_guest(self) -> Option<&'static str> {
        match self {
            Self::Read | Self::Copy => Some("test -f \"$p\" && cat \"$p\""),
            Self::List | Self::Glob | Self::Watch => Some("test -d \"$p\" && ls \"$p/.\""),
            Self::Grep => Some("test -r \"$p\" && { test -f \"$p\" || test -d \"$p\"; }"),
            Self::Edit => Some("test -f \"$p\" && test -w \"$p\" && grep -q atoll-trap \"$p\""),
            Self::Stat | Self::Pack => None,
        }
    }
}

fn ignore_missing(error: Error) -> Result<(), Error> {
    if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

async fn trapped(stage: &Stage) -> Result<Scratch, Failure> {
    let scratch = Scratch::new(stage).await?;
    scratch.text(TRAPS).await?;
    Ok(scratch)
}

async fn every_call_finds_what_the_guest_finds(stage: Stage) -> CaseResult {
    let scratch = trapped(&stage).await?;

    for call in CALLS {
        let Some(line) = call.of_guest() else { continue };
        let guest = guest(&scratch, line).await?;
        for (path, guest) in CORPUS.iter().zip(guest) {
            let seen = call.make(&scratch, path).await;
            check(seen.is_ok() == guest, || {
                format!("{call:?} of {path:?}: {seen:?}, and for the guest {guest}")
            })?;
            if *call == Call::Edit && guest {
                scratch.files().write("tree/real/file", content(INSIDE)).await?;
            }
        }
    }
    Ok(())
}

/// Whether a guest can do that, for every path.
async fn guest(scratch: &Scratch, line: &str) -> Result<Vec<bool>, Failure> {
    let all =
        format!("for p; do if {{ {line}; }} > /dev/null 2>&1; then echo y; else echo n; fi; done");
    // A path that begins with `-` is one, too.
    let paths = CORPUS
        .iter()
        .map(|path| if path.starts_with('/') { (*path).to_owned() } else { format!("./{path}") });
    let words = ["/bin/sh", "-c", &all, "sh"].map(str::to_owned);
    let output = scratch.run(Command::new(words.into_iter().chain(paths))).await?;
    let told: Vec<_> = text(&output.stdout).lines().map(|line| line == "y").collect();
    check(told.len() == CORPUS.len(), || format!("{output:?}"))?;
    Ok(told)
}

async fn no_call_follows_a_shortcut_of_the_kernel(stage: Stage) -> CaseResult {
    let scratch = trapped(&stage).await?;

    for path in MAGIC {
        for call in CALLS.iter().filter(|call| **call != Call::Stat) {
            let seen = call.make(&scratch, path).await;
            check(seen.is_err(), || format!("{call:?} of {path:?} was done"))?;
        }
    }
    Ok(())
}

async fn a_path_without_meaning_is_invalid_everywhere(stage: Stage) -> CaseResult {
    let scratch = trapped(&stage).await?;
    let long = "x/".repeat(40_000);

    for path in MEANINGLESS.iter().copied().chain([long.as_str()]) {
        for call in CALLS {
            match call.make(&scratch, path).await {
                Err(error) if error.kind() == ErrorKind::Invalid => {}
                seen => {
                    return broken(format!(
                        "{call:?} of {:?}: {seen:?}",
                        &path[..path.len().min(20)]
                    ));
                }
            }
        }
    }
    Ok(())
}

async fn no_path_makes_a_call_break_or_tell_of_the_host(stage: Stage) -> CaseResult {
    let scratch = trapped(&stage).await?;
    let of_host = stage.state().to_string_lossy().into_owned();
    let odd = ["x".repeat(300), "x/".repeat(3000), format!("tree/{}", "../".repeat(500))];
    let odd = odd.iter().map(String::as_str);

    for path in CORPUS.iter().chain(MAGIC).copied().chain(odd) {
        for call in CALLS {
            let Err(error) = call.make(&scratch, path).await else { continue };
            let broken = matches!(error.kind(), ErrorKind::Internal | ErrorKind::TimedOut);
            check(!broken, || format!("{call:?} of {path:?}: {error}"))?;
            check(!error.message().contains(&of_host), || error.to_string())?;
        }
        scratch.files().write("tree/real/file", content(INSIDE)).await?;
    }
    Ok(())
}
