//! Images that have to be got first: from a registry on loopback, or built.

use std::{fs, sync::Mutex};

use atoll_docker::{Config, DockerEngine};
use atoll_engine::{Engine as _, ErrorKind, Image, Progress, Root, Spec};
use atoll_test_dockerd::{IMAGE, Missing, Registry};
use tokio::runtime::Runtime;

use crate::{
    Test,
    stage::{Made, Stage, fresh, of_image},
};

pub(crate) const TESTS: [Test; 3] = [
    ("pull::an_image_is_pulled_with_progress", an_image_is_pulled_with_progress),
    ("pull::a_private_image_needs_credentials", a_private_image_needs_credentials),
    ("pull::a_dockerfile_is_built", a_dockerfile_is_built),
];

/// Puts an image with one file into a registry, and not where it can be used.
fn publish(stage: &Stage, registry: &Registry, login: Option<(&str, &str)>) -> String {
    let files = tempfile::tempdir().unwrap();
    fs::write(files.path().join("word"), fresh().as_str()).unwrap();
    let name = format!("{}/tiny:one", registry.address());
    stage.daemon.import(&name, files.path());
    stage.daemon.push(&name, login);
    stage.daemon.ask("DELETE", &format!("/images/{name}"), "");
    name
}

fn an_image_is_pulled_with_progress(stage: &Stage, runtime: &Runtime) -> Result<(), Missing> {
    let registry = Registry::start(None)?;
    let engine = stage.engine();
    let name = publish(stage, &registry, None);
    let error = runtime.block_on(engine.create(&fresh(), &of_image(&name))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");

    let steps = Mutex::new(Vec::<Progress>::new());
    let report = |step| steps.lock().unwrap().push(step);
    runtime.block_on(engine.prepare(&of_image(&name).root, &report)).unwrap();

    let steps = steps.into_inner().unwrap();
    assert!(steps.iter().any(|step| step.doing.contains("Pull complete")), "{steps:?}");
    let made = Made::new(&engine, &of_image(&name), runtime);
    assert!(runtime.block_on(made.sandbox.files().stat("/word")).is_ok());
    let absent = of_image(&format!("{}/nothing:none", registry.address()));
    let error = runtime.block_on(engine.prepare(&absent.root, &|_| {})).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error:?}");
    assert!(error.advice().is_some());
    Ok(())
}

fn a_private_image_needs_credentials(stage: &Stage, runtime: &Runtime) -> Result<(), Missing> {
    let registry = Registry::start(Some(("me", "secret")))?;
    let name = publish(stage, &registry, Some(("me", "secret")));
    let file = stage.directory.path().join("config.json");
    let engine = DockerEngine::new(Config { credentials: Some(file.clone()), ..stage.config() });
    let pulled = || runtime.block_on(engine.prepare(&of_image(&name).root, &|_| {}));

    let without = pulled().unwrap_err();
    assert_eq!(without.kind(), ErrorKind::Denied, "{without:?}");
    // me:wrong, and me:secret.
    for (login, accepted) in [("bWU6d3Jvbmc=", false), ("bWU6c2VjcmV0", true)] {
        let auths = serde_json::json!({ registry.address(): { "auth": login } });
        fs::write(&file, serde_json::json!({ "auths": auths }).to_string()).unwrap();
        match pulled() {
            Ok(()) => assert!(accepted),
            Err(error) => assert!(!accepted && error.kind() == ErrorKind::Denied, "{error:?}"),
        }
    }
    Ok(())
}

fn a_dockerfile_is_built(stage: &Stage, runtime: &Runtime) -> Result<(), Missing> {
    let place = stage.directory.path().join("recipe");
    fs::create_dir(&place).unwrap();
    fs::write(place.join("word"), "built\n").unwrap();
    fs::write(place.join("Dockerfile"), format!("FROM {IMAGE}\nCOPY word /srv/word\n")).unwrap();
    let engine = stage.engine();
    let root = Root::Image(Image::Dockerfile(place.clone()));
    let spec = Spec { root: root.clone(), ..Spec::default() };
    let error = runtime.block_on(engine.create(&fresh(), &spec)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");

    runtime.block_on(engine.prepare(&root, &|_| {})).unwrap();

    let made = Made::new(&engine, &spec, runtime);
    assert_eq!(made.sh("cat /srv/word"), "built\n");
    fs::write(place.join("Dockerfile"), "FROM no/such:image\n").unwrap();
    let error = runtime.block_on(engine.prepare(&root, &|_| {})).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
    Ok(())
}
