//! A Docker daemon for tests: private, and gone with the test program.
//!
//! It shares nothing with a daemon the machine may have: its own data, socket, control groups and
//! containerd, and no network. Test programs that run side by side have one each; its data is kept
//! in `~/.cache/atoll/docker`, so that the image is imported once. What it starts is ended when
//! the [`Dockerd`] is dropped and also when the test program is killed: a small shell script
//! (`watcher.sh`) waits for that.

mod ask;
mod image;
mod registry;
mod slot;

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

pub use registry::Registry;
use slot::Slot;

/// The image every daemon has: Debian bookworm with Python and Perl.
pub const IMAGE: &str = "atoll-test:bookworm";

/// How long a daemon may take to answer, or to go.
const PATIENCE: Duration = Duration::from_secs(90);

/// Where Debian keeps programs that an ordinary user's path may lack.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What this machine lacks for a daemon, and how to get it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing(pub String);

/// How the daemon is to be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Containers go on while the daemon is down.
    pub live_restore: bool,
    /// OCI runtimes besides `runc`.
    pub runtimes: Vec<Runtime>,
}

/// An OCI runtime: its name, its program and what that is started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runtime {
    pub name: String,
    pub program: PathBuf,
    pub arguments: Vec<String>,
}

/// A daemon and everything it started.
#[derive(Debug)]
pub struct Dockerd {
    daemon: Child,
    /// Ends what is left when its standard input is closed.
    watcher: Child,
    options: Options,
    group: String,
    place: TempDir,
    slot: Slot,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Dockerd {
    /// Starts a daemon that has [`IMAGE`]. Blocks until it answers.
    pub fn start() -> Result<Self, Missing> {
        Self::with(Options::default())
    }

    /// The same, with these options.
    ///
    /// # Panics
    /// If this machine has all it needs and the daemon does not start.
    pub fn with(options: Options) -> Result<Self, Missing> {
        let root = needed()?;
        let slot = Slot::take().map_err(|error| Missing(format!("no place for data: {error}")))?;
        let place = tempfile::Builder::new().prefix("atoll-dockerd-").tempdir().expect("a place");
        let group = place.path().file_name().expect("it has a name").to_string_lossy().into_owned();
        let watcher = watch(&group, &slot.data(), place.path());
        let daemon = launch(&group, &slot, place.path(), &options);
        let mut dockerd = Self { daemon, watcher, options, group, place, slot };
        dockerd.wait_until_ready();
        dockerd.clean();
        if !image::is_here(&dockerd.socket(), IMAGE) {
            image::import(&dockerd.socket(), IMAGE, &root);
        }
        Ok(dockerd)
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        self.place.path().join("docker.sock")
    }

    /// The same, as `DOCKER_HOST` has it.
    pub fn host(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    pub fn image(&self) -> &'static str {
        IMAGE
    }

    pub fn pid(&self) -> u32 {
        self.daemon.id()
    }

    /// Where it keeps images and containers.
    pub fn data(&self) -> PathBuf {
        self.slot.data()
    }

    /// What it said.
    pub fn log(&self) -> PathBuf {
        self.slot.log()
    }

    /// Ends the daemon at once. Its containerd goes with it, as it does; containers do not.
    pub fn kill(&mut self) {
        self.daemon.kill().expect("it is our child");
        self.daemon.wait().expect("it is our child");
        // Another daemon would take one that is about to go for one that stays.
        let pid = fs::read_to_string(self.place.path().join("exec/containerd/containerd.pid"));
        let process = pid.map(|pid| Path::new("/proc").join(pid.trim()));
        let deadline = Instant::now() + Duration::from_secs(10);
        while process.as_ref().is_ok_and(|path| path.exists()) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Starts the daemon again after [`kill`](Self::kill).
    pub fn restart(&mut self) {
        self.daemon = launch(&self.group, &self.slot, self.place.path(), &self.options);
        self.wait_until_ready();
    }

    /// The names of all containers, running or not.
    pub fn containers(&self) -> Vec<String> {
        let answer = ask::get(&self.socket(), "/containers/json?all=1");
        let list = answer.as_array().expect("a list").clone();
        list.iter().map(|one| one["Names"][0].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// The names of all volumes.
    pub fn volumes(&self) -> Vec<String> {
        let answer = ask::get(&self.socket(), "/volumes");
        let list = answer["Volumes"].as_array().cloned().unwrap_or_default();
        list.iter().map(|one| one["Name"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// The names of all networks.
    pub fn networks(&self) -> Vec<String> {
        let answer = ask::get(&self.socket(), "/networks");
        let list = answer.as_array().cloned().unwrap_or_default();
        list.iter().map(|one| one["Name"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// What the daemon tells about a container.
    pub fn inspect(&self, container: &str) -> Value {
        ask::get(&self.socket(), &format!("/containers/{container}/json"))
    }

    /// Asks the daemon anything: the answer's status and its body.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        ask::request(&self.socket(), method, path, body).expect("the daemon answers")
    }

    /// Makes an image that holds these files and nothing else.
    pub fn import(&self, name: &str, directory: &Path) {
        image::import(&self.socket(), name, directory);
    }

    /// Sends an image to the registry it is named after, with a name and a password.
    pub fn push(&self, image: &str, login: Option<(&str, &str)>) {
        image::push(&self.socket(), image, login);
    }

    /// Makes another image of [`IMAGE`] with these lines of a Dockerfile, such as `USER root`.
    pub fn change(&self, name: &str, lines: &[&str]) {
        image::change(&self.socket(), name, lines);
    }

    fn wait_until_ready(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while !ask::answers(&self.socket()) {
            let ended = self.daemon.try_wait().expect("it is our child");
            if ended.is_some() || Instant::now() > deadline {
                let log = fs::read_to_string(self.log()).unwrap_or_default();
                let tail: Vec<_> = log.lines().rev().take(20).collect();
                panic!("dockerd did not start: {ended:?}\n{}", tail.join("\n"));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Removes what a program that was killed may have left in these data.
    fn clean(&self) {
        for name in self.containers() {
            ask::delete(&self.socket(), &format!("/containers{name}?force=1&v=1"));
        }
        for name in self.volumes() {
            ask::delete(&self.socket(), &format!("/volumes/{name}?force=1"));
        }
    }
}

impl Drop for Dockerd {
    fn drop(&mut self) {
        // Asked first, so that it leaves its data in order.
        let pid = Pid::from_raw(self.daemon.id().cast_signed());
        let asked = pid.is_some_and(|pid| {
            matches!(self.daemon.try_wait(), Ok(None)) && kill_process(pid, Signal::TERM).is_ok()
        });
        let deadline = Instant::now() + Duration::from_secs(15);
        while asked && matches!(self.daemon.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(20));
        }
        drop(self.watcher.stdin.take());
        let _ = self.watcher.wait();
        let _ = self.daemon.wait();
    }
}

/// What this machine lacks for a daemon, if anything.
pub fn missing() -> Option<Missing> {
    needed().err()
}

/// What a daemon needs and this machine may lack; where the image's files are.
fn needed() -> Result<PathBuf, Missing> {
    if !geteuid().is_root() {
        return Err(Missing("a Docker daemon of the tests' own needs root".to_owned()));
    }
    for program in ["dockerd", "containerd", "runc", "curl"] {
        if !PATH.split(':').any(|directory| Path::new(directory).join(program).exists()) {
            return Err(Missing(format!("there is no {program}: run scripts/setup tests")));
        }
    }
    let root = slot::cache().join("image/root");
    if !root.join("usr/bin/python3").exists() {
        return Err(Missing("there is no image to import: run scripts/setup tests".to_owned()));
    }
    Ok(root)
}

fn watch(group: &str, data: &Path, place: &Path) -> Child {
    use std::os::unix::process::CommandExt as _;

    Command::new("/bin/sh")
        .args(["-c", include_str!("watcher.sh"), "watcher", group])
        .args([data, place])
        .env_clear()
        .env("PATH", PATH)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell starts")
}

fn launch(group: &str, slot: &Slot, place: &Path, options: &Options) -> Child {
    let runtimes = options.runtimes.iter().map(|one| {
        let described = json!({ "path": one.program, "runtimeArgs": one.arguments });
        (one.name.clone(), described)
    });
    let settings = json!({
        "live-restore": options.live_restore,
        "runtimes": runtimes.collect::<serde_json::Map<_, _>>(),
    });
    let settings_file = place.join("daemon.json");
    fs::write(&settings_file, settings.to_string()).expect("settings are written");
    let log = fs::File::create(slot.log()).expect("a log is made");
    let at = |name: &str| place.join(name).display().to_string();
    // It joins the group before it is itself, so that nothing it starts is outside.
    let join = "for file in /sys/fs/cgroup/pids /sys/fs/cgroup; do
            [ -e $file/cgroup.procs ] || continue
            mkdir -p $file/$0 && echo $$ > $file/$0/cgroup.procs && break
        done
        exec dockerd \"$@\"";
    Command::new("/bin/sh")
        .args(["-c", join, &format!("{group}/daemon")])
        .arg(format!("--config-file={}", settings_file.display()))
        .arg(format!("--host=unix://{}", at("docker.sock")))
        .arg(format!("--data-root={}", slot.data().display()))
        .arg(format!("--exec-root={}", at("exec")))
        .arg(format!("--pidfile={}", at("docker.pid")))
        .arg(format!("--cgroup-parent=/{group}/containers"))
        .args(["--bridge=none", "--iptables=false", "--ip6tables=false", "--log-level=warn"])
        .env_clear()
        .env("PATH", PATH)
        .env("HOME", place)
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("it is open"))
        .stderr(log)
        .spawn()
        .expect("a shell starts")
}
