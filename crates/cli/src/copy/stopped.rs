//! What is said of a copy that did not come to its end.

use crate::printer::Printer;

/// Says what stayed, if it is dropped before the copy is whole: at a failure, and at ^C.
#[derive(Debug)]
pub(crate) struct Stopped {
    printer: Printer,
    what: Option<String>,
}

impl Stopped {
    pub(crate) fn new(printer: Printer, what: impl Into<String>) -> Self {
        Self { printer, what: Some(what.into()) }
    }

    pub(crate) fn whole(mut self) {
        self.what = None;
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        if let Some(what) = &self.what {
            self.printer.note(format_args!("the copy is not whole: {what}"));
        }
    }
}
