//! The engines this server has, by name.

use std::sync::Arc;

use atoll_engine::Engine;
use atoll_types::engine::EngineInfo;
use futures_util::future::join_all;

use crate::{Code, Error, Result};

/// Named engines, in the order they were added.
#[derive(Debug, Clone, Default)]
pub struct Engines {
    engines: Vec<Arc<dyn Engine>>,
}

impl Engines {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an engine; one of the same name is replaced.
    #[must_use]
    pub fn with(mut self, engine: Arc<dyn Engine>) -> Self {
        self.engines.retain(|other| other.name() != engine.name());
        self.engines.push(engine);
        self
    }

    /// The name an engine goes by, for a name or alias.
    pub(crate) fn canonical(name: &str) -> &str {
        if name == "local_shell" { "local" } else { name }
    }

    /// Finds the engine of that name; never another in its place.
    pub(crate) fn find(&self, name: &str) -> Result<&Arc<dyn Engine>> {
        let canonical = Self::canonical(name);
        self.engines.iter().find(|engine| engine.name() == canonical).ok_or_else(|| {
            let names: Vec<_> = self.engines.iter().map(|engine| engine.name()).collect();
            Error::new(Code::EngineUnavailable, format!("this server has no engine `{name}`"))
                .hint(format!("its engines: {}", names.join(", ")))
        })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<dyn Engine>> {
        self.engines.iter()
    }

    /// Asks every engine whether it works here.
    pub(crate) async fn describe(&self) -> Vec<EngineInfo> {
        join_all(self.engines.iter().map(|engine| describe(engine.as_ref()))).await
    }
}

async fn describe(engine: &dyn Engine) -> EngineInfo {
    let probe = engine.probe().await;
    let (problem, hint) = match &probe {
        Ok(_) => (None, None),
        Err(error) => (Some(error.message().to_owned()), error.advice().map(str::to_owned)),
    };
    let available = probe.is_ok();
    let probe = probe.unwrap_or_default();
    EngineInfo {
        name: engine.name().to_owned(),
        available,
        isolation: engine.isolation(),
        problem,
        hint,
        grades: probe.grades,
        facts: probe.facts,
    }
}
