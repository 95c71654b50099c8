//! Processes that multiply, hide, or will not go (C).

use std::{
    fs,
    io::Write as _,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{privilege::text, sys, word};

/// Forks until it may not or has so many children at once (C01).
pub(crate) fn forks(most: usize) -> Value {
    let mut children = Vec::new();
    let mut error = None;
    while children.len() < most && error.is_none() {
        match sys::spawn(|| sys::pause()) {
            Ok(child) => children.push(child),
            Err(errno) => error = Some(word::errno(errno)),
        }
    }
    let made = children.len();
    for child in &children {
        sys::kill(*child, libc::SIGKILL).ok();
    }
    for child in children {
        sys::wait(child);
    }
    json!({ "made": made, "error": error })
}

/// Threads, likewise (C02).
pub(crate) fn threads(most: usize) -> Value {
    let mut running: Vec<(mpsc::Sender<()>, thread::JoinHandle<()>)> = Vec::new();
    let mut error = None;
    while running.len() < most && error.is_none() {
        let (stop, stopped) = mpsc::channel::<()>();
        let body = move || {
            stopped.recv().ok();
        };
        match thread::Builder::new().stack_size(64 << 10).spawn(body) {
            Ok(handle) => running.push((stop, handle)),
            Err(refused) => error = Some(word::io::<()>(Err(refused))),
        }
    }
    let made = running.len();
    for (stop, handle) in running {
        drop(stop);
        handle.join().ok();
    }
    json!({ "made": made, "error": error })
}

/// Children that end at once, one after the other (C03); the last few stay, if asked to.
pub(crate) fn churn(count: usize, stay: usize) -> Value {
    let mut made = 0;
    for _ in 0..count {
        if let Ok(child) = sys::spawn(|| 0) {
            sys::wait(child);
            made += 1;
        }
    }
    for _ in 0..stay {
        sys::spawn(|| quiet(600)).ok();
    }
    json!({ "made": made })
}

/// Children that have ended and that nobody waits for (C07); or that have not, if asked to.
pub(crate) fn zombies(count: usize, living: bool) -> Value {
    let made =
        (0..count).filter_map(|_| sys::spawn(|| if living { quiet(600) } else { 0 }).ok()).count();
    json!({ "made": made })
}

/// Lives on with no descriptor that anybody waits for.
fn quiet(seconds: u64) -> usize {
    for descriptor in 0..3 {
        sys::call(libc::SYS_close, [descriptor, 0, 0, 0, 0, 0]).ok();
    }
    thread::sleep(Duration::from_secs(seconds));
    0
}

/// A daemon, in its own session and without its parent; the caller tells its number and stays or
/// goes (C04, C05, C06).
pub(crate) fn daemon(seconds: u64, has: impl Fn(&str) -> bool) {
    let Ok((reader, mut writer)) = std::io::pipe() else { return };
    let child = sys::spawn(|| {
        sys::call(libc::SYS_setsid, [0; 6]).ok();
        sys::spawn(|| {
            if has("disguised") {
                disguise();
            }
            writer.write_all(format!("{}\n", std::process::id()).as_bytes()).ok();
            if has("holding") {
                let until = Instant::now() + Duration::from_secs(seconds);
                while Instant::now() < until {
                    thread::sleep(Duration::from_millis(50));
                }
                0
            } else {
                quiet(seconds)
            }
        })
        .ok();
        0
    });
    if let Ok(child) = child {
        sys::wait(child);
    }
    let mut number = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(reader), &mut number).ok();
    println!("{}", json!({ "daemon": number.trim().parse::<i32>().ok() }));
    if has("staying") {
        thread::sleep(Duration::from_secs(seconds));
    }
}

/// Another name, another group, other descriptors.
fn disguise() {
    sys::call(libc::SYS_setsid, [0; 6]).ok();
    sys::call(libc::SYS_setpgid, [0; 6]).ok();
    let name = text("kworker/0:1");
    sys::call(libc::SYS_prctl, [libc::PR_SET_NAME as usize, name, 0, 0, 0, 0]).ok();
    sys::call(libc::SYS_prctl, [libc::PR_SET_CHILD_SUBREAPER as usize, 1, 0, 0, 0, 0]).ok();
    sys::call(libc::SYS_prctl, [libc::PR_SET_PDEATHSIG as usize, 0, 0, 0, 0, 0]).ok();
    for signal in 1..=64 {
        sys::handle(signal, None);
    }
    let null = sys::call(
        libc::SYS_openat,
        [libc::AT_FDCWD as usize, text("/dev/null"), libc::O_RDWR as usize, 0, 0, 0],
    );
    for descriptor in 0..3 {
        if let Ok(null) = null {
            sys::call(libc::SYS_dup2, [null as usize, descriptor, 0, 0, 0, 0]).ok();
        }
    }
    std::env::set_current_dir("/").ok();
}

/// Chains of processes that each fork their successor and end (C08).
pub(crate) fn refork(chains: usize, seconds: u64, stay: bool) {
    let until = Instant::now() + Duration::from_secs(seconds);
    for _ in 0..chains {
        sys::spawn(move || {
            for descriptor in 0..3 {
                sys::call(libc::SYS_close, [descriptor, 0, 0, 0, 0, 0]).ok();
            }
            sys::call(libc::SYS_setsid, [0; 6]).ok();
            while Instant::now() < until {
                thread::sleep(Duration::from_millis(1));
                match sys::fork() {
                    Ok(0) | Err(_) => {}
                    Ok(_) => return 0,
                }
            }
            0
        })
        .ok();
    }
    println!("{}", json!({ "chains": chains }));
    if stay {
        thread::sleep(Duration::from_secs(seconds));
    }
}

/// Forks until a child has the number `wanted`; that child stays until our input ends (C09).
pub(crate) fn reuse(wanted: i32, seconds: u64) {
    println!("forking");
    let until = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < until {
        let Ok((reader, writer)) = std::io::pipe() else { return };
        match sys::fork() {
            Ok(0) => {
                let own = i32::try_from(std::process::id()).unwrap_or(0);
                drop(writer);
                if own == wanted {
                    std::io::Read::read(&mut &reader, &mut [0]).ok();
                }
                sys::leave(0);
            }
            Ok(child) if child == wanted => {
                println!("{}", json!({ "reused": child }));
                std::io::stdin().read_line(&mut String::new()).ok();
                drop(writer);
                let status = sys::wait(child);
                println!("{}", json!({ "killed": libc::WIFSIGNALED(status) }));
                return;
            }
            Ok(child) => {
                drop(writer);
                sys::wait(child);
            }
            Err(_) => {}
        }
    }
    println!("{}", json!({ "reused": null }));
}

/// Writes an ever larger number to a file (I3).
pub(crate) fn heartbeat(path: &str) {
    let scratch = format!("{path}.next");
    for beat in 0_u64.. {
        let written = fs::write(&scratch, beat.to_string());
        if written.and_then(|()| fs::rename(&scratch, path)).is_err() {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
}
