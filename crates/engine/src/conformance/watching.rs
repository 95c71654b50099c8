//! What happens to files while somebody looks.

use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::time::{Instant, sleep, timeout};

use super::{
    Failure, Stage,
    case::{CaseResult, broken, cases, check, fails, same},
    files::put,
    scratch::Scratch,
};
use crate::{Change, Changes, Edit, ErrorKind, Result};

cases![
    changes_are_told_as_they_happen,
    nothing_is_missed_once_it_watches,
    only_the_directory_is_watched_unless_asked,
    new_directories_are_followed,
    what_was_in_a_new_directory_is_told,
    a_moved_directory_is_followed,
    what_leaves_is_no_longer_watched,
    watching_follows_no_links,
    names_that_are_no_text_are_told,
    what_is_no_directory_is_not_watched,
    what_a_caller_writes_is_told_as_the_file_alone,
    a_watch_ends_with_its_directory,
    what_a_slow_reader_misses_is_told_as_lost,
    a_storm_of_changes_is_outlived,
    too_many_watches_are_exhausted,
];

/// How long something may take to be told.
const PATIENCE: Duration = Duration::from_secs(30);

/// A watch, and the directory it is of.
struct Watched<'a> {
    scratch: &'a Scratch,
    changes: Changes,
    path: String,
}

impl<'a> Watched<'a> {
    async fn new(scratch: &'a Scratch, path: &str, recursive: bool) -> Result<Self, Failure> {
        let home = scratch.text("cd; pwd -P").await?;
        let changes = begin(scratch, path, recursive).await?;
        Ok(Self { scratch, changes, path: format!("{}/{path}/", home.trim_end()) })
    }

    async fn next(&mut self) -> Result<Change, Failure> {
        match timeout(PATIENCE, self.changes.next()).await {
            Ok(Some(change)) => Ok(change?),
            Ok(None) => broken("the watch ended"),
            Err(_) => broken("nothing more was told"),
        }
    }

    /// All that is told up to the making of a file that this makes now.
    async fn rest(&mut self, mark: &str) -> Result<Vec<String>, Failure> {
        self.scratch.text(&format!(": > '{}{mark}'", self.path)).await?;
        self.until(&format!("+ {mark}")).await
    }

    /// All that is told up to this.
    async fn until(&mut self, last: &str) -> Result<Vec<String>, Failure> {
        let mut told = Vec::new();
        loop {
            let change = self.next().await?;
            let line = short(&self.path, &change);
            if line == last {
                return Ok(told);
            }
            // Several writes in a row are one or several changes.
            if told.last() != Some(&line) {
                told.push(line);
            }
        }
    }
}

/// Begins to watch. The kernel counts watches for whoever made the sandbox, and those of others
/// that were just given up for a moment longer: who finds none free waits.
pub(super) async fn begin(scratch: &Scratch, path: &str, recursive: bool) -> Result<Changes> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match scratch.files().watch(path, recursive).await {
            Err(error) if error.kind() == ErrorKind::Exhausted && Instant::now() < deadline => {
                sleep(Duration::from_millis(20)).await;
            }
            begun => return begun,
        }
    }
}

/// A change as a short line, its paths from the watched directory.
fn short(base: &str, change: &Change) -> String {
    let below = |path: &str| path.strip_prefix(base).unwrap_or(path).to_owned();
    let slash = |directory: &bool| if *directory { "/" } else { "" };
    match change {
        Change::Created { path, directory } => format!("+ {}{}", below(path), slash(directory)),
        Change::Written { path } => format!("w {}", below(path)),
        Change::Removed { path, directory } => format!("- {}{}", below(path), slash(directory)),
        Change::Moved { from, path, directory } => {
            format!("{} > {}{}", below(from), below(path), slash(directory))
        }
        Change::Attributes { path, directory } => format!("a {}{}", below(path), slash(directory)),
        Change::Overflow => "overflow".to_owned(),
        Change::Unwatched { path } => format!("unwatched {}", below(path)),
    }
}

fn lines(told: &[&str]) -> Vec<String> {
    told.iter().map(ToString::to_string).collect()
}

async fn changes_are_told_as_they_happen(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir d; : > d/old").await?;
    let mut watched = Watched::new(&scratch, "d", false).await?;

    scratch
        .text("cd d; : > new; echo x >> new; chmod 600 new; mv new other; rm other; mkdir sub; rmdir sub; echo x > old; mv old ../gone; mv ../gone back")
        .await?;

    let expected = lines(&[
        "+ new",
        "w new",
        "a new",
        "new > other",
        "- other",
        "+ sub/",
        "- sub/",
        "w old",
        "- old",
        "+ back",
    ]);
    same("told", watched.rest("end").await?, expected)
}

async fn nothing_is_missed_once_it_watches(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir -p d/a/b").await?;

    for round in 0..10 {
        let mut watched = Watched::new(&scratch, "d", true).await?;
        scratch.text(&format!("cd d; mkdir {round}; mkdir a/b/{round}")).await?;
        let told = watched.rest(&format!("end{round}")).await?;
        same("told", told, vec![format!("+ {round}/"), format!("+ a/b/{round}/")])?;
    }
    Ok(())
}

async fn only_the_directory_is_watched_unless_asked(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir -p d/sub").await?;
    let mut watched = Watched::new(&scratch, "d", false).await?;

    scratch.text("cd d; : > sub/inner; mkdir new; : > new/inner; : > outer").await?;

    same("told", watched.rest("end").await?, lines(&["+ new/", "+ outer"]))
}

async fn new_directories_are_followed(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir -p d/x").await?;
    let mut watched = Watched::new(&scratch, "d", true).await?;

    scratch.text("mkdir d/a").await?;
    watched.until("+ a/").await?;
    scratch.text("mkdir d/a/b").await?;
    watched.until("+ a/b/").await?;
    // That it is told does not say that it is watched already: but what is in it then is found.
    scratch.text("echo x > d/a/b/f").await?;
    watched.until("+ a/b/f").await?;
    scratch.text("rm -r d/a; : > d/x/y").await?;

    let rest: Vec<_> =
        watched.rest("end").await?.into_iter().filter(|line| !line.starts_with('w')).collect();
    same("told", rest, lines(&["- a/b/f", "- a/b/", "- a/", "+ x/y"]))
}

async fn what_was_in_a_new_directory_is_told(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir d; mkdir -p out/p/q; : > out/p/q/r; : > out/s").await?;
    let mut watched = Watched::new(&scratch, "d", true).await?;

    scratch.text("mkdir -p d/a/b/c; : > d/a/b/c/f; mv out d/in").await?;

    let mut missing = vec!["+ a/", "+ a/b/", "+ a/b/c/", "+ a/b/c/f", "+ in/", "+ in/s"];
    missing.extend(["+ in/p/", "+ in/p/q/", "+ in/p/q/r"]);
    while !missing.is_empty() {
        let change = watched.next().await?;
        let line = short(&watched.path, &change);
        missing.retain(|expected| *expected != line);
    }
    Ok(())
}

async fn a_moved_directory_is_followed(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir -p d/a/b d/z").await?;
    let mut watched = Watched::new(&scratch, "d", true).await?;

    scratch.text("cd d; mv a z/k; : > z/k/b/f; mv z/k a; : > a/g").await?;

    let expected = lines(&["a > z/k/", "+ z/k/b/f", "z/k > a/", "+ a/g"]);
    same("told", watched.rest("end").await?, expected)
}

async fn what_leaves_is_no_longer_watched(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir -p d/a/b").await?;
    let mut watched = Watched::new(&scratch, "d", true).await?;

    scratch.text("mv d/a out").await?;
    let told = watched.rest("one").await?;
    scratch.text(": > out/f; : > out/b/g; mkdir out/c").await?;

    same("told", told, lines(&["- a/"]))?;
    same("after", watched.rest("two").await?, vec![])
}

async fn watching_follows_no_links(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir -p d out; ln -s ../out d/link; ln -s . d/loop; ln -s d to").await?;
    let mut watched = Watched::new(&scratch, "d", true).await?;

    scratch.text("ln -s ../out d/second; : > out/f; : > d/link/g").await?;

    same("told", watched.rest("end").await?, lines(&["+ second"]))?;
    // Where it begins is the caller's choice.
    let mut watched = Watched::new(&scratch, "to", true).await?;
    same("through", watched.rest("more").await?, vec![])
}

async fn names_that_are_no_text_are_told(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir d").await?;
    let mut watched = Watched::new(&scratch, "d", true).await?;

    scratch.text(r#"cd d; : > "$(printf 'a\377b')"; : > "$(printf 'line\nfeed')""#).await?;

    same("told", watched.rest("end").await?, lines(&["+ a\u{fffd}b", "+ line\nfeed"]))
}

async fn what_is_no_directory_is_not_watched(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("echo x > file; mkfifo pipe; mkdir closed; chmod 0 closed").await?;
    let files = scratch.files();
    let refused = async |path: &str, kind| {
        fails(path, kind, files.watch(path, true).await.map(drop)).map(drop)
    };

    refused("missing", ErrorKind::NotFound).await?;
    refused("file", ErrorKind::Invalid).await?;
    refused("pipe", ErrorKind::Invalid).await?;
    refused("", ErrorKind::Invalid).await?;
    if !scratch.sh("ls closed").await?.outcome.succeeded() {
        refused("closed", ErrorKind::Denied).await?;
    }
    scratch.text("chmod 700 closed").await.map(drop)
}

async fn what_a_caller_writes_is_told_as_the_file_alone(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir d").await?;
    let mut watched = Watched::new(&scratch, "d", true).await?;
    let edit = Edit { old: "x".into(), new: "y".into(), ..Edit::default() };

    put(&scratch, "d/f", "x").await?;
    put(&scratch, "d/f", "x x").await?;
    scratch.files().edit("d/f", &[Edit { replace_all: true, ..edit }]).await?;
    scratch.files().copy("d/f", "d/g").await?;
    scratch.files().rename("d/g", "d/h").await?;

    let expected = lines(&["+ f", "w f", "+ g", "g > h"]);
    same("told", watched.rest("end").await?, expected)
}

async fn a_watch_ends_with_its_directory(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir one two").await?;
    let mut removed = Watched::new(&scratch, "one", true).await?;
    let mut moved = Watched::new(&scratch, "two", true).await?;

    scratch.text("rmdir one; mv two three").await?;

    for watched in [&mut removed, &mut moved] {
        let path = watched.path.trim_end_matches('/').to_owned();
        let last = Change::Removed { path, directory: true };
        while watched.next().await? != last {}
        let after = timeout(PATIENCE, watched.changes.next()).await;
        check(matches!(after, Ok(None)), || format!("{after:?} came after the end"))?;
    }
    Ok(())
}

/// Renames a file to and fro, which needs no room.
fn storm(times: u32) -> String {
    let line = r#"perl -e 'for (1..TIMES) { rename("a", "b"); rename("b", "a") }'"#;
    line.replace("TIMES", &times.to_string())
}

async fn what_a_slow_reader_misses_is_told_as_lost(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir d; : > d/a").await?;
    let mut watched = Watched::new(&scratch, "d", false).await?;

    scratch.text(&format!("cd d; {}", storm(30_000))).await?;

    let mut count = 0;
    while watched.next().await? != Change::Overflow {
        count += 1;
        check(count < 100_000, || "100000 changes were kept".into())?;
    }
    // From now on everything is told again.
    settle(&mut watched).await?;
    scratch.text(": > d/after").await?;
    watched.until("+ after").await.map(drop)
}

/// Waits until a new file is told, however much is told before and lost.
async fn settle(watched: &mut Watched<'_>) -> CaseResult {
    let deadline = Instant::now() + PATIENCE;
    for round in 0.. {
        let mark = format!("{}settled{round}", watched.path);
        watched.scratch.text(&format!(": > '{mark}'")).await?;
        let seen = async {
            loop {
                match watched.changes.next().await {
                    Some(Ok(Change::Created { path, .. })) if path == mark => return Ok(()),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Err(Failure::from(error)),
                    None => return broken("the watch ended"),
                }
            }
        };
        if let Ok(seen) = timeout(Duration::from_secs(1), seen).await {
            return seen;
        }
        check(Instant::now() < deadline, || "it never settled".into())?;
    }
    Ok(())
}

async fn a_storm_of_changes_is_outlived(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir -p d/t; : > d/a").await?;
    let mut watched = Watched::new(&scratch, "d", true).await?;
    let line = r#"perl -e 'for (1..1500) { mkdir("x"); mkdir("x/y"); rename("x", "t/z"); rename("t/z", "x"); rmdir("x/y"); rmdir("x") }'"#;

    scratch.text(&format!("cd d; {line}")).await?;
    // Others are served meanwhile and afterwards.
    scratch.files().stat("d/t").await?;

    settle(&mut watched).await?;
    scratch.text("mkdir -p d/n/m").await?;
    watched.until("+ n/m/").await?;
    scratch.text(": > d/n/m/f").await?;
    watched.until("+ n/m/f").await.map(drop)
}

async fn too_many_watches_are_exhausted(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let mut watches = Vec::new();
    loop {
        match scratch.files().watch(".", false).await {
            Ok(changes) => watches.push(changes),
            Err(error) if error.kind() == ErrorKind::Exhausted => break,
            Err(error) => return Err(error.into()),
        }
        check(watches.len() < 1000, || "there is no end of watches".into())?;
    }
    check(!watches.is_empty(), || "there is not one watch".into())?;
    scratch.files().stat(".").await?;

    drop(watches);
    let deadline = Instant::now() + PATIENCE;
    while scratch.files().watch(".", true).await.is_err() {
        check(Instant::now() < deadline, || "none is free again".into())?;
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}
