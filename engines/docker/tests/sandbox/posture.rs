//! How a container is held (P02), as the daemon tells it and as a guest finds it.

use atoll_docker::Weakness;
use atoll_test_dockerd::Missing;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::{
    Test,
    stage::{Made, Stage, spec},
};

pub(crate) const TESTS: [Test; 3] = [
    ("posture::a_container_is_held_on_every_side", a_container_is_held_on_every_side),
    ("posture::a_wall_left_out_is_noticed", a_wall_left_out_is_noticed),
    ("posture::a_guest_finds_nothing_of_the_host", a_guest_finds_nothing_of_the_host),
];

/// What is wrong with a container, as its daemon tells it.
pub(crate) fn faults(container: &Value) -> Vec<String> {
    let host = &container["HostConfig"];
    let text = |value: &Value| value.to_string();
    let wanted = [
        ("Privileged", json!(false)),
        ("ReadonlyRootfs", json!(true)),
        ("NetworkMode", json!("none")),
        ("IpcMode", json!("private")),
        ("PidMode", json!("")),
        ("UTSMode", json!("")),
        ("CapDrop", json!(["ALL"])),
        ("CapAdd", json!(["KILL", "SETGID", "SETPCAP", "SETUID"])),
        ("SecurityOpt", json!(["no-new-privileges:true"])),
        ("PublishAllPorts", json!(false)),
        ("OomKillDisable", json!(false)),
        ("CgroupnsMode", json!("private")),
        ("Binds", Value::Null),
        ("VolumesFrom", Value::Null),
        ("Devices", json!([])),
    ];
    let mut faults: Vec<_> = wanted
        .into_iter()
        .filter(|(name, value)| {
            // What is empty is told as nothing by some daemons.
            let seen = &host[*name];
            seen != value && !(text(value) == "[]" && seen.is_null())
        })
        .map(|(name, _)| format!("{name}: {}", host[name]))
        .collect();
    for (name, least) in [("Memory", 1), ("PidsLimit", 1), ("NanoCpus", 1)] {
        if host[name].as_i64().unwrap_or(0) < least {
            faults.push(format!("{name}: {}", host[name]));
        }
    }
    if host["MemorySwap"] != host["Memory"] {
        faults.push("there is swap".to_owned());
    }
    if container["Path"] != json!("/.atoll/agent") {
        faults.push(format!("it runs {}", container["Path"]));
    }
    for mount in container["Mounts"].as_array().into_iter().flatten() {
        let (kind, target) = (&mount["Type"], mount["Destination"].as_str().unwrap_or_default());
        let writable = mount["RW"] == json!(true) && kind == "bind" && target != "/.atoll/run";
        if (kind != "bind" && kind != "tmpfs") || writable {
            faults.push(text(mount));
        }
        if mount["Source"].as_str().is_some_and(|source| source.contains("docker.sock")) {
            faults.push(text(mount));
        }
    }
    if !container["State"]["Health"].is_null() {
        faults.push("it has a health check".to_owned());
    }
    faults
}

fn limited() -> atoll_engine::Spec {
    let limits = serde_json::from_value(json!({ "memory": "128m", "pids": 32, "cpus": 1.0 }));
    atoll_engine::Spec { limits: limits.unwrap(), ..spec() }
}

fn a_container_is_held_on_every_side(stage: &Stage, runtime: &Runtime) -> Result<(), Missing> {
    let made = Made::new(&stage.engine(), &limited(), runtime);

    let container = stage.inspect(made.sandbox.id());

    assert_eq!(faults(&container), Vec::<String>::new());
    let labels = &container["Config"]["Labels"];
    assert_eq!(labels["dev.atoll.sandbox"], made.sandbox.id().as_str());
    let owner = labels["dev.atoll.owner"].as_str().unwrap();
    assert!(owner.starts_with(&format!("{} ", std::process::id())), "{owner}");
    Ok(())
}

fn a_wall_left_out_is_noticed(stage: &Stage, runtime: &Runtime) -> Result<(), Missing> {
    let walls = [
        (Weakness::WritableRoot, "ReadonlyRootfs"),
        (Weakness::Capabilities, "CapDrop"),
        (Weakness::NewPrivileges, "SecurityOpt"),
        (Weakness::Seccomp, "SecurityOpt"),
        (Weakness::Network, "NetworkMode"),
        (Weakness::Ipc, "IpcMode"),
        (Weakness::Memory, "Memory"),
        (Weakness::Pids, "PidsLimit"),
        (Weakness::Cpus, "NanoCpus"),
    ];
    for (weakness, name) in walls {
        let made = Made::new(&stage.weak(&[weakness]), &limited(), runtime);
        let faults = faults(&stage.inspect(made.sandbox.id()));
        assert!(faults.iter().any(|fault| fault.starts_with(name)), "{weakness:?}: {faults:?}");
    }
    Ok(())
}

fn a_guest_finds_nothing_of_the_host(stage: &Stage, runtime: &Runtime) -> Result<(), Missing> {
    let look = "id -u; id -G; grep -E '^(CapEff|CapBnd|CapPrm|NoNewPrivs|Seccomp):' /proc/self/status
        for path in /.atoll/run /.atoll/boot /.atoll/agent /var/run/docker.sock; do
            [ -e $path ] && echo there: $path
        done
        ls -A /sys; cat /proc/cmdline /proc/kallsyms /proc/keys 2>/dev/null
        for path in / /etc /usr /var /root /home; do touch $path/x 2>/dev/null && echo writes $path; done
        grep -v '^#' /etc/resolv.conf; whoami; hostname; cat /proc/1/environ 2>/dev/null; true";
    let expected = "1000\n1000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n\
        CapBnd:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n";
    let made = Made::new(&stage.engine(), &spec(), runtime);
    let seen = made.sh(look);
    assert!(seen.starts_with(expected), "{seen}");
    assert_eq!(&seen[expected.len()..], "nameserver 127.0.0.1\nuser\nsandbox\n");

    let weaknesses = [Weakness::Root, Weakness::WritableRoot, Weakness::Proc, Weakness::Seccomp];
    let made = Made::new(&stage.weak(&weaknesses), &spec(), runtime);
    let seen = made.sh(look);
    for sign in ["0\n", "there: /.atoll/boot", "writes /etc", "kernel"] {
        assert!(seen.contains(sign), "{sign}: {seen}");
    }
    Ok(())
}
