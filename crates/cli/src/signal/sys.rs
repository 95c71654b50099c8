//! Ending by a signal.
#![expect(unsafe_code, reason = "what a signal does has no safe form")]

/// Lets a signal do to this process what it does by default, and raises it.
pub(super) fn end_by(signal: u8) {
    // SAFETY: the default action runs no code of this process, and takes no memory of it.
    unsafe {
        libc::signal(signal.into(), libc::SIG_DFL);
        libc::raise(signal.into());
    }
}
