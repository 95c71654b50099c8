//! Every engine there is, in one place.

use std::{path::Path, sync::Arc};

use atoll_engine::Engine;
use atoll_local::LocalEngine;
use atoll_namespace::NamespaceEngine;
use atoll_types::engine::EngineInfo;

use super::Place;

/// The engines, each with its own directory of the data directory.
pub(crate) fn engines(place: &Place) -> Vec<Arc<dyn Engine>> {
    let namespace = atoll_namespace::Config {
        // What other servers keep is not for this one's guests either.
        private: vec![place.directory().to_owned(), "/run/atoll".into()],
        ..atoll_namespace::Config::new(place.engine("namespace"))
    };
    let local = atoll_local::Config::new(place.engine("local"));
    vec![Arc::new(NamespaceEngine::new(namespace)), Arc::new(LocalEngine::new(local))]
}

/// What each engine says of this host, asked directly.
pub(crate) async fn describe(data: &Path) -> Vec<EngineInfo> {
    let engines = engines(&Place::new(data));
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
