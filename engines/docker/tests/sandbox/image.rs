//! What an image says of itself, and how little of it counts (P03).

use atoll_docker::Weakness;
use atoll_engine::{Engine as _, ErrorKind};
use atoll_test_dockerd::Missing;
use tokio::runtime::Runtime;

use crate::{
    Test, posture,
    stage::{Made, Stage, fresh, of_image},
};

pub(crate) const TESTS: [Test; 3] = [
    ("image::an_image_changes_no_flag", an_image_changes_no_flag),
    ("image::a_volume_over_what_is_needed_is_refused", a_volume_over_what_is_needed_is_refused),
    ("image::labels_of_an_image_make_no_sandbox", labels_of_an_image_make_no_sandbox),
];

fn an_image_changes_no_flag(stage: &Stage, runtime: &Runtime) -> Result<(), Missing> {
    stage.daemon.change(
        "hostile:one",
        &[
            "ENTRYPOINT [\"/bin/sh\", \"-c\", \"touch /dev/shm/entry; sleep 300\"]",
            "CMD [\"command\"]",
            "USER 0:0",
            "VOLUME /data",
            "VOLUME /tmp",
            "VOLUME /home/user",
            "HEALTHCHECK --interval=1s CMD touch /dev/shm/health",
            "ENV FROM_IMAGE=1 HOME=/evil USER=evil",
            "WORKDIR /evil",
            "EXPOSE 80",
            "LABEL dev.atoll.sandbox=another dev.atoll.instance=another",
            "ONBUILD RUN touch /onbuild",
        ],
    );
    let limits = serde_json::json!({ "memory": "128m", "pids": 32, "cpus": 1.0, "disk": "32m" });
    let limits = serde_json::from_value(limits).unwrap();
    let spec = atoll_engine::Spec { limits, ..of_image("hostile:one") };

    let made = Made::new(&stage.engine(), &spec, runtime);

    let container = stage.inspect(made.sandbox.id());
    assert_eq!(posture::faults(&container), Vec::<String>::new());
    assert_eq!(stage.daemon.volumes(), Vec::<String>::new());
    assert_eq!(container["Config"]["Labels"]["dev.atoll.sandbox"], made.sandbox.id().as_str());
    let look = "id -u; echo $FROM_IMAGE $HOME $USER; pwd; ls -A /dev/shm /data /tmp;
        for place in /data /tmp ~; do touch $place/x && echo $place; done
        head -c 40M /dev/zero > /data/big 2>/dev/null || echo full";
    let seen = made.sh(look);
    let expected = "1000\n1 /home/user user\n/home/user\n/data:\n\n/dev/shm:\n\n/tmp:\n\
        /data\n/tmp\n/home/user\nfull\n";
    assert_eq!(seen, expected);
    let name = container["Name"].as_str().unwrap().to_owned();
    drop(made);
    assert!(!stage.daemon.containers().contains(&name));

    // And where that wall is left out it is seen, and the volumes are removed all the same.
    let before = stage.daemon.volumes();
    let made = Made::new(&stage.weak(&[Weakness::ImageVolumes]), &of_image("hostile:one"), runtime);
    let faults = posture::faults(&stage.inspect(made.sandbox.id()));
    assert!(faults.iter().any(|fault| fault.contains("volume")), "{faults:?}");
    drop(made);
    assert_eq!(stage.daemon.volumes(), before);
    Ok(())
}

fn a_volume_over_what_is_needed_is_refused(
    stage: &Stage,
    runtime: &Runtime,
) -> Result<(), Missing> {
    let engine = stage.engine();
    for (number, path) in ["/proc", "/.atoll/run", "/etc/ssl", "/dev/shm"].iter().enumerate() {
        let name = format!("hostile:volume{number}");
        stage.daemon.change(&name, &[&format!("VOLUME {path}")]);
        let id = fresh();

        let error = runtime.block_on(engine.create(&id, &of_image(&name))).unwrap_err();

        assert_eq!(error.kind(), ErrorKind::Invalid, "{path}: {error}");
        assert!(!runtime.block_on(engine.list()).unwrap().contains(&id));
    }
    Ok(())
}

fn labels_of_an_image_make_no_sandbox(stage: &Stage, runtime: &Runtime) -> Result<(), Missing> {
    let engine = stage.engine();
    let made = Made::new(&engine, &crate::stage::spec(), runtime);
    let labels = stage.inspect(made.sandbox.id())["Config"]["Labels"].clone();
    let body = serde_json::json!({
        "Image": atoll_test_dockerd::IMAGE, "Labels": labels, "Cmd": ["/bin/true"],
    });
    let name = format!("stranger-{}", fresh());

    let path = format!("/containers/create?name={name}");
    let (status, answer) = stage.daemon.ask("POST", &path, &body.to_string());
    assert_eq!(status, 201, "{answer}");

    assert_eq!(runtime.block_on(engine.list()).unwrap(), [made.sandbox.id().clone()]);
    drop(made);
    assert!(stage.daemon.containers().contains(&format!("/{name}")));
    stage.daemon.ask("DELETE", &format!("/containers/{name}"), "");
    Ok(())
}
