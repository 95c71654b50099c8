//! From what is asked for to what the launcher does.

use std::{
    fs,
    path::{Component, Path},
};

use atoll_agent_client::{private::Private, seal};
use atoll_engine::{Error, Mount, Network, Result, Root, Spec};
use atoll_launcher::{Bind, Ids, Plan, Weakness};

use crate::{
    limits::Bounds,
    root::{self, GUEST, HOME, Parts, WRITABLE},
};

/// What a guest sees as the name of its machine, in every sandbox.
const HOSTNAME: &str = "sandbox";

/// Places that are not to be covered.
const KEPT: [&str; 4] = ["/proc", "/dev", "/sys", "/etc"];

/// Each is a descriptor on its way to the sandbox.
const MOST_MOUNTS: usize = 32;

/// Plans a sandbox; what cannot be done is refused here, before anything is made.
pub(crate) fn plan(
    spec: &Spec,
    bounds: &Bounds,
    ids: Ids,
    private: &Private,
    weaknesses: &[Weakness],
) -> Result<Plan> {
    if spec.network != Network::Loopback {
        return Err(Error::unsupported("the namespace engine gives no network beyond loopback"));
    }
    if spec.runtime.is_some() {
        return Err(Error::unsupported("the namespace engine has no runtime to choose"));
    }
    let mut parts = Parts::common(HOSTNAME);
    let lower = match &spec.root {
        Root::Host { also } => {
            parts.directory("/root", 0o700, 0);
            parts.directory("/run", 0o755, 0);
            root::host(&mut parts);
            for path in also {
                inside(path)?;
                directory(path)?;
                let (source, target) = (path.clone(), path.clone());
                let hidden = Vec::new();
                parts.binds.push(Bind { source, target, writable: false, as_user: None, hidden });
            }
            None
        }
        Root::Directory(path) => {
            directory(path)?;
            Some(path.clone())
        }
        Root::Venv => {
            return Err(Error::unsupported(
                "the namespace engine makes no virtual environment as a root",
            ));
        }
        Root::Image(_) => {
            return Err(Error::unsupported("the namespace engine has no image as a root"));
        }
    };
    if spec.mounts.len() > MOST_MOUNTS {
        return Err(Error::invalid(format!("a sandbox has at most {MOST_MOUNTS} mounts")));
    }
    for mount in &spec.mounts {
        parts.binds.push(shown(mount, private)?);
    }
    // Where all is one user's, what is not a guest's to write must say so itself.
    let alike = matches!(ids, Ids::One(_));
    let writable = if alike && lower.is_none() && !weaknesses.contains(&Weakness::WritableBinds) {
        [HOME].iter().chain(&WRITABLE).map(Into::into).collect()
    } else {
        Vec::new()
    };
    Ok(Plan {
        ids,
        hostname: HOSTNAME.to_owned(),
        disk: bounds.disk,
        inodes: bounds.inodes,
        lower,
        binds: parts.binds,
        directories: parts.directories,
        links: parts.links,
        files: parts.files,
        writable,
        own_pids: if alike { seal::OWN_PIDS } else { 0 },
        attempt: false,
        own_doors: 0,
        weaknesses: weaknesses.to_vec(),
    })
}

/// Whether directories of the host's are shown besides its own programs.
pub(crate) fn shows_more(spec: &Spec) -> bool {
    let programs = matches!(&spec.root, Root::Host { also } if also.is_empty());
    !programs || !spec.mounts.is_empty()
}

fn shown(mount: &Mount, private: &Private) -> Result<Bind> {
    inside(&mount.guest)?;
    directory(&mount.host)?;
    let hidden = private.hidden_in(&mount.host)?;
    Ok(Bind {
        source: mount.host.clone(),
        target: mount.guest.clone(),
        writable: mount.writable,
        as_user: Some(GUEST),
        hidden,
    })
}

/// Whether that is a directory of the host. No message names it: it is the host's.
fn directory(path: &Path) -> Result<()> {
    if !path.is_absolute() {
        return Err(Error::invalid("a directory to be shown has a relative path"));
    }
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(Error::invalid("what is to be shown is no directory")),
        Err(error) => Err(Error::invalid("a directory to be shown is not there").because(error)),
    }
}

/// Whether something can be shown at this path inside.
fn inside(path: &Path) -> Result<()> {
    let plain = path.is_absolute()
        && path != Path::new("/")
        && path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
        && path.to_str().is_some_and(|text| !text.contains('\0'));
    if !plain {
        return Err(Error::invalid("a mount goes to an absolute path without `..`, not to `/`"));
    }
    if KEPT.iter().any(|kept| path.starts_with(kept)) {
        return Err(Error::invalid(format!("no mount may cover {}", KEPT.join(", "))));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use atoll_agent_client::cgroup::Host;
    use atoll_engine::{ErrorKind, Limits};

    use super::*;
    use crate::limits;

    fn planned(spec: &Spec) -> Result<Plan> {
        let means = limits::Means { groups: &Host::v1([]), counted: false };
        let bounds = limits::bounds(&Limits::default(), means)?;
        plan(spec, &bounds, Ids::Range(0), &Private::default(), &[])
    }

    #[test]
    fn a_mount_covers_nothing_that_matters() {
        for guest in ["/", "/proc", "/proc/sys", "/dev", "/etc", "/a/../etc", "a", ""] {
            let mounts = vec![Mount { host: "/usr".into(), guest: guest.into(), writable: false }];
            let error = planned(&Spec { mounts, ..Spec::default() }).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{guest}");
        }
    }

    #[test]
    fn a_directory_that_is_not_there_is_invalid_and_not_named() {
        let missing = || "/nowhere/at/all".into();
        for spec in [
            Spec { root: Root::Directory(missing()), ..Spec::default() },
            Spec { root: Root::Host { also: vec![missing()] }, ..Spec::default() },
            Spec {
                mounts: vec![Mount { host: missing(), guest: "/mnt".into(), writable: true }],
                ..Spec::default()
            },
        ] {
            let error = planned(&spec).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(!error.message().contains("nowhere"), "{error}");
        }
    }

    #[test]
    fn what_the_engine_has_not_is_unsupported() {
        for spec in [
            Spec { root: Root::Venv, ..Spec::default() },
            Spec { network: Network::Host, ..Spec::default() },
        ] {
            assert_eq!(planned(&spec).unwrap_err().kind(), ErrorKind::Unsupported);
        }
    }
}
