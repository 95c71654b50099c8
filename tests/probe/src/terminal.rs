//! What a guest may try with terminals (L01), and who is hit by their keys (L02).

use serde_json::{Value, json};

use crate::{
    posture,
    privilege::{Attempts, text},
    sys, word,
};

/// Types for the user, changes the console, takes another's terminal: with its own terminal and
/// with every other it can open.
pub(crate) fn steal() -> Value {
    let mut attempts = Attempts::default();
    let byte = *b"x";
    let pointer = byte.as_ptr() as usize;
    let ioctl = |file: usize, command: libc::Ioctl, argument: usize| {
        sys::call(libc::SYS_ioctl, [file, command as usize, argument, 0, 0, 0])
    };
    attempts.with("type at its own", || ioctl(0, libc::TIOCSTI, pointer));
    attempts.with("console of its own", || ioctl(0, libc::TIOCLINUX, pointer));
    let discipline = 0_i32;
    let discipline = &raw const discipline as usize;
    attempts.with("discipline of its own", || ioctl(0, libc::TIOCSETD, discipline));
    attempts.with("redirect to its own", || ioctl(0, libc::TIOCCONS, 0));
    for name in posture::names("/dev/pts").into_iter().filter(|name| name != "ptmx") {
        let path = text(&format!("/dev/pts/{name}"));
        let open = || {
            let flags = (libc::O_RDWR | libc::O_NOCTTY) as usize;
            sys::call(libc::SYS_openat, [libc::AT_FDCWD as usize, path, flags, 0, 0, 0])
        };
        attempts
            .with(format!("type at {name}"), || ioctl(open()? as usize, libc::TIOCSTI, pointer));
        attempts.with(format!("take {name}"), || {
            sys::call(libc::SYS_setsid, [0; 6])?;
            ioctl(open()? as usize, libc::TIOCSCTTY, 1)
        });
    }
    attempts.told()
}

/// Three times in turn somebody is in the foreground, and says so; how each is ended, and whether
/// anybody else is.
pub(crate) fn keys() -> Value {
    // Whoever puts another into the foreground is in the background then.
    sys::handle(libc::SIGTTOU, None);
    let own = sys::call(libc::SYS_getpgrp, [0; 6]).unwrap_or(0);
    let Ok(behind) = group() else { return json!(null) };
    let mut ends = Vec::new();
    for turn in 0..3 {
        let Ok(front) = group() else { return json!(null) };
        let put = foreground(front);
        println!("ready {turn} {}", word::answer(put));
        let mut status = 0_i32;
        let arguments = [front as usize, &raw mut status as usize, libc::WUNTRACED as usize];
        sys::call(libc::SYS_wait4, [arguments[0], arguments[1], arguments[2], 0, 0, 0]).ok();
        ends.push(if libc::WIFSTOPPED(status) {
            sys::kill(front, libc::SIGKILL).ok();
            sys::wait(front);
            format!("stopped {}", libc::WSTOPSIG(status))
        } else {
            format!("ended {}", libc::WTERMSIG(status))
        });
        foreground(own as i32).ok();
    }
    let mut status = 0_i32;
    let flags = (libc::WNOHANG | libc::WUNTRACED) as usize;
    let look = [behind as usize, &raw mut status as usize, flags, 0, 0, 0];
    let behind_lives = sys::call(libc::SYS_wait4, look) == Ok(0);
    sys::kill(behind, libc::SIGKILL).ok();
    sys::wait(behind);
    json!({ "front": ends, "behind lives": behind_lives })
}

/// A child that waits in a group of its own.
fn group() -> Result<i32, i32> {
    let child = sys::spawn(|| {
        sys::call(libc::SYS_setpgid, [0; 6]).ok();
        sys::pause()
    })?;
    // Whoever of the two is first.
    sys::call(libc::SYS_setpgid, [child as usize, child as usize, 0, 0, 0, 0]).ok();
    Ok(child)
}

fn foreground(group: i32) -> sys::Answer {
    let pointer = &raw const group as usize;
    sys::call(libc::SYS_ioctl, [0, libc::TIOCSPGRP as usize, pointer, 0, 0, 0])
}
