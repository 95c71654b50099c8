//! A real terminal to try `atoll` in: a pane of a tmux server of one's own.

use std::{
    path::PathBuf,
    process::{Command, Output},
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::atoll::Atoll;

/// What the shell outside the sandbox prompts with.
pub(crate) const PROMPT: &str = "host> ";

pub(crate) struct Tmux {
    directory: TempDir,
    /// Long enough for a busy machine: only a hang takes this long.
    pub(crate) patience: Duration,
}

/// Whether there is one to be had here.
pub(crate) fn is_there() -> bool {
    ["tmux", "vim.tiny", "top"].iter().all(|program| {
        let places = ["/usr/bin", "/bin", "/usr/local/bin"];
        places.iter().any(|place| PathBuf::from(place).join(program).exists())
    })
}

impl Tmux {
    /// A pane of 30 rows and 100 columns with a shell in it; `$A` is the program, and its home is
    /// that of `atoll`.
    pub(crate) fn new(atoll: &Atoll) -> Self {
        let tmux =
            Self { directory: tempfile::tempdir().unwrap(), patience: crate::atoll::PATIENCE };
        let home = atoll.path("");
        let program = env!("CARGO_BIN_EXE_atoll");
        let shell = format!(
            "exec env -i PATH=/usr/bin:/bin TERM=\"$TERM\" HOME={} A={program} PS1='{PROMPT}' sh",
            home.display()
        );
        tmux.ask(&["new-session", "-d", "-x", "100", "-y", "30", &shell]);
        tmux.until(PROMPT.trim_end());
        tmux
    }

    fn command(&self, arguments: &[&str]) -> Output {
        Command::new("tmux")
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("LANG", "C.UTF-8")
            .arg("-S")
            .arg(self.directory.path().join("socket"))
            .args(["-f", "/dev/null"])
            .args(arguments)
            .output()
            .unwrap()
    }

    pub(crate) fn ask(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What is on the screen, without spaces at the ends of lines and without empty ones.
    pub(crate) fn screen(&self) -> String {
        let screen = self.ask(&["capture-pane", "-p"]);
        let lines = screen.lines().map(str::trim_end).filter(|line| !line.is_empty());
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Types letters, as they are.
    pub(crate) fn write(&self, text: &str) {
        self.ask(&["send-keys", "-l", text]);
    }

    /// Presses keys by their names.
    pub(crate) fn press(&self, keys: &[&str]) {
        self.ask(&[&["send-keys"], keys].concat());
    }

    /// Types a line.
    pub(crate) fn line(&self, text: &str) {
        self.write(text);
        self.press(&["Enter"]);
    }

    /// Empties the screen of the shell outside.
    pub(crate) fn clear(&self) {
        self.line("clear");
        self.until_so("an empty screen", |screen| screen == PROMPT.trim_end());
    }

    pub(crate) fn until(&self, what: &str) {
        self.until_so(what, |screen| screen.contains(what));
    }

    /// Waits until a shell asks for the next line: what is typed earlier is shown before it is
    /// asked for, and everything after that is on other lines.
    pub(crate) fn prompt(&self, prompt: &str) {
        self.until_so(prompt, |screen| screen.ends_with(prompt));
    }

    /// Waits until a whole line is on the screen.
    pub(crate) fn until_line(&self, line: &str) {
        self.until_so(line, |screen| screen.lines().any(|found| found == line));
    }

    pub(crate) fn until_so(&self, what: &str, so: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + self.patience;
        loop {
            let screen = self.screen();
            if so(&screen) {
                return;
            }
            assert!(Instant::now() < deadline, "never {what:?} in:\n{screen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        let (rows, columns) = (rows.to_string(), columns.to_string());
        self.ask(&["resize-window", "-x", &columns, "-y", &rows]);
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // Of this socket only, which nobody else has.
        self.command(&["kill-server"]);
    }
}
