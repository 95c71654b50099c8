//! How far a copy is, on a terminal; nothing elsewhere.

use indicatif::{ProgressBar, ProgressStyle};

use crate::{printer::Printer, words};

/// A bar, or a counter where the size is not known. Cleared when dropped.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn new(printer: Printer, what: &str, size: Option<u64>) -> Self {
        if !printer.progress() {
            return Self(ProgressBar::hidden());
        }
        let (bar, template) = match size {
            Some(size) => (
                ProgressBar::new(size),
                "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}",
            ),
            None => (ProgressBar::no_length(), "{msg} {spinner} {bytes} {bytes_per_sec}"),
        };
        let style =
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        Self(bar.with_style(style).with_message(words::printable(what)))
    }

    /// How far it is, where how much there is becomes known on the way.
    pub(crate) fn set(&self, done: u64, total: u64, doing: &str) {
        self.0.set_length(total);
        self.0.set_position(done);
        self.0.set_message(words::printable(doing));
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.0.inc(bytes as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
