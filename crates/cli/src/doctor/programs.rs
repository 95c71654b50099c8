//! What sandboxes are made with on this host, and which version of it.

use std::{path::Path, process::Stdio, time::Duration};

use serde::Serialize;
use tokio::{process::Command, time::timeout};

use super::{
    known_bad::{KnownBad, Problem, Verdict},
    version::Version,
};

/// How long a program may take to tell its version.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a distribution's packages put programs into.
const PACKAGES: [&str; 4] = ["/usr/bin", "/usr/sbin", "/bin", "/sbin"];

/// Where to look: not everybody's path leads to what only root starts.
const PLACES: [&str; 6] =
    ["/usr/local/bin", "/usr/local/sbin", "/usr/bin", "/usr/sbin", "/bin", "/sbin"];

/// A name of the table, the program that tells its version, and which engine uses it.
const PROGRAMS: [(&str, &str, &str); 6] = [
    ("runc", "runc", "docker"),
    ("crun", "crun", "docker, if it is the runtime"),
    ("runsc", "runsc", "docker, if it is the runtime"),
    ("containerd", "containerd", "docker"),
    ("docker", "dockerd", "docker"),
    ("bwrap", "bwrap", "none; for comparison"),
];

/// A program, or the kernel.
#[derive(Debug, Serialize)]
pub(crate) struct Found {
    pub(crate) name: String,
    /// None if it is not here.
    pub(crate) version: Option<String>,
    pub(crate) used_by: String,
    pub(crate) verdict: Verdict,
    pub(crate) problems: Vec<Problem>,
}

/// The kernel, then every program that engines may use. `daemon` is the version of a Docker daemon
/// that answers, which counts more than one that is installed.
pub(crate) async fn find(daemon: Option<&str>) -> Vec<Found> {
    let table = KnownBad::table();
    let kernel = rustix::system::uname();
    let release = kernel.release().to_string_lossy();
    let kernel = of_kernel(&release, &kernel.version().to_string_lossy());
    let mut found = vec![judged(&table, "kernel", Some((kernel, false)), "every engine")];
    for (name, program, used_by) in PROGRAMS {
        let version = match daemon.filter(|_| name == "docker") {
            // Where it came from it does not say.
            Some(daemon) => Some((daemon.to_owned(), true)),
            None => version(program).await,
        };
        found.push(judged(&table, name, version, used_by));
    }
    found
}

/// The kernel's version. Debian's releases say less (`6.1.0-18-amd64`) than what they are built
/// from, which stands elsewhere (`… Debian 6.1.76-1`).
fn of_kernel(release: &str, built: &str) -> String {
    let mut words = built.split_whitespace().skip_while(|word| *word != "Debian");
    match words.nth(1).filter(|word| Version::parse(word).is_some()) {
        Some(version) => version.to_owned(),
        None => release.to_owned(),
    }
}

fn judged(table: &KnownBad, name: &str, version: Option<(String, bool)>, used_by: &str) -> Found {
    let (verdict, problems) = match &version {
        Some((version, packaged)) => table.judge(name, version, *packaged),
        None => (Verdict::Fine, Vec::new()),
    };
    Found {
        name: name.to_owned(),
        version: version.map(|(version, _)| version),
        used_by: used_by.to_owned(),
        verdict,
        problems,
    }
}

/// The version a program tells, and whether a package brought it; none if it is not here.
async fn version(program: &str) -> Option<(String, bool)> {
    let place = PLACES.iter().find(|place| Path::new(place).join(program).is_file())?;
    let mut command = Command::new(Path::new(place).join(program));
    command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let told = timeout(PATIENCE, command.output()).await;
    let told = told.ok().and_then(Result::ok).map(|output| output.stdout).unwrap_or_default();
    let told = String::from_utf8_lossy(&told);
    let words = told.split(|c: char| c.is_whitespace() || c == ',');
    let version = words.into_iter().find(|word| Version::parse(word).is_some());
    let version = version.unwrap_or("unknown").to_owned();
    Some((version, PACKAGES.contains(place)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debians_kernel_is_known_by_what_it_was_built_from() {
        let built = "#1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1 (2024-02-01)";
        assert_eq!(of_kernel("6.1.0-18-amd64", built), "6.1.76-1");
        let ubuntu = "#101-Ubuntu SMP Tue Nov 14 13:30:08 UTC 2023";
        assert_eq!(of_kernel("5.15.0-91-generic", ubuntu), "5.15.0-91-generic");
        assert_eq!(of_kernel("6.6.15", "#1 SMP Debian"), "6.6.15");
    }

    #[test]
    fn what_is_not_here_has_no_problems() {
        let absent = judged(&KnownBad::table(), "runc", None, "docker");

        assert_eq!((absent.version, absent.verdict), (None, Verdict::Fine));
    }
}
