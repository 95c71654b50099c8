//! Every engine there is, in one place.

use std::{path::PathBuf, sync::Arc};

use atoll_config::Settings;
use atoll_docker::DockerEngine;
use atoll_engine::Engine;
use atoll_local::LocalEngine;
use atoll_namespace::NamespaceEngine;
use atoll_types::engine::EngineInfo;

use super::Place;

/// The engines, each with its own directory of the data directory.
pub(crate) fn engines(place: &Place, settings: &Settings) -> Vec<Arc<dyn Engine>> {
    // What other servers keep is not for this one's guests either.
    let private = vec![place.directory().to_owned(), "/run/atoll".into()];
    let namespace = atoll_namespace::Config {
        private: private.clone(),
        lent_ids: Some(lent_ids(place)),
        ..atoll_namespace::Config::new(place.engine("namespace"))
    };
    let docker = atoll_docker::Config {
        private,
        host: settings.engines.docker.host.clone(),
        credentials: settings.engines.docker.credentials.clone(),
        ..atoll_docker::Config::new(place.engine("docker"))
    };
    let local = atoll_local::Config::new(place.engine("local"));
    vec![
        Arc::new(NamespaceEngine::new(namespace)),
        Arc::new(DockerEngine::new(docker)),
        Arc::new(LocalEngine::new(local)),
    ]
}

/// Where this user's servers tell each other which of its ids are taken.
fn lent_ids(place: &Place) -> PathBuf {
    let runtime = PathBuf::from(format!("/run/user/{}", rustix::process::geteuid().as_raw()));
    let common =
        if runtime.is_dir() { runtime.join("atoll") } else { place.directory().to_owned() };
    common.join("ids")
}

/// What each engine says of this host, asked directly.
pub(crate) async fn describe(settings: &Settings) -> Vec<EngineInfo> {
    let engines = engines(&Place::new(&settings.data_dir), settings);
    let mut described = Vec::new();
    for engine in engines {
        let probe = engine.probe().await;
        let error = probe.as_ref().err();
        let (problem, hint) = (
            error.map(|error| error.message().to_owned()),
            error.and_then(|error| error.advice()).map(ToOwned::to_owned),
        );
        let available = probe.is_ok();
        let probe = probe.unwrap_or_default();
        described.push(EngineInfo {
            name: engine.name().to_owned(),
            available,
            isolation: engine.isolation(),
            problem,
            hint,
            grades: probe.grades,
            facts: probe.facts,
        });
    }
    described
}
