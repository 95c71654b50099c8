//! What a guest is and can see.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use atoll_engine::Spec;
use atoll_namespace::Weakness;
use tokio::runtime::Runtime;

use crate::{
    Test,
    stage::{Stage, ids, make, run, text},
};

pub(crate) const TESTS: [Test; 9] = [
    ("posture::a_guest_is_nobody_of_the_host", a_guest_is_nobody_of_the_host),
    ("posture::a_guest_has_namespaces_of_its_own", a_guest_has_namespaces_of_its_own),
    ("posture::no_two_sandboxes_share_an_id", no_two_sandboxes_share_an_id),
    ("posture::no_path_of_the_host_shows", no_path_of_the_host_shows),
    ("posture::no_file_lends_its_owners_rights", no_file_lends_its_owners_rights),
    ("posture::a_guest_can_open_its_own_streams", a_guest_can_open_its_own_streams),
    ("posture::the_kernel_is_out_of_reach", the_kernel_is_out_of_reach),
    ("posture::namespaces_are_not_nested", namespaces_are_not_nested),
    ("posture::a_wall_left_out_is_not_there", a_wall_left_out_is_not_there),
];

fn a_guest_is_nobody_of_the_host(stage: &Stage, runtime: &Runtime) {
    runtime.block_on(async {
        let sandbox = make(&stage.engine, "a", &Spec::default()).await;
        let status = text(&sandbox, "cat /proc/self/status").await;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.unwrap_or_else(|| panic!("{name} in {status}"))
                .split_whitespace()
                .collect::<Vec<_>>()
        };
        assert_eq!(field("Uid"), ["1000"; 4]);
        assert_eq!(field("Gid"), ["1000"; 4]);
        assert_eq!(field("Groups"), [""; 0]);
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert_eq!(field(set), ["0000000000000000"], "{set}");
        }
        assert_eq!(field("NoNewPrivs"), ["1"]);
        assert_eq!(field("Seccomp"), ["2"]);
        assert!(ids(&sandbox).await >= 0x4000_0000);
    });
}

fn a_guest_has_namespaces_of_its_own(stage: &Stage, runtime: &Runtime) {
    runtime.block_on(async {
        let sandbox = make(&stage.engine, "a", &Spec::default()).await;
        for kind in ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"] {
            let link = format!("/proc/self/ns/{kind}");
            let inside = text(&sandbox, &format!("readlink {link}")).await;
            let outside = fs::read_link(link).unwrap();
            assert_ne!(Path::new(inside.trim()), outside, "{kind}");
        }
    });
}

fn no_two_sandboxes_share_an_id(stage: &Stage, runtime: &Runtime) {
    let other = Stage::new();
    runtime.block_on(async {
        let mut all = Vec::new();
        for name in ["a", "b", "c"] {
            let sandbox = make(&stage.engine, name, &Spec::default()).await;
            all.push(ids(&sandbox).await);
        }
        // Another daemon of the host, too.
        let sandbox = make(&other.engine, "d", &Spec::default()).await;
        all.push(ids(&sandbox).await);
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[1] - pair[0] >= 65536), "{all:x?}");
    });
}

fn no_path_of_the_host_shows(stage: &Stage, runtime: &Runtime) {
    runtime.block_on(async {
        let shown = stage.directory.path().join("shown");
        fs::create_dir(&shown).unwrap();
        let mount = atoll_engine::Mount { host: shown, guest: "/data".into(), writable: false };
        let spec = Spec { mounts: vec![mount], ..Spec::default() };
        let sandbox = make(&stage.engine, "very-special-name", &spec).await;
        let line =
            "cat /proc/self/cgroup /proc/1/cgroup /proc/mounts; tr '\\0' ' ' < /proc/1/cmdline";
        let seen = text(&sandbox, line).await;
        assert!(!seen.contains("very-special-name"), "{seen}");
        assert!(!seen.contains(&*stage.state().to_string_lossy()), "{seen}");
        for absent in ["/sys/kernel", "/usr/local", "/opt", "/etc/shadow", "/proc/kcore/x"] {
            assert!(!run(&sandbox, &format!("ls {absent}")).await.outcome.succeeded(), "{absent}");
        }
    });
}

/// Files in a writable mount are the host's as well, where nothing says `nosuid`.
fn no_file_lends_its_owners_rights(stage: &Stage, runtime: &Runtime) {
    runtime.block_on(async {
        let shared = stage.directory.path().join("shared");
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
        let guest = "/data".into();
        let mount = atoll_engine::Mount { host: shared.clone(), guest, writable: true };
        let spec = Spec { mounts: vec![mount], ..Spec::default() };
        let sandbox = make(&stage.engine, "a", &spec).await;
        text(&sandbox, "cd /data && cp /bin/true program && mkdir place && chmod 755 *").await;
        for bits in ["4755", "2755", "6755", "u+s", "g+s"] {
            for name in ["program", "place"] {
                let output = run(&sandbox, &format!("chmod {bits} /data/{name}")).await;
                let error = String::from_utf8_lossy(&output.stderr);
                assert!(error.contains("not permitted"), "{bits} {name}: {output:?}");
            }
        }
        for name in ["program", "place"] {
            let mode = fs::metadata(shared.join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, 0o755, "{name}");
        }
    });
}

fn a_guest_can_open_its_own_streams(stage: &Stage, runtime: &Runtime) {
    runtime.block_on(async {
        let sandbox = make(&stage.engine, "a", &Spec::default()).await;
        let line = "echo out > /dev/stdout; echo err > /dev/stderr; cat /dev/stdin";
        let output = run(&sandbox, line).await;
        assert!(output.outcome.succeeded(), "{output:?}");
        assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"out\n"[..], &b"err\n"[..]));
    });
}

fn the_kernel_is_out_of_reach(stage: &Stage, runtime: &Runtime) {
    runtime.block_on(async {
        let sandbox = make(&stage.engine, "a", &Spec::default()).await;
        for line in [
            "echo x > /proc/sysrq-trigger",
            "echo x > /proc/sys/kernel/hostname",
            "echo 1 > /proc/sys/vm/drop_caches",
            "mount -t tmpfs none /tmp",
            "mknod /tmp/node c 1 3",
            "touch /usr/bin/file",
            "touch /etc/file",
            "touch /file",
            "kill -9 1",
            "head -c 1 /proc/1/mem",
            "cat /proc/1/environ",
        ] {
            let output = run(&sandbox, line).await;
            assert!(!output.outcome.succeeded(), "{line}: {output:?}");
        }
        assert_eq!(text(&sandbox, "cat /proc/keys /proc/kallsyms | wc -c").await.trim(), "0");
        assert_eq!(text(&sandbox, "echo alive").await, "alive\n");
    });
}

fn namespaces_are_not_nested(stage: &Stage, runtime: &Runtime) {
    runtime.block_on(async {
        let sandbox = make(&stage.engine, "a", &Spec::default()).await;
        let output = run(&sandbox, "unshare -U true").await;
        assert!(String::from_utf8_lossy(&output.stderr).contains("not permitted"), "{output:?}");

        // Nor would they be if the system call got through.
        let engine = stage.weak(&[Weakness::Seccomp]);
        let sandbox = make(&engine, "b", &Spec::default()).await;
        let output = run(&sandbox, "unshare -U true").await;
        assert!(String::from_utf8_lossy(&output.stderr).contains("No space left"), "{output:?}");
    });
}

fn a_wall_left_out_is_not_there(stage: &Stage, runtime: &Runtime) {
    runtime.block_on(async {
        let engine = stage.weak(&[Weakness::Seccomp, Weakness::NestedUsers]);
        let sandbox = make(&engine, "a", &Spec::default()).await;
        assert!(run(&sandbox, "unshare -U true").await.outcome.succeeded());
        let seen = text(&sandbox, "grep Seccomp: /proc/self/status").await;
        assert_eq!(seen.split_whitespace().last(), Some("0"));

        let engine = stage.weak(&[Weakness::Proc, Weakness::Network, Weakness::Ipc]);
        let sandbox = make(&engine, "b", &Spec::default()).await;
        assert_ne!(text(&sandbox, "cat /proc/kallsyms | wc -c").await.trim(), "0");
        for kind in ["net", "ipc"] {
            let link = format!("/proc/self/ns/{kind}");
            let inside = text(&sandbox, &format!("readlink {link}")).await;
            assert_eq!(Path::new(inside.trim()), fs::read_link(link).unwrap(), "{kind}");
        }

        let engine = stage.weak(&[Weakness::Root, Weakness::Seccomp, Weakness::Landlock]);
        let sandbox = make(&engine, "c", &Spec::default()).await;
        assert_eq!(text(&sandbox, "id -u; touch /etc/file; ls /etc/file").await, "0\n/etc/file\n");
    });
}
