//! A registry on loopback, to pull from.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use crate::{Missing, PATH};

/// A registry, gone when dropped.
#[derive(Debug)]
pub struct Registry {
    process: Child,
    address: String,
    _place: TempDir,
}

impl Registry {
    /// Starts one, that lets in whoever has this name and password, if there is one.
    ///
    /// # Panics
    /// If this machine has all it needs and the registry does not start.
    pub fn start(login: Option<(&str, &str)>) -> Result<Self, Missing> {
        let missing = |what: &str| Missing(format!("there is no {what}: run scripts/setup tests"));
        let place = tempfile::Builder::new().prefix("atoll-registry-").tempdir().expect("a place");
        let at = |name: &str| place.path().join(name).display().to_string();
        let mut settings = format!(
            "version: 0.1\nlog: {{level: info}}\nhttp: {{addr: '127.0.0.1:0'}}\n\
             storage: {{filesystem: {{rootdirectory: {}}}}}\n",
            at("data")
        );
        if let Some((name, password)) = login {
            let output = Command::new("htpasswd")
                .args(["-Bbn", name, password])
                .env("PATH", PATH)
                .output()
                .map_err(|_| missing("htpasswd"))?;
            fs::write(place.path().join("users"), output.stdout).expect("it is written");
            let users = at("users");
            settings = format!("{settings}auth: {{htpasswd: {{realm: atoll, path: {users}}}}}\n");
        }
        fs::write(place.path().join("settings.yml"), settings).expect("it is written");
        if !PATH.split(':').any(|path| Path::new(path).join("docker-registry").exists()) {
            return Err(missing("docker-registry"));
        }
        // It ends with this program, however that ends.
        let with_us =
            "docker-registry serve \"$0\" & exec 2> /dev/null; cat > /dev/null; kill -9 $!";
        let mut process = Command::new("/bin/sh")
            .args(["-c", with_us, &at("settings.yml")])
            .env_clear()
            .env("PATH", PATH)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a shell starts");
        let mut log = BufReader::new(process.stderr.take().expect("it is piped"));
        let mut line = String::new();
        let address = loop {
            line.clear();
            let read = log.read_line(&mut line).expect("its log is text");
            assert!(read > 0, "the registry did not start");
            if let Some((_, after)) = line.split_once("listening on ") {
                let end = after.find(['"', ' ', ',']).unwrap_or(after.trim_end().len());
                break after[..end].to_owned();
            }
        };
        // Nobody else reads what it says, and it must not wait for anyone who does.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Ok(Self { process, address, _place: place })
    }

    /// `127.0.0.1:PORT`.
    pub fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}
