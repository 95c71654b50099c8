//! What the agent is told: how its guests are sealed.

use std::collections::BTreeMap;

use atoll_agent_client::seal;
use atoll_agent_protocol::message::{Boot, Rlimit, User};
use atoll_engine::Spec;

use crate::{
    config::{Config, Weakness},
    image::Facts,
    limits::Bounds,
};

/// The guests' user and group inside.
pub(crate) const GUEST: u32 = 1000;

/// The guests' home.
pub(crate) const HOME: &str = "/home/user";

/// Rather any guest than the agent.
const OOM_SCORE: i32 = 1000;

pub(crate) fn boot(spec: &Spec, bounds: &Bounds, image: &Facts, config: &Config) -> Boot {
    let rlimit = |resource: libc::__rlimit_resource_t, value| Rlimit {
        resource: i32::try_from(resource).unwrap_or_default(),
        value,
    };
    // To the kernel 1 means that there is to be no dump, not even to a program of the host.
    let mut rlimits = vec![rlimit(libc::RLIMIT_CORE, 1)];
    rlimits.extend(bounds.open_files.map(|files| rlimit(libc::RLIMIT_NOFILE, files)));
    Boot {
        user: (!config.weak(Weakness::Root)).then_some(User { uid: GUEST, gid: GUEST }),
        seccomp: (!config.weak(Weakness::Seccomp)).then(seal::seccomp),
        rlimits,
        home: HOME.to_owned(),
        env: variables(spec, image),
        disk: HOME.to_owned(),
        oom_score: (!config.weak(Weakness::Agent)).then_some(OOM_SCORE),
        ..Boot::default()
    }
}

/// The guests' variables: what every program expects, the image's, and the spec's.
fn variables(spec: &Spec, image: &Facts) -> Vec<String> {
    let mut all = BTreeMap::from([
        ("LANG", "C.UTF-8"),
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ]);
    all.extend(image.env.iter().filter_map(|pair| pair.split_once('=')));
    all.extend([("HOME", HOME), ("USER", "user")]);
    all.extend(spec.env.iter().map(|(name, value)| (&**name, &**value)));
    all.into_iter().map(|(name, value)| format!("{name}={value}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_adds_variables_and_the_spec_has_the_last_word() {
        let image = Facts {
            env: ["GO=1.26", "HOME=/root", "LANG=de", "BOTH=image"].map(str::to_owned).to_vec(),
            ..Facts::default()
        };
        let env = BTreeMap::from([("BOTH".to_owned(), "spec".to_owned())]);

        let all = variables(&Spec { env, ..Spec::default() }, &image);

        for pair in ["GO=1.26", "HOME=/home/user", "LANG=de", "BOTH=spec", "USER=user"] {
            assert!(all.contains(&pair.to_owned()), "{pair}: {all:?}");
        }
        assert_eq!(all.len(), 6);
    }
}
