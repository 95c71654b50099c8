//! What a program finds around it: what it was given, and nothing of the daemon's.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use super::{
    Failure, Stage,
    case::{CaseResult, cases, check, fails, same, unless_refused},
    scratch::{Doomed, Scratch, fresh_id, text},
};
use crate::{Command, ErrorKind, Image, Isolation, Root, Spec};

cases![
    variables_come_from_the_spec_and_the_command,
    no_variable_of_the_daemon_gets_in,
    variables_may_hold_anything,
    a_process_has_three_descriptors,
    signals_are_as_a_program_expects_them,
    home_is_writable_and_ones_own,
    a_temporary_directory_is_writable,
    sandboxes_do_not_share_files,
    an_isolated_guest_does_not_see_the_host,
    directories_besides_the_programs_are_shown,
    a_directory_can_be_the_root,
    a_virtual_environment_can_be_the_root,
    an_image_that_is_not_here_is_not_found,
    a_runtime_nobody_has_is_refused,
];

/// What a sandbox may have of its own, besides what a spec and a command give.
const OWN: [&str; 13] = [
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TMPDIR",
    "TZ", "PWD", "HOSTNAME",
];

async fn variables_come_from_the_spec_and_the_command(stage: Stage) -> CaseResult {
    let env = [("SPEC", "spec"), ("BOTH", "spec")].map(|(key, value)| (key.into(), value.into()));
    let spec = Spec { env: BTreeMap::from(env), ..stage.spec() };
    let scratch = Scratch::asking(&stage, "env", spec).await?;

    let mut command = Command::shell("echo $SPEC $BOTH $COMMAND");
    command.env.insert("BOTH".into(), "command".into());
    command.env.insert("COMMAND".into(), "command".into());

    same("with", text(&scratch.run(command).await?.stdout), "spec command command\n".into())?;
    same("without", scratch.text("echo $SPEC $BOTH $COMMAND").await?, "spec spec\n".into())
}

async fn no_variable_of_the_daemon_gets_in(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    let mut command = Command::new(["env", "-0"]);
    command.env.insert("GIVEN".into(), "1".into());
    let output = text(&scratch.run(command).await?.stdout);

    let names: BTreeSet<_> =
        output.split_terminator('\0').filter_map(|pair| pair.split('=').next()).collect();
    let strange: Vec<_> =
        names.iter().filter(|name| **name != "GIVEN" && !OWN.contains(name)).collect();
    check(names.contains("GIVEN"), || format!("the command's own is missing: {names:?}"))?;
    check(names.contains("PATH") && names.contains("HOME"), || format!("too few: {names:?}"))?;
    check(strange.is_empty(), || format!("not asked for: {strange:?}"))
}

async fn variables_may_hold_anything(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let value = " a=b\n'\"$(id)\\ ä ";

    let mut command = Command::shell("printf %s \"$VALUE\"; printf %s \"$EMPTY-\"");
    command.env.insert("VALUE".into(), value.into());
    command.env.insert("EMPTY".into(), String::new());

    same("value", text(&scratch.run(command).await?.stdout), format!("{value}-"))
}

async fn a_process_has_three_descriptors(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    // The shell's own look at the directory is closed again when each entry is tried.
    let line = "for fd in /proc/$$/fd/*; do [ -L $fd ] && echo ${fd##*/}; done; true";

    same("descriptors", scratch.text(line).await?, "0\n1\n2\n".into())
}

async fn signals_are_as_a_program_expects_them(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    let masks = scratch.text("grep -E '^Sig(Blk|Ign):' /proc/self/status").await?;

    let expected = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n";
    same("masks", masks, expected.into())
}

async fn home_is_writable_and_ones_own(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    let line = "[ -n \"$HOME\" ] && cd && [ \"$(pwd -P)\" = \"$(cd \"$HOME\"; pwd -P)\" ] && ls -A";

    same("what it holds at first", scratch.text(line).await?, String::new())?;
    same("written", scratch.text("echo x > ~/f; cat ~/f").await?, "x\n".into())
}

async fn a_temporary_directory_is_writable(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    let line = "f=$(mktemp) && echo x > $f && cat $f && rm $f";

    same("written", scratch.text(line).await?, "x\n".into())
}

async fn sandboxes_do_not_share_files(stage: Stage) -> CaseResult {
    let one = Scratch::new(&stage).await?;
    let two = Scratch::new(&stage).await?;

    one.text("echo mine > note").await?;

    same("the other one's home", two.text("ls -A").await?, String::new())
}

async fn an_isolated_guest_does_not_see_the_host(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    if stage.engine().isolation() == Isolation::None {
        return Ok(());
    }
    let outside = stage.host_directory()?;
    let path = outside.path().join("secret");
    fs::write(&path, "secret")?;

    let pid = std::process::id();
    let line = format!("cat {} /proc/{pid}/environ; kill -0 {pid}", path.display());
    let output = scratch.sh(&line).await?;

    same("what it saw", text(&output.stdout), String::new())?;
    check(!output.outcome.succeeded(), || "a process of the host was there".into())
}

async fn directories_besides_the_programs_are_shown(stage: Stage) -> CaseResult {
    let spec = Spec { root: Root::Host { also: vec!["/usr/local".into()] }, ..stage.spec() };
    let scratch = Scratch::asking(&stage, "root", spec).await?;

    let mut names = Vec::new();
    for entry in fs::read_dir("/usr/local")? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    let seen = scratch.text("ls -A /usr/local | LC_ALL=C sort").await?;
    same("what is there", seen.lines().map(str::to_owned).collect(), names)?;
    if stage.engine().isolation() != Isolation::None {
        let written = scratch.sh("echo x > /usr/local/atoll-was-here").await?.outcome;
        check(!written.succeeded(), || "it can be written".into())?;
    }
    Ok(())
}

async fn a_directory_can_be_the_root(stage: Stage) -> CaseResult {
    let root = stage.host_directory()?;
    install_shell(root.path())?;
    let before = everything_in(root.path())?;
    let spec = Spec { root: Root::Directory(root.path().into()), ..stage.spec() };
    let scratch = Scratch::asking(&stage, "root", spec).await?;

    same(
        "stdout",
        scratch.text("echo $(cat_is_not_here 2>/dev/null || echo alone)").await?,
        "alone\n".into(),
    )?;
    scratch.sh("echo x > /bin/new; echo x > /new; echo x > note; echo x > /tmp/note").await?;
    same("its own", scratch.text("read line < note; echo $line").await?, "x\n".into())?;

    same("the shared root", everything_in(root.path())?, before)
}

/// Puts the host's shell and the libraries it needs into a directory.
fn install_shell(root: &Path) -> Result<(), Failure> {
    let listed = std::process::Command::new("ldd").arg("/bin/sh").output()?.stdout;
    let listed = text(&listed);
    let libraries = listed.split_whitespace().filter(|word| word.starts_with('/'));
    for path in libraries.chain(["/bin/sh"]) {
        let to = root.join(path.trim_start_matches('/'));
        fs::create_dir_all(to.parent().unwrap_or(root))?;
        fs::copy(path, &to)?;
    }
    fs::set_permissions(root, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

/// Every path below a directory, in order.
fn everything_in(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.extend(everything_in(&entry.path())?);
        }
        found.push(entry.path());
    }
    found.sort();
    Ok(found)
}

async fn a_virtual_environment_can_be_the_root(stage: Stage) -> CaseResult {
    let id = fresh_id();
    let _doomed = Doomed::new(&stage, &id);
    let spec = Spec { root: Root::Venv, ..stage.spec() };

    let created = stage.engine().create(&id, &spec).await;

    if let Err(error) = &created
        && error.kind() == ErrorKind::Unavailable
    {
        // A host without Python.
        return check(error.advice().is_some(), || "it does not say what to install".into());
    }
    let sandbox = unless_refused("root", created)?;
    let program = "import sys; print(sys.prefix != sys.base_prefix)";
    let output = crate::exec(&sandbox, Command::new(["python", "-c", program]), None).await?;
    same("in a virtual environment", text(&output.stdout), "True\n".into())
}

async fn an_image_that_is_not_here_is_not_found(stage: Stage) -> CaseResult {
    let id = fresh_id();
    let _doomed = Doomed::new(&stage, &id);
    let root = Root::Image(Image::Reference("atoll.invalid/no-such-image:none".into()));

    let created = stage.engine().create(&id, &Spec { root, ..stage.spec() }).await;

    let created = match created {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            check(error.advice().is_some(), || "it does not say how to get it".into())?;
            Err(error)
        }
        created => Ok(unless_refused("image", created)?),
    };
    fails("create", ErrorKind::NotFound, created)?;
    same("listed", stage.engine().list().await?.contains(&id), false)
}

async fn a_runtime_nobody_has_is_refused(stage: Stage) -> CaseResult {
    let id = fresh_id();
    let _doomed = Doomed::new(&stage, &id);
    let spec = Spec { runtime: Some("no-such-runtime".into()), ..stage.spec() };

    let created = stage.engine().create(&id, &spec).await;

    let message = fails("create", ErrorKind::Unsupported, created)?;
    check(message.contains("runtime"), || format!("another refusal: {message}"))?;
    same("listed", stage.engine().list().await?.contains(&id), false)
}
