//! P02, P03: what a container engine is told, and what an image cannot change of it.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::{
    check::{Check, check, claim},
    ground::probe,
    stage::Stage,
    world::Weakness,
};

pub(super) fn checks() -> Vec<Check> {
    vec![
        check("P02", "a_container_has_no_capability_but_the_agents_four", |stage| {
            told(stage, Weakness::Capabilities)
        })
        .against("every capability"),
        check("P02", "a_container_gains_no_privilege", |stage| {
            told(stage, Weakness::NewPrivileges)
        })
        .against("privileges that can be gained"),
        check("P02", "a_container_is_filtered", |stage| told(stage, Weakness::Seccomp))
            .against("no system call filter"),
        check("P02", "a_container_writes_to_no_image", |stage| told(stage, Weakness::WritableRoot))
            .against("a writable root"),
        check("P02", "a_container_has_no_network", |stage| told(stage, Weakness::Network))
            .against("the host's network"),
        check("P03", "an_image_changes_none_of_our_settings", hostile_image)
            .against("volumes that images declare"),
    ]
}

/// What the daemon says it was told; the same claims for every control.
async fn told(stage: Arc<Stage>, weakness: Weakness) -> Result<()> {
    let ground = stage.weakened(stage.usual(), &[weakness]).await?;
    let told = stage.world.subject.inspect(ground.sandbox.id()).context("a container")?;
    hardened(&told)
}

fn hardened(told: &Value) -> Result<()> {
    let host = &told["HostConfig"];
    let nothing = |value: &Value| match value {
        Value::Null => true,
        Value::Array(all) => all.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    };
    let security = host["SecurityOpt"].to_string();
    let added: Vec<&str> =
        host["CapAdd"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let allowed = ["KILL", "SETGID", "SETPCAP", "SETUID"];
    let few = added.iter().all(|one| allowed.contains(&one.trim_start_matches("CAP_")));
    let mounts = told["Mounts"].as_array().cloned().unwrap_or_default();
    let private = |mount: &Value| {
        ["", "rprivate", "private"].iter().any(|kind| mount["Propagation"] == *kind)
    };
    let positive = |value: &Value| value.as_i64().is_some_and(|number| number > 0);
    let facts = [
        ("is not privileged", host["Privileged"] == false),
        ("drops all capabilities", host["CapDrop"] == json!(["ALL"])),
        ("adds only what the agent needs", few),
        ("gains no privileges", security.contains("no-new-privileges")),
        ("is confined", !security.contains("unconfined")),
        ("has a root that cannot be written", host["ReadonlyRootfs"] == true),
        ("has no network", host["NetworkMode"] == "none"),
        ("publishes no port", host["PublishAllPorts"] == false && empty(&host["PortBindings"])),
        ("has its own processes", nothing(&host["PidMode"])),
        ("has its own name", nothing(&host["UTSMode"])),
        ("has its own memory to share", host["IpcMode"] == "private"),
        ("has its own control groups", host["CgroupnsMode"] == "private"),
        ("leaves user namespaces to the daemon", nothing(&host["UsernsMode"])),
        ("has no devices", nothing(&host["Devices"]) && nothing(&host["DeviceRequests"])),
        ("is not started again", host["RestartPolicy"]["Name"] == "no"),
        ("has limited memory", positive(&host["Memory"])),
        ("has no swap", host["MemorySwap"] == host["Memory"]),
        ("has limited processes", positive(&host["PidsLimit"])),
        ("may be killed for want of memory", host["OomKillDisable"] != true),
        ("has no socket of the daemon", !told["Mounts"].to_string().contains("docker.sock")),
        ("shares no mount both ways", mounts.iter().all(private)),
        ("has no volume", mounts.iter().all(|mount| mount["Type"] != "volume")),
        ("has no other containers' volumes", nothing(&host["VolumesFrom"])),
    ];
    let wrong: Vec<&str> =
        facts.iter().filter(|(_, holds)| !holds).map(|(fact, _)| *fact).collect();
    claim(wrong.is_empty(), || format!("a container that {}: {host}", wrong.join(", or ")))
}

fn empty(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty)
}

/// An image that says who it wants to be, where its files are, what is run and how often.
async fn hostile_image(stage: Arc<Stage>) -> Result<()> {
    let lines = [
        "USER root",
        "ENTRYPOINT [\"/bin/sh\", \"-c\", \"touch /tmp/entered; sleep 1000\"]",
        "CMD [\"--privileged\"]",
        "VOLUME /data",
        "VOLUME /home/user",
        "WORKDIR /root",
        "ENV LD_PRELOAD=/data/evil.so PATH=/data HOME=/root DOCKER_HOST=unix:///data/docker.sock",
        "LABEL dev.atoll.sandbox=other dev.atoll.instance=other dev.atoll.owner=other",
        "HEALTHCHECK --interval=1s CMD touch /tmp/healthy",
        "EXPOSE 22/tcp",
        "ONBUILD USER root",
    ];
    let mut spec = stage.usual();
    spec.root = stage.world.subject.image(&lines)?;
    let ground = stage.weakened(spec, &[Weakness::ImageVolumes]).await?;

    let told = stage.world.subject.inspect(ground.sandbox.id()).context("a container")?;
    hardened(&told)?;
    let config = &told["Config"];
    let id = ground.sandbox.id().to_string();
    claim(config["Labels"]["dev.atoll.sandbox"] == *id, || config["Labels"].to_string())?;
    claim(config["Healthcheck"]["Test"] == json!(["NONE"]), || config["Healthcheck"].to_string())?;
    let entered = !config["Entrypoint"].to_string().contains("/bin/sh");
    claim(entered, || config["Entrypoint"].to_string())?;
    let listed = stage.world.engine(&[])?.list().await?;
    claim(listed.contains(ground.sandbox.id()), || format!("not among {listed:?}"))?;

    let identity = ground.told(probe(&["identity"])).await?;
    let user = identity["user"].as_array().is_some_and(|ids| ids.iter().all(|id| id == "1000"));
    let none = identity["capabilities"]["effective"] == "0000000000000000"
        && identity["capabilities"]["bounding"] == "0000000000000000";
    claim(user && none, || format!("who guests are: {identity}"))?;
    let files = ground.sandbox.files();
    for name in ["/tmp/entered", "/tmp/healthy"] {
        let there = files.stat(name).await.is_ok();
        claim(!there, || format!("the image's own program ran: {name}"))?;
    }
    ground.answers().await
}
