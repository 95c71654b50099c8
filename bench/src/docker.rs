//! Docker, where a daemon is up and an image was named.

use std::{path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};

use crate::subject::Subject;

const FENCED: &[&str] = &["--network=none", "--cap-drop=ALL", "--security-opt=no-new-privileges"];

/// `docker run` of a fresh container, and `docker exec` in one that runs.
pub(crate) fn subjects(image: &str, program: &Path) -> Result<Vec<Subject>> {
    let code = std::fs::read_to_string(program)?;
    let name = format!("atoll-bench-{}", std::process::id());
    let begin =
        ["docker", "run", "-d", "--rm", "--name", &name].into_iter().chain(FENCED.iter().copied());
    run(begin.chain([image, "sleep", "3600"])).context("docker is not usable")?;

    let once = ["docker", "run", "--rm"].into_iter().chain(FENCED.iter().copied());
    Ok(vec![
        Subject::command(
            "docker run python3 -c",
            once.chain([image, "python3", "-c", &code]),
            "hello",
        ),
        Subject::command(
            "docker exec python3 -c",
            ["docker", "exec", &name, "python3", "-c", &code],
            "hello",
        ),
    ])
}

/// Removes the container `subjects` left running.
pub(crate) fn clean() {
    let name = format!("atoll-bench-{}", std::process::id());
    let _ = run(["docker", "rm", "-f", &name].into_iter());
}

fn run<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<()> {
    let program = words.next().context("no program")?;
    let output = Command::new(program).args(words).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
