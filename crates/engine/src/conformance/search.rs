//! Finding files and lines in them.

use super::{
    Failure, Stage,
    case::{CaseResult, cases, check, fails, same},
    files::{put, read},
    scratch::Scratch,
};
use crate::{Edit, ErrorKind, Glob, Grep, Kind, Listing, Matches, Result};

cases![
    files_are_found_by_name,
    names_are_found_in_the_order_of_a_walk,
    hidden_files_are_found_when_asked_for,
    everything_with_a_name_is_found,
    finding_follows_no_links,
    finding_ends_where_it_is_told_to,
    a_pattern_without_meaning_is_invalid,
    lines_are_found_with_their_places,
    searching_is_limited_to_names,
    case_and_text_are_taken_as_asked,
    context_comes_with_a_line,
    a_long_line_is_cut_and_says_so,
    binary_files_are_skipped_and_counted,
    only_regular_files_are_searched,
    a_huge_file_is_searched_in_bounds,
    searching_ends_where_it_is_told_to,
    an_expression_without_meaning_says_where,
    what_cannot_be_read_is_counted,
    text_is_replaced,
    missing_or_ambiguous_text_changes_nothing,
    all_edits_are_done_or_none,
    an_edited_file_keeps_its_mode,
    only_regular_files_are_edited,
    a_file_too_large_to_edit_is_exhausted,
];

fn glob(pattern: &str) -> Glob {
    Glob { pattern: pattern.to_owned(), ..Glob::default() }
}

fn grep(pattern: &str) -> Grep {
    Grep { pattern: pattern.to_owned(), ..Grep::default() }
}

fn edit(old: &str, new: &str) -> Edit {
    Edit { old: old.to_owned(), new: new.to_owned(), ..Edit::default() }
}

async fn home(scratch: &Scratch) -> Result<String, Failure> {
    Ok(scratch.text("cd; pwd -P").await?.trim_end().to_owned())
}

/// The paths found, from the home directory.
fn paths(home: &str, found: &Listing) -> Vec<String> {
    let prefix = format!("{home}/");
    let paths = found.entries.iter().map(|entry| entry.path.as_str());
    paths.map(|path| path.strip_prefix(&prefix).unwrap_or(path).to_owned()).collect()
}

/// The lines found: file, line and column.
fn places(home: &str, found: &Matches) -> Vec<(String, u64, u64)> {
    let prefix = format!("{home}/");
    let shorter = |path: &str| path.strip_prefix(&prefix).unwrap_or(path).to_owned();
    found.matches.iter().map(|one| (shorter(&one.path), one.line, one.column)).collect()
}

async fn files_are_found_by_name(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch
        .text("mkdir -p src/deep docs; touch a.rs src/b.rs src/deep/c.rs src/deep/c.txt docs/d.md 'x y.rs'")
        .await?;
    let home = home(&scratch).await?;

    let cases: [(&str, &[&str]); 7] = [
        ("*.rs", &["a.rs", "x y.rs"]),
        ("**/*.rs", &["a.rs", "src/b.rs", "src/deep/c.rs", "x y.rs"]),
        ("src/**", &["src/b.rs", "src/deep", "src/deep/c.rs", "src/deep/c.txt"]),
        ("{src,docs}/*.{rs,md}", &["docs/d.md", "src/b.rs"]),
        ("**/[a-c].rs", &["a.rs", "src/b.rs", "src/deep/c.rs"]),
        ("src/deep/c.???", &["src/deep/c.txt"]),
        ("nothing*", &[]),
    ];
    for (pattern, expected) in cases {
        let found = scratch.files().glob(&glob(pattern)).await?;
        let expected: Vec<_> = expected.iter().map(ToString::to_string).collect();
        same(pattern, paths(&home, &found), expected)?;
        same("truncated", found.truncated, false)?;
    }
    let below = Glob { path: Some("src".to_owned()), ..glob("*.rs") };
    same("below", paths(&home, &scratch.files().glob(&below).await?), vec!["src/b.rs".into()])
}

async fn names_are_found_in_the_order_of_a_walk(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir b a; for n in 3 1 2; do touch b/$n a/$n $n; done").await?;

    let found = scratch.files().glob(&glob("**")).await?;

    let expected = ["1", "2", "3", "a", "a/1", "a/2", "a/3", "b", "b/1", "b/2", "b/3"];
    let expected: Vec<_> = expected.iter().map(ToString::to_string).collect();
    same("order", paths(&home(&scratch).await?, &found), expected)
}

async fn hidden_files_are_found_when_asked_for(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir -p .git/x a; echo hit > .git/x/f; echo hit > a/f; echo hit > .env").await?;
    let home = home(&scratch).await?;
    let files = scratch.files();

    same(
        "visible",
        paths(&home, &files.glob(&glob("**/*")).await?),
        vec!["a".into(), "a/f".into()],
    )?;
    same("named", paths(&home, &files.glob(&glob(".e*")).await?), vec![".env".to_owned()])?;
    let all = files.glob(&Glob { hidden: true, ..glob("**/f") }).await?;
    same("all", paths(&home, &all), vec![".git/x/f".into(), "a/f".into()])?;
    same("lines", places(&home, &files.grep(&grep("hit")).await?), vec![("a/f".into(), 1, 1)])?;
    let all = files.grep(&Grep { hidden: true, ..grep("hit") }).await?;
    same("all lines", all.matches.len(), 3)
}

async fn everything_with_a_name_is_found(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir d; printf 123 > f; ln -s f l; mkfifo p; ln -s gone broken").await?;

    let found = scratch.files().glob(&glob("*")).await?;

    let kinds: Vec<_> =
        found.entries.iter().map(|entry| (entry.name.as_str(), entry.kind)).collect();
    same(
        "kinds",
        kinds,
        vec![
            ("broken", Kind::Symlink),
            ("d", Kind::Directory),
            ("f", Kind::File),
            ("l", Kind::Symlink),
            ("p", Kind::Other),
        ],
    )?;
    same("size", found.entries[2].size, 3)
}

async fn finding_follows_no_links(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch
        .text("mkdir -p in/d out; echo hit > out/secret; ln -s ../out in/link; ln -s . in/d/loop; ln -s in to; ln -s ../out/secret in/file")
        .await?;
    let home = home(&scratch).await?;
    let files = scratch.files();

    let found = files.glob(&Glob { path: Some("in".into()), ..glob("**") }).await?;
    same(
        "names",
        paths(&home, &found),
        vec!["in/d".to_owned(), "in/d/loop".to_owned(), "in/file".to_owned(), "in/link".to_owned()],
    )?;
    let found = files.grep(&Grep { path: Some("in".into()), ..grep("hit") }).await?;
    same("lines", places(&home, &found), vec![])?;
    // Where it begins is the caller's choice, and followed as the guest would.
    let found = files.glob(&Glob { path: Some("to".into()), ..glob("d") }).await?;
    same("through", found.entries.len(), 1)
}

async fn finding_ends_where_it_is_told_to(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir d; cd d; i=100; while [ $i -lt 160 ]; do : > $i; i=$((i+1)); done").await?;
    let home = home(&scratch).await?;

    let found = scratch.files().glob(&Glob { limit: Some(50), ..glob("d/*") }).await?;
    let whole = scratch.files().glob(&Glob { limit: Some(60), ..glob("d/*") }).await?;

    let expected: Vec<_> = (100..150).map(|number| format!("d/{number}")).collect();
    same("first", paths(&home, &found), expected)?;
    same("more", (found.truncated, whole.truncated), (true, false))?;
    for limit in [0, 10_001] {
        let wrong = Glob { limit: Some(limit), ..glob("*") };
        fails("a limit", ErrorKind::Invalid, scratch.files().glob(&wrong).await)?;
    }
    Ok(())
}

async fn a_pattern_without_meaning_is_invalid(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let files = scratch.files();

    for pattern in ["", "/etc/*", "../*", "a/../b", "[a", "{a,b", "a\\", "a\0b"] {
        fails(pattern, ErrorKind::Invalid, files.glob(&glob(pattern)).await)?;
        let filter = Grep { glob: Some(pattern.to_owned()), ..grep("x") };
        fails(pattern, ErrorKind::Invalid, files.grep(&filter).await)?;
    }
    Ok(())
}

async fn lines_are_found_with_their_places(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    put(&scratch, "src/a.txt", "one\ntwo TODO: x\r\n\nTODO TODO\nno end TODO").await?;
    put(&scratch, "b.txt", "ä TODO\n").await?;
    let home = home(&scratch).await?;

    let found = scratch.files().grep(&grep(r"TO\w+")).await?;

    same(
        "places",
        places(&home, &found),
        vec![
            ("b.txt".into(), 1, 4),
            ("src/a.txt".into(), 2, 5),
            ("src/a.txt".into(), 4, 1),
            ("src/a.txt".into(), 5, 8),
        ],
    )?;
    let second = &found.matches[1];
    same("text", (second.text.as_str(), second.length, second.cut), ("two TODO: x", 4, false))?;
    let counts = (found.truncated, found.searched, found.binary, found.unreadable);
    same("counts", counts, (false, 2, 0, 0))?;
    let one = Grep { path: Some("src/a.txt".into()), ..grep("one") };
    same(
        "a file",
        places(&home, &scratch.files().grep(&one).await?),
        vec![("src/a.txt".into(), 1, 1)],
    )
}

async fn searching_is_limited_to_names(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch
        .text("mkdir -p a/b; for f in x.rs a/x.rs a/x.md a/b/x.rs; do echo hit > $f; done")
        .await?;
    let home = home(&scratch).await?;
    let found = async |filter: &str| {
        let grep = Grep { glob: Some(filter.to_owned()), ..grep("hit") };
        let found = scratch.files().grep(&grep).await?;
        let paths: Vec<_> = places(&home, &found).into_iter().map(|place| place.0).collect();
        Ok::<_, Failure>(paths.join(" "))
    };

    same("by name", found("*.rs").await?, "a/b/x.rs a/x.rs x.rs".into())?;
    same("by path", found("a/*.rs").await?, "a/x.rs".into())?;
    same("either", found("{a/b/*,*.md}").await?, "a/b/x.rs a/x.md".into())
}

async fn case_and_text_are_taken_as_asked(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    put(&scratch, "f", "a.b\nA.B\naxb\n").await?;
    let lines = async |grep: Grep| {
        let found = scratch.files().grep(&grep).await?;
        Ok::<_, Failure>(found.matches.iter().map(|one| one.line).collect::<Vec<_>>())
    };

    same("as it is", lines(grep("a.b")).await?, vec![1, 3])?;
    same("any case", lines(Grep { ignore_case: true, ..grep("a.b") }).await?, vec![1, 2, 3])?;
    same("text", lines(Grep { literal: true, ..grep("a.b") }).await?, vec![1])
}

async fn context_comes_with_a_line(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    put(&scratch, "f", "1\n2\nhit\n4\n5\n").await?;

    let found = scratch.files().grep(&Grep { context: 1, ..grep("hit") }).await?;

    let one = &found.matches[0];
    same("around", (one.before.join(","), one.after.join(",")), ("2".into(), "4".into()))?;
    let too_much = Grep { context: 11, ..grep("hit") };
    fails("context", ErrorKind::Invalid, scratch.files().grep(&too_much).await).map(drop)
}

async fn a_long_line_is_cut_and_says_so(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let line = ["x".repeat(300_000), "needle".into(), "y".repeat(300_000)].concat();
    put(&scratch, "long", line).await?;

    let found = scratch.files().grep(&grep("needle")).await?;

    let one = &found.matches[0];
    same("place", (one.line, one.column, one.cut), (1, 300_001, true))?;
    check(one.text.contains("needle") && one.text.len() < 5000, || {
        format!("{} bytes of it", one.text.len())
    })
}

async fn binary_files_are_skipped_and_counted(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    put(&scratch, "binary", b"hit\n\0hit\n".to_vec()).await?;
    put(&scratch, "latin", b"hit \xe4\n".to_vec()).await?;

    let found = scratch.files().grep(&grep("hit")).await?;

    same("counts", (found.matches.len(), found.searched, found.binary), (1, 2, 1))?;
    same("text", found.matches[0].text.as_str(), "hit \u{fffd}")
}

async fn only_regular_files_are_searched(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch
        .text("mkdir d; mkfifo d/pipe; ln -s /dev/zero d/zero; echo hit > d/file; ln -s pipe d/p")
        .await?;
    let files = scratch.files();

    let found = files.grep(&Grep { path: Some("d".into()), ..grep("hit") }).await?;
    same("found", (found.matches.len(), found.searched), (1, 1))?;
    for path in ["d/pipe", "/dev/zero", "d/p"] {
        let wrong = Grep { path: Some(path.to_owned()), ..grep("hit") };
        fails(path, ErrorKind::Invalid, files.grep(&wrong).await)?;
    }
    let missing = Grep { path: Some("missing".into()), ..grep("hit") };
    fails("missing", ErrorKind::NotFound, files.grep(&missing).await).map(drop)
}

async fn a_huge_file_is_searched_in_bounds(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("echo hit > sparse; truncate -s 1T sparse; yes line | head -c 20000000 > big; echo hit >> big").await?;
    let home = home(&scratch).await?;

    let found = scratch.files().grep(&grep("hit")).await?;

    same("binary", found.binary, 1)?;
    check(places(&home, &found).contains(&("big".into(), 4_000_001, 1)), || {
        format!("{:?}", places(&home, &found))
    })
}

async fn searching_ends_where_it_is_told_to(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    put(&scratch, "f", "hit\n".repeat(60)).await?;

    let some = scratch.files().grep(&Grep { limit: Some(50), ..grep("hit") }).await?;
    let all = scratch.files().grep(&Grep { limit: Some(60), ..grep("hit") }).await?;

    same("some", (some.matches.len(), some.truncated), (50, true))?;
    same("all", (all.matches.len(), all.truncated), (60, false))
}

async fn an_expression_without_meaning_says_where(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    for (pattern, place) in [("ab(c", '3'), ("a[", '2'), ("(?=x)", '1')] {
        let refused = scratch.files().grep(&grep(pattern)).await;
        let message = fails(pattern, ErrorKind::Invalid, refused)?;
        check(message.contains(place), || format!("{pattern}: {message}"))?;
    }
    let huge = grep("(?:\\w{100}){100}");
    fails("huge", ErrorKind::Invalid, scratch.files().grep(&huge).await)?;
    fails("empty", ErrorKind::Invalid, scratch.files().grep(&grep("")).await).map(drop)
}

/// Where the guest is root on its host it reads everything, and so does the caller.
async fn what_cannot_be_read_is_counted(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch
        .text("echo hit > open; echo hit > shut; mkdir no; echo hit > no/f; chmod 0 shut no")
        .await?;
    let guest = scratch.sh("cat shut && ls no").await?.outcome.succeeded();

    let found = scratch.files().grep(&grep("hit")).await?;

    scratch.text("chmod 700 no").await?;
    let expected = if guest { (3, 0) } else { (1, 2) };
    same("found and not", (found.matches.len(), found.unreadable), expected)
}

async fn text_is_replaced(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    put(&scratch, "f", b"one two \xff two\n".to_vec()).await?;
    let files = scratch.files();

    let once = files.edit("f", &[edit("one", "1")]).await?;
    let all = Edit { replace_all: true, ..edit("two", "zwei") };
    let twice = files.edit("f", &[all]).await?;

    same("counts", (once.replaced, twice.replaced), (1, 2))?;
    let content = read(&scratch, "f").await?;
    same("size", twice.size, content.len() as u64)?;
    same("content", content, b"1 zwei \xff zwei\n".to_vec())
}

async fn missing_or_ambiguous_text_changes_nothing(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    put(&scratch, "f", "a a a").await?;
    let files = scratch.files();
    let refused = async |edit: Edit| {
        fails(&edit.old.clone(), ErrorKind::Invalid, files.edit("f", &[edit]).await)
    };

    refused(edit("b", "c")).await?;
    let message = refused(edit("a", "c")).await?;
    check(message.contains('3'), || message)?;
    refused(Edit { expected: Some(2), ..edit("a", "c") }).await?;
    refused(edit("", "c")).await?;
    refused(edit("a", "a")).await?;
    fails("none", ErrorKind::Invalid, files.edit("f", &[]).await)?;
    fails("missing", ErrorKind::NotFound, files.edit("g", &[edit("a", "b")]).await)?;
    same("content", read(&scratch, "f").await?, b"a a a".to_vec())?;
    same("files", scratch.text("ls -A").await?, "f\n".into())?;
    let three = Edit { expected: Some(3), ..edit("a", "c") };
    same("as expected", files.edit("f", &[three]).await?.replaced, 3)
}

async fn all_edits_are_done_or_none(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    put(&scratch, "f", "one two").await?;
    let files = scratch.files();

    let edits = [edit("one", "1"), edit("missing", "x")];
    let message = fails("one of two", ErrorKind::Invalid, files.edit("f", &edits).await)?;
    check(message.contains('2'), || message)?;
    same("old", read(&scratch, "f").await?, b"one two".to_vec())?;
    let done = files.edit("f", &[edit("one", "1"), edit("1 two", "12")]).await?;
    same("done", (done.replaced, done.size), (2, 2))?;
    same("new", read(&scratch, "f").await?, b"12".to_vec())
}

async fn an_edited_file_keeps_its_mode(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("echo old > tool; chmod 750 tool; ln -s tool link").await?;

    scratch.files().edit("link", &[edit("old", "new")]).await?;

    let line = "stat -c '%a %u' tool; test -L link; cat tool; id -u";
    let told = scratch.text(line).await?;
    let lines: Vec<_> = told.lines().collect();
    same("mode", lines[0].to_owned(), format!("750 {}", lines[2]))?;
    same("content", lines[1], "new")
}

async fn only_regular_files_are_edited(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("mkdir d; mkfifo pipe").await?;

    for path in ["d", "pipe", "/dev/zero"] {
        let refused = scratch.files().edit(path, &[edit("a", "b")]).await;
        fails(path, ErrorKind::Invalid, refused)?;
    }
    Ok(())
}

async fn a_file_too_large_to_edit_is_exhausted(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("truncate -s 1T huge").await?;

    let refused = scratch.files().edit("huge", &[edit("a", "b")]).await;
    fails("huge", ErrorKind::Exhausted, refused).map(drop)
}
