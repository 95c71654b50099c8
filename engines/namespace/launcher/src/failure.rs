//! Says at which step something failed.

use std::{io, path::Path};

use atoll_launcher::{Failure, Step};

/// Turns an error of a system call into a [`Failure`].
pub(crate) trait At<T> {
    fn at(self, step: Step, what: impl AsRef<Path>) -> Result<T, Failure>;
}

impl<T, E: Into<io::Error>> At<T> for Result<T, E> {
    fn at(self, step: Step, what: impl AsRef<Path>) -> Result<T, Failure> {
        self.map_err(|error| Failure {
            step,
            what: what.as_ref().display().to_string(),
            errno: error.into().raw_os_error().unwrap_or(0),
        })
    }
}
