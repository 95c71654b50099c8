//! What a server in the background must not take along.
#![expect(unsafe_code, reason = "closing descriptors nobody owns has no safe form")]

/// Closes every descriptor above standard error: those of the shell, a build tool or a script that
/// happened to be open, and would stay so for as long as the server lives.
///
/// Only before anything of this process has opened one.
pub(crate) fn close_inherited() {
    // SAFETY: called first in `main`, when no descriptor above 2 has an owner in this process.
    unsafe {
        libc::close_range(3, libc::c_uint::MAX, 0);
    }
}
