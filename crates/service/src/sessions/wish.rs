//! What a request wants a sandbox to be, checked and completed.

use std::{collections::BTreeMap, sync::Arc};

use atoll_engine::{Engine, ErrorKind, Isolation, Sandbox, Spec};
use atoll_types::{id::SandboxId, limits::Limits, session::MountRequest};

use super::Kept;
use crate::{
    Code, Engines, Error, Result, Service, environments::Environment, executions::Place, limits,
    live::Permit,
};

/// The part of a request that makes a sandbox.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wish {
    pub environment: Option<String>,
    pub engine: Option<String>,
    pub env: BTreeMap<String, String>,
    pub limits: Limits,
    pub mounts: Vec<MountRequest>,
    pub trusted: bool,
}

/// Everything needed to make it.
#[derive(Debug)]
pub(crate) struct Made {
    pub sandbox_id: SandboxId,
    pub engine: Arc<dyn Engine>,
    pub environment: Arc<Environment>,
    pub spec: Spec,
    pub kept: Kept,
    pub permit: Permit,
}

impl Service {
    /// Checks a wish against the operator's settings, and takes a place for it.
    pub(crate) async fn grant(&self, wish: Wish) -> Result<Made> {
        let settings = &self.inner.settings;
        let (environment, engine) =
            self.choose(wish.environment.as_deref(), wish.engine.as_deref())?;
        self.check_isolation(engine.as_ref(), wish.trusted)?;
        let root = environment.root(Engines::canonical(engine.name()))?;
        limits::check(&wish.limits, &settings.max_limits)?;
        check_env(&wish.env)?;
        let mounts = self.check_mounts(&wish.mounts).await?;
        // Says why, and what to do, when the engine does not work here. No other takes its place.
        let probe = self.probe(engine.as_ref()).await?;
        let asked = wish.limits.or(environment.asked(&settings.max_limits));
        let (limits, grades) =
            limits::resolve(asked, environment.limits, &settings.max_limits, &probe);
        let mut env = environment.env.clone();
        env.extend(wish.env);
        let spec = Spec {
            root,
            env,
            limits,
            mounts: environment.mounts.iter().cloned().chain(mounts).collect(),
            network: environment.network(engine.isolation()),
            trusted: wish.trusted,
            runtime: environment.runtime.clone(),
        };
        let kept = Kept { limits, grades, mounts: wish.mounts, trusted: wish.trusted };
        let permit = Some(self.permit()?);
        Ok(Made { sandbox_id: crate::id::sandbox(), engine, environment, spec, kept, permit })
    }

    /// The environment and the engine that are meant. Where sandboxes start from images, a name
    /// that is no environment's is an image's.
    pub(crate) fn choose(
        &self,
        environment: Option<&str>,
        engine: Option<&str>,
    ) -> Result<(Arc<Environment>, Arc<dyn Engine>)> {
        let settings = &self.inner.settings;
        let name = environment.unwrap_or(&settings.default_environment);
        let usual = engine.unwrap_or(&settings.default_engine);
        let environment = self.inner.environments.find_or_image(name, usual)?;
        let name = engine.or(environment.engine.as_deref()).unwrap_or(&settings.default_engine);
        let found = self.inner.engines.find(name).map_err(|mut error| {
            // A name of the caller's own is the caller's to mend.
            if engine.is_some() {
                error.code = Code::InvalidRequest;
            }
            error
        });
        Ok((environment, Arc::clone(found?)))
    }

    fn check_isolation(&self, engine: &dyn Engine, trusted: bool) -> Result<()> {
        if engine.isolation() != Isolation::None {
            return Ok(());
        }
        let refused = |hint: &str| {
            let message =
                format!("engine `{}` does not separate code from its host", engine.name());
            Err(Error::new(Code::EngineNotIsolating, message).hint(hint))
        };
        if !trusted {
            return refused("use an isolating engine, or mark the request `\"trusted\": true`");
        }
        if !self.inner.settings.allow_trusted {
            return refused("the operator of this server does not allow trusted code");
        }
        Ok(())
    }

    async fn check_mounts(&self, requests: &[MountRequest]) -> Result<Vec<atoll_engine::Mount>> {
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        if requests.len() > 32 {
            return Err(Error::invalid("`mounts`: at most 32"));
        }
        let (policy, requests) = (self.mounts.clone(), requests.to_vec());
        let check = move || requests.iter().map(|request| policy.check(request)).collect();
        tokio::task::spawn_blocking(check)
            .await
            .map_err(|error| Error::internal("a mount could not be checked").because(error))?
    }

    fn permit(&self) -> Result<tokio::sync::OwnedSemaphorePermit> {
        Arc::clone(&self.inner.places).try_acquire_owned().map_err(|_| {
            let most = self.inner.settings.max_sessions;
            Error::new(Code::TooManySessions, format!("there are {most} sandboxes already"))
                .hint("delete sessions that are no longer needed, or try again later")
        })
    }
}

impl Made {
    /// The sandbox to be, as far as planning is concerned.
    pub(crate) fn place(&self) -> Place<'_> {
        Place {
            environment: &self.environment,
            limits: &self.kept.limits,
            isolation: self.engine.isolation(),
        }
    }

    /// Makes the sandbox. A failure leaves nothing behind.
    pub(crate) async fn create(&self) -> Result<Arc<dyn Sandbox>> {
        let made = self.engine.create(&self.sandbox_id, &self.spec).await;
        made.map_err(|error| match error.kind() {
            // Nothing else that a sandbox is made of can be missing.
            ErrorKind::NotFound => Error::new(Code::ImageMissing, error.message().to_owned())
                .hint(format!(
                    "get it with `atoll env pull --engine {} {}`",
                    self.engine.name(),
                    self.environment.name
                ))
                .because(error),
            _ => error.into(),
        })
    }
}

/// Refuses variables that no process could be given.
pub(crate) fn check_env(env: &BTreeMap<String, String>) -> Result<()> {
    for (name, value) in env {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(Error::invalid(format!("`env`: `{name}` is no name of a variable")));
        }
        if value.contains('\0') {
            return Err(Error::invalid(format!("`env`: the value of `{name}` holds a NUL")));
        }
    }
    Ok(())
}
