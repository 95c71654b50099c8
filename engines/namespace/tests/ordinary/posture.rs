//! What a guest is and can see.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use atoll_engine::{Engine as _, ErrorKind, Limits, Mount, Spec};
use atoll_namespace::Weakness;
use atoll_types::{engine::Strength, quantity::Size};
use tokio::runtime::Runtime;

use crate::{
    Test,
    stage::{Stage, make, run, text},
};

pub(crate) const TESTS: [Test; 6] = [
    ("posture::a_guest_has_one_user_and_no_rights", one_user),
    ("posture::a_guest_has_namespaces_of_its_own", namespaces),
    ("posture::what_is_not_the_guests_is_read_only", read_only),
    ("posture::terminals_are_of_its_own", terminals),
    ("posture::a_mount_is_used_as_its_owner", mounts),
    ("posture::what_cannot_be_held_is_graded_and_refused", grades),
];

fn one_user(stage: &Stage, runtime: &Runtime) {
    runtime.block_on(async {
        let sandbox = make(&stage.engine, "a").await;
        let status = text(&sandbox, "cat /proc/self/status").await;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.unwrap_or_else(|| panic!("{name}: {status}"))
                .split_whitespace()
                .collect::<Vec<_>>()
        };
        assert_eq!((field("Uid"), field("Gid")), (vec!["1000"; 4], vec!["1000"; 4]));
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert_eq!(field(set), ["0000000000000000"], "{set}");
        }
        assert_eq!((field("NoNewPrivs"), field("Seccomp")), (vec!["1"], vec!["2"]));
        let own = fs::metadata(stage.state()).unwrap().uid().to_string();
        let map = text(&sandbox, "cat /proc/self/uid_map").await;
        assert_eq!(map.split_whitespace().collect::<Vec<_>>(), ["1000", &*own, "1"]);
        // No program lends it another user, and it makes no namespaces of its own.
        for line in [
            "unshare -U true",
            "unshare -r true",
            "setpriv --reuid 0 true",
            "mount -t tmpfs x /tmp",
        ] {
            assert!(!run(&sandbox, line).await.outcome.succeeded(), "{line}");
        }
        let engine = stage.weak(&[Weakness::Seccomp]);
        let sandbox = make(&engine, "b").await;
        let output = run(&sandbox, "unshare -U true").await;
        assert!(String::from_utf8_lossy(&output.stderr).contains("No space left"), "{output:?}");
    });
}

fn namespaces(stage: &Stage, runtime: &Runtime) {
    runtime.block_on(async {
        let sandbox = make(&stage.engine, "a").await;
        for kind in ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"] {
            let link = format!("/proc/self/ns/{kind}");
            let inside = text(&sandbox, &format!("readlink {link}")).await;
            assert_ne!(Path::new(inside.trim()), fs::read_link(link).unwrap(), "{kind}");
        }
    });
}

fn read_only(stage: &Stage, runtime: &Runtime) {
    let lines = [
        "touch /file",
        "touch /etc/file",
        "echo x > /etc/passwd",
        "touch /dev/file",
        "rm /etc/hosts",
        "chmod 777 /",
        "touch /usr/bin/file",
        "mkdir /var/new",
    ];
    runtime.block_on(async {
        // Also where Landlock says nothing: the mounts themselves do.
        for (name, weaknesses) in [("a", &[][..]), ("b", &[Weakness::Landlock])] {
            let engine = stage.weak(weaknesses);
            let sandbox = make(&engine, name).await;
            for line in lines {
                assert!(!run(&sandbox, line).await.outcome.succeeded(), "{name} {line}");
            }
            let fine = "touch ~/x /tmp/x /var/tmp/x /dev/shm/x && mv /tmp/x ~/y && ls ~";
            assert_eq!(text(&sandbox, fine).await, "x\ny\n");
        }
        let engine = stage.weak(&[Weakness::Landlock, Weakness::WritableBinds]);
        let sandbox = make(&engine, "c").await;
        text(&sandbox, "touch /etc/file").await;
    });
}

fn terminals(stage: &Stage, runtime: &Runtime) {
    runtime.block_on(async {
        let sandbox = make(&stage.engine, "a").await;
        // A first terminal, so there are no others; and what is written to it comes back.
        let line = "script -qec 'tty; ls -1 /dev/pts' /dev/null < /dev/null | tr -d '\\r'";
        assert_eq!(text(&sandbox, line).await, "/dev/pts/0\n0\nptmx\n");
    });
}

fn mounts(stage: &Stage, runtime: &Runtime) {
    let shared = stage.directory.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::write(shared.join("given"), "given").unwrap();
    runtime.block_on(async {
        let mount = |writable| Mount { host: shared.clone(), guest: "/data".into(), writable };
        let spec = Spec { mounts: vec![mount(true)], ..Spec::default() };
        let sandbox = stage.engine.create(&"a".parse().unwrap(), &spec).await.unwrap();
        let line = "cd /data && cat given && echo made > made && stat -c %u:%g . made";
        assert_eq!(text(&sandbox, line).await, "given1000:1000\n1000:1000\n");
        let spec = Spec { mounts: vec![mount(false)], ..Spec::default() };
        let sandbox = stage.engine.create(&"b".parse().unwrap(), &spec).await.unwrap();
        assert!(!run(&sandbox, "rm /data/given").await.outcome.succeeded());
    });
    let (made, own) = (fs::metadata(shared.join("made")).unwrap(), fs::metadata(&shared).unwrap());
    assert_eq!((made.uid(), made.gid()), (own.uid(), own.gid()));
}

fn grades(stage: &Stage, runtime: &Runtime) {
    runtime.block_on(async {
        let probe = stage.engine.probe().await.unwrap();
        let graded =
            |limit: &str| probe.grades.iter().find(|grade| grade.limit == limit).unwrap().strength;
        for limits in [
            Limits { memory: Some(Size(64 << 20)), ..Limits::default() },
            Limits { cpus: Some(1.0), ..Limits::default() },
        ] {
            let (name, held) = match limits.memory {
                Some(_) => ("memory", graded("memory")),
                None => ("cpus", graded("cpus")),
            };
            let spec = Spec { limits, ..Spec::default() };
            let made = stage.engine.create(&"a".parse().unwrap(), &spec).await;
            assert_eq!(made.is_ok(), held == Strength::Full, "{name} {held:?}");
            if let Err(error) = made {
                assert_eq!(error.kind(), ErrorKind::Unsupported);
                assert!(error.advice().is_some_and(|hint| hint.contains("Delegate=yes")));
                assert!(stage.engine.list().await.unwrap().is_empty());
            }
        }
    });
}
