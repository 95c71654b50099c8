//! What a sandbox is made of.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown},
    path::Path,
    process::Command,
};

use atoll_engine::{Engine as _, ErrorKind, Limits, Mount, Root, Spec};
use atoll_types::quantity::Size;
use tokio::runtime::Runtime;

use crate::{
    Test,
    stage::{Stage, make, named, run, text},
};

pub(crate) const TESTS: [Test; 9] = [
    ("roots::the_smallest_sandbox_runs_a_program", the_smallest_sandbox_runs_a_program),
    ("roots::a_directory_is_shared_and_never_changed", a_directory_is_shared_and_never_changed),
    ("roots::a_link_in_a_directory_leads_nowhere_else", a_link_in_a_directory_leads_nowhere_else),
    ("roots::a_mount_is_written_as_its_owner", a_mount_is_written_as_its_owner),
    ("roots::a_private_directory_can_be_shown", a_private_directory_can_be_shown),
    ("roots::a_mount_that_cannot_be_placed_is_invalid", a_mount_that_cannot_be_placed_is_invalid),
    (
        "roots::a_mount_that_became_a_link_is_not_followed",
        a_mount_that_became_a_link_is_not_followed,
    ),
    ("roots::the_engines_own_directory_is_not_shown", the_engines_own_directory_is_not_shown),
    (
        "roots::what_holds_the_engines_own_directory_shows_an_empty_one",
        what_holds_the_engines_own_directory_shows_an_empty_one,
    ),
];

fn the_smallest_sandbox_runs_a_program(stage: &Stage, runtime: &Runtime) {
    runtime.block_on(async {
        let limits = Limits {
            memory: Some(Size(8 << 20)),
            cpus: Some(0.01),
            pids: Some(4),
            open_files: Some(16),
            disk: Some(Size(1 << 20)),
            ..Limits::default()
        };
        let sandbox = make(&stage.engine, "a", &Spec { limits, ..Spec::default() }).await;
        assert_eq!(text(&sandbox, "echo small > file; cat file").await, "small\n");
    });
}

/// A root file system with a shell and a few programs, and all they link.
fn small_root(at: &Path) {
    let script = r#"
        set -e
        cd "$1"
        mkdir -p bin etc tmp proc dev
        for program in sh cat ls touch rm id; do
            cp -L "/bin/$program" bin/
            ldd "/bin/$program" | grep -o '/[^ )]*' | while read -r library; do
                mkdir -p ".$(dirname "$library")"
                cp -L "$library" ".$library"
            done
        done
        echo original > etc/motd
        chmod 666 etc/motd
        chmod 777 etc
    "#;
    let made = Command::new("sh").args(["-c", script, "sh"]).arg(at).status().unwrap();
    assert!(made.success());
}

fn a_directory_is_shared_and_never_changed(stage: &Stage, runtime: &Runtime) {
    let root = stage.directory.path().join("root");
    fs::create_dir(&root).unwrap();
    small_root(&root);
    runtime.block_on(async {
        let spec = Spec { root: Root::Directory(root.clone()), ..Spec::default() };
        let one = make(&stage.engine, "one", &spec).await;
        let two = make(&stage.engine, "two", &spec).await;
        // What the root's own root owns is the sandbox's root's inside.
        assert_eq!(text(&one, "ls -ldn /bin | { read a b c d; echo $c; }").await, "0\n");
        text(&one, "echo changed > /etc/motd; touch /etc/new; rm -f /etc/old").await;
        assert_eq!(text(&one, "cat /etc/motd").await, "changed\n");
        assert_eq!(text(&two, "cat /etc/motd; ls /etc/new || echo none").await, "original\nnone\n");
        assert!(!run(&one, "touch /bin/new").await.outcome.succeeded());
        assert_eq!(
            text(&one, "id -u; echo $HOME; touch here; ls -d /tmp /dev/null").await,
            "1000\n/home/user\n/dev/null\n/tmp\n"
        );
    });
    assert_eq!(fs::read_to_string(root.join("etc/motd")).unwrap(), "original\n");
    assert!(!root.join("etc/new").exists());
    assert!(!root.join("home").exists());
}

fn a_link_in_a_directory_leads_nowhere_else(stage: &Stage, runtime: &Runtime) {
    let root = stage.directory.path().join("root");
    let outside = stage.directory.path().join("outside");
    fs::create_dir(&root).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o777)).unwrap();
    small_root(&root);
    for name in ["home", "var"] {
        std::os::unix::fs::symlink(&outside, root.join(name)).unwrap();
    }
    runtime.block_on(async {
        let spec = Spec { root: Root::Directory(root.clone()), ..Spec::default() };
        match stage.engine.create(&named("linked"), &spec).await {
            // The link was followed inside.
            Ok(sandbox) => assert_eq!(text(&sandbox, "cd; touch x; ls").await, "x\n"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Internal, "{error:?}"),
        }
    });
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

fn a_mount_is_written_as_its_owner(stage: &Stage, runtime: &Runtime) {
    let shared = stage.directory.path().join("shared");
    fs::create_dir(&shared).unwrap();
    chown(&shared, Some(12345), Some(23456)).unwrap();
    let mount = Mount { host: shared.clone(), guest: "/home/user/shared".into(), writable: true };
    runtime.block_on(async {
        let spec = Spec { mounts: vec![mount], ..Spec::default() };
        let sandbox = make(&stage.engine, "a", &spec).await;
        assert_eq!(
            text(&sandbox, "cd shared; echo hello > file; stat -c '%u %g' . file").await,
            "1000 1000\n1000 1000\n"
        );
    });
    let file = fs::metadata(shared.join("file")).unwrap();
    assert_eq!((file.uid(), file.gid()), (12345, 23456));
    assert_eq!(fs::read_to_string(shared.join("file")).unwrap(), "hello\n");
}

fn a_private_directory_can_be_shown(stage: &Stage, runtime: &Runtime) {
    let shown = stage.directory.path().join("private");
    fs::create_dir(&shown).unwrap();
    fs::write(shown.join("file"), "private").unwrap();
    for path in [shown.clone(), shown.join("file")] {
        chown(&path, Some(12345), Some(12345)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    }
    let mount = Mount { host: shown, guest: "/data".into(), writable: false };
    runtime.block_on(async {
        let spec = Spec { mounts: vec![mount], ..Spec::default() };
        let sandbox = make(&stage.engine, "a", &spec).await;
        assert_eq!(text(&sandbox, "cat /data/file").await, "private");
        let output = run(&sandbox, "echo x > /data/file").await;
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("Read-only") || told.contains("denied"), "{output:?}");
    });
}

fn a_mount_that_cannot_be_placed_is_invalid(stage: &Stage, runtime: &Runtime) {
    runtime.block_on(async {
        let host = stage.directory.path().to_owned();
        let mount = Mount { host, guest: "/usr/bin/not-there".into(), writable: true };
        let spec = Spec { mounts: vec![mount], ..Spec::default() };
        let error = stage.engine.create(&named("a"), &spec).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
        assert!(stage.engine.list().await.unwrap().is_empty());
    });
}

fn a_mount_that_became_a_link_is_not_followed(stage: &Stage, runtime: &Runtime) {
    let shared = stage.directory.path().join("shared");
    fs::create_dir(&shared).unwrap();
    std::os::unix::fs::symlink("/etc", shared.join("link")).unwrap();
    runtime.block_on(async {
        for host in [shared.join("link"), shared.join("link/ssl")] {
            let mount = Mount { host, guest: "/mnt".into(), writable: false };
            let spec = Spec { mounts: vec![mount], ..Spec::default() };
            let error = stage.engine.create(&named("a"), &spec).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
            assert!(stage.engine.list().await.unwrap().is_empty());
        }
    });
}

fn the_engines_own_directory_is_not_shown(stage: &Stage, runtime: &Runtime) {
    runtime.block_on(async {
        let _other = make(&stage.engine, "other", &Spec::default()).await;
        for host in [stage.state(), stage.state().join("other")] {
            let mount = Mount { host, guest: "/mnt".into(), writable: false };
            let spec = Spec { mounts: vec![mount], ..Spec::default() };
            let error = stage.engine.create(&named("a"), &spec).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
        }
    });
}

fn what_holds_the_engines_own_directory_shows_an_empty_one(stage: &Stage, runtime: &Runtime) {
    let data = stage.directory.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("secret"), "secret").unwrap();
    fs::write(stage.directory.path().join("beside"), "beside").unwrap();
    let mut config = atoll_namespace::Config::new(stage.state());
    config.private = vec![data];
    let engine = atoll_namespace::NamespaceEngine::new(config);
    runtime.block_on(async {
        let _other = make(&engine, "other", &Spec::default()).await;
        assert!(stage.state().join("other/socket").exists());
        for (name, writable) in [("read", false), ("write", true)] {
            let host = stage.directory.path().to_owned();
            let mount = Mount { host, guest: "/mnt".into(), writable };
            let spec = Spec { mounts: vec![mount], ..Spec::default() };
            let sandbox = make(&engine, name, &spec).await;
            assert_eq!(
                text(&sandbox, "cat /mnt/beside; ls -A /mnt/state /mnt/data").await,
                "beside/mnt/data:\n\n/mnt/state:\n"
            );
            assert!(!run(&sandbox, "[ -e /mnt/state/other/socket ]").await.outcome.succeeded());
            for line in ["touch /mnt/state/x", "rmdir /mnt/state", "mv /mnt/state /mnt/moved"] {
                assert!(!run(&sandbox, line).await.outcome.succeeded(), "{line}");
            }
        }
    });
}
