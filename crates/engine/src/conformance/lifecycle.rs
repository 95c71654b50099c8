//! How sandboxes come and go.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt as _, StreamExt as _};
use tokio::time;

use super::{
    Failure, Stage,
    case::{CaseResult, broken, cases, check, fails, same},
    files::content,
    scratch::{Doomed, Scratch, fresh_id, some_output},
};
use crate::{Command, ErrorKind, Event, Isolation, Limits, Offsets, Reason, Root, SandboxId, Spec};

cases![
    a_probe_changes_nothing,
    preparing_what_is_here_changes_nothing,
    a_new_sandbox_is_ready,
    an_id_in_use_exists_already,
    an_untrusted_spec_is_denied_without_isolation,
    a_create_that_fails_leaves_nothing,
    a_create_that_is_dropped_leaves_nothing,
    a_dropped_handle_changes_nothing,
    a_sandbox_is_found_again,
    what_never_was_is_not_found,
    destroying_twice_is_fine,
    destroying_what_never_was_is_fine,
    another_daemon_destroys_it,
    a_destroy_that_is_dropped_goes_on,
    what_is_destroyed_is_not_found,
    after_its_end_every_call_is_lost,
    its_end_is_noticed,
    a_running_process_is_lost_with_its_sandbox,
    a_started_process_does_not_survive,
    an_id_can_be_used_again_after_a_failure,
    many_live_side_by_side,
];

async fn until_unlisted(stage: &Stage, id: &SandboxId) -> CaseResult {
    let deadline = time::Instant::now() + Duration::from_secs(30);
    while stage.engine().list().await?.contains(id) {
        if time::Instant::now() > deadline {
            return broken("it is still listed");
        }
        time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

async fn a_probe_changes_nothing(stage: Stage) -> CaseResult {
    let engine = stage.another_engine();

    let first = engine.probe().await?;
    let second = engine.probe().await?;

    same("the second answer", second, first)
}

async fn preparing_what_is_here_changes_nothing(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("echo x > file").await?;

    stage.engine().prepare(&stage.spec().root, &|_| {}).await?;

    same("the sandbox", scratch.text("cat file").await?, "x\n".into())
}

async fn a_new_sandbox_is_ready(stage: Stage) -> CaseResult {
    let id = fresh_id();
    let _doomed = Doomed::new(&stage, &id);

    let sandbox = stage.engine().create(&id, &stage.spec()).await?;

    same("its id", sandbox.id().clone(), id)?;
    let output = crate::exec(&sandbox, Command::new(["echo", "ready"]), None).await?;
    same("stdout", output.stdout, b"ready\n".to_vec())
}

async fn an_id_in_use_exists_already(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("echo x > file").await?;

    for engine in [Arc::clone(stage.engine()), stage.another_engine()] {
        let again = engine.create(scratch.id(), &stage.spec()).await;
        fails("create", ErrorKind::AlreadyExists, again)?;
    }

    same("the first one", scratch.text("cat file").await?, "x\n".into())
}

async fn an_untrusted_spec_is_denied_without_isolation(stage: Stage) -> CaseResult {
    let id = fresh_id();
    let _doomed = Doomed::new(&stage, &id);

    let created = stage.engine().create(&id, &Spec { trusted: false, ..stage.spec() }).await;

    if stage.engine().isolation() == Isolation::None {
        fails("create", ErrorKind::Denied, created)?;
        return same("left", stage.engine().list().await?.contains(&id), false);
    }
    Ok(created.map(drop)?)
}

async fn a_create_that_fails_leaves_nothing(stage: Stage) -> CaseResult {
    let id = fresh_id();
    let _doomed = Doomed::new(&stage, &id);
    let root = Root::Directory("/no/such/root".into());

    let created = stage.engine().create(&id, &Spec { root, ..stage.spec() }).await;

    check(created.is_err(), || "a root that is not there was fine".into())?;
    same("listed", stage.engine().list().await?.contains(&id), false)?;
    check(stage.engine().attach(&id).await?.is_none(), || "it is found".into())
}

async fn a_create_that_is_dropped_leaves_nothing(stage: Stage) -> CaseResult {
    for patience in [0, 1, 3, 10, 30] {
        let id = fresh_id();
        let _doomed = Doomed::new(&stage, &id);
        let spec = stage.spec();
        let creating = stage.engine().create(&id, &spec);

        if time::timeout(Duration::from_millis(patience), creating).await.is_err() {
            until_unlisted(&stage, &id).await?;
            check(stage.engine().attach(&id).await?.is_none(), || "it is found".into())?;
        }
    }
    Ok(())
}

async fn a_dropped_handle_changes_nothing(stage: Stage) -> CaseResult {
    let id = fresh_id();
    let _doomed = Doomed::new(&stage, &id);
    let sandbox = stage.engine().create(&id, &stage.spec()).await?;
    let line = "until [ -e go ]; do sleep 0.05; done; exit 5";
    let process = sandbox.start(Command::shell(line)).await?;
    drop(sandbox);

    let Some(found) = stage.engine().attach(&id).await? else { return broken("it is gone") };
    crate::exec(&found, Command::shell("echo > go"), None).await?;

    let output = super::scratch::finish(found.as_ref(), process, Offsets::default()).await?;
    same("exit code", output.outcome.exit_code, Some(5))
}

async fn a_sandbox_is_found_again(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    scratch.text("echo kept > file").await?;

    for engine in [Arc::clone(stage.engine()), stage.another_engine()] {
        let Some(found) = engine.attach(scratch.id()).await? else { return broken("not found") };
        same("its id", found.id(), scratch.id())?;
        let output = crate::exec(&found, Command::new(["cat", "file"]), None).await?;
        same("stdout", output.stdout, b"kept\n".to_vec())?;
    }
    Ok(())
}

async fn what_never_was_is_not_found(stage: Stage) -> CaseResult {
    check(stage.engine().attach(&fresh_id()).await?.is_none(), || "something is found".into())
}

async fn destroying_twice_is_fine(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    scratch.destroy().await?;
    scratch.destroy().await?;
    stage.engine().destroy(scratch.id()).await?;

    same("listed", stage.engine().list().await?.contains(scratch.id()), false)
}

async fn destroying_what_never_was_is_fine(stage: Stage) -> CaseResult {
    Ok(stage.engine().destroy(&fresh_id()).await?)
}

async fn another_daemon_destroys_it(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    stage.another_engine().destroy(scratch.id()).await?;

    same("listed", stage.engine().list().await?.contains(scratch.id()), false)?;
    fails("start", ErrorKind::Lost, scratch.start(Command::new(["true"])).await)?;
    Ok(())
}

async fn a_destroy_that_is_dropped_goes_on(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    // Polled once, then dropped.
    let _ = stage.engine().destroy(scratch.id()).now_or_never();

    until_unlisted(&stage, scratch.id()).await?;
    scratch.ended().await;
    Ok(())
}

async fn what_is_destroyed_is_not_found(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;

    scratch.destroy().await?;

    for engine in [Arc::clone(stage.engine()), stage.another_engine()] {
        check(engine.attach(scratch.id()).await?.is_none(), || "it is found".into())?;
    }
    Ok(())
}

async fn after_its_end_every_call_is_lost(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let process = scratch.start(Command::shell("cat; sleep 300").with_stdin()).await?;

    scratch.destroy().await?;

    let lost = ErrorKind::Lost;
    let files = scratch.files();
    fails("start", lost, scratch.start(Command::new(["true"])).await)?;
    fails("stdin", lost, scratch.write_stdin(process, "x".into()).await)?;
    fails("close", lost, scratch.close_stdin(process).await)?;
    fails("signal", lost, scratch.signal(process, 15).await)?;
    fails("kill", lost, scratch.kill(process).await)?;
    fails("processes", lost, scratch.processes().await)?;
    fails("usage", lost, scratch.usage().await)?;
    fails("attach", lost, attached(&scratch, process).await)?;
    fails("read", lost, files.read("f").await)?;
    fails("write", lost, files.write("f", content("x")).await)?;
    fails("list", lost, files.list(".").await)?;
    fails("stat", lost, files.stat(".").await)?;
    fails("mkdir", lost, files.make_directory("d").await)?;
    fails("rename", lost, files.rename("a", "b").await)?;
    fails("copy", lost, files.copy("a", "b").await)?;
    fails("remove", lost, files.remove("a").await)?;
    fails("chmod", lost, files.set_mode("a", 0o600).await)?;
    Ok(())
}

/// Attaches and reads the first event: the call may fail at either.
async fn attached(scratch: &Scratch, process: crate::ProcessId) -> crate::Result<Option<Event>> {
    scratch.attach(process, Offsets::default()).await?.next().await.transpose()
}

async fn its_end_is_noticed(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let other = stage.another_engine();
    let Some(found) = other.attach(scratch.id()).await? else { return broken("not found") };
    check(found.ended().now_or_never().is_none(), || "it ended too early".into())?;

    other.destroy(scratch.id()).await?;

    scratch.ended().await;
    found.ended().await;
    Ok(())
}

async fn a_running_process_is_lost_with_its_sandbox(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let process = scratch.start(Command::shell("echo begun; sleep 300")).await?;
    let mut events = scratch.attach(process, Offsets::default()).await?;
    some_output(&mut events).await?;

    stage.engine().destroy(scratch.id()).await?;

    loop {
        match events.next().await {
            Some(Ok(Event::Output { .. })) => {}
            Some(Ok(Event::Ended(outcome))) => {
                same("survived", outcome.sandbox_survived, false)?;
                return same("reason", outcome.reason, Reason::Lost);
            }
            other => return broken(format!("no end but {other:?}")),
        }
    }
}

/// A file that a process of the sandbox keeps changing stands still when the sandbox is gone.
async fn a_started_process_does_not_survive(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let directory = stage.host_directory()?;
    let pulse = directory.path().join("pulse");
    if stage.engine().isolation() != Isolation::None {
        // From within no file of the host can be written; the engine's own census has to look.
        return Ok(());
    }
    let path = pulse.display();
    let line =
        format!("(setsid sh -c 'while :; do echo >> {path}; sleep 0.02; done' &) ; sleep 300");
    scratch.start(Command::shell(line)).await?;
    scratch.until(&format!("[ -s {path} ]")).await?;

    scratch.destroy().await?;

    let length = || std::fs::metadata(&pulse).map_or(0, |metadata| metadata.len());
    let before = length();
    time::sleep(Duration::from_millis(300)).await;
    same("written since", length(), before)
}

async fn an_id_can_be_used_again_after_a_failure(stage: Stage) -> CaseResult {
    let id = fresh_id();
    let _doomed = Doomed::new(&stage, &id);
    let limits = Limits { cpus: Some(-1.0), ..Limits::default() };
    let created = stage.engine().create(&id, &Spec { limits, ..stage.spec() }).await;
    check(created.is_err(), || "less than no processor was fine".into())?;

    let sandbox = stage.engine().create(&id, &stage.spec()).await?;

    let output = crate::exec(&sandbox, Command::new(["echo", "ready"]), None).await?;
    same("stdout", output.stdout, b"ready\n".to_vec())
}

async fn many_live_side_by_side(stage: Stage) -> CaseResult {
    let made = futures_util::future::join_all((0..8).map(|_| Scratch::new(&stage))).await;
    let all = made.into_iter().collect::<Result<Vec<_>, Failure>>()?;

    for (number, scratch) in all.iter().enumerate() {
        scratch.text(&format!("echo {number} > number")).await?;
    }

    for (number, scratch) in all.iter().enumerate() {
        same("number", scratch.text("cat number").await?, format!("{number}\n"))?;
    }
    Ok(())
}
