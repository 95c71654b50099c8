//! Programs that use too much: time, memory, disk (A, B, E).

use std::{
    fs,
    io::{Read as _, Write as _},
    os::fd::AsRawFd as _,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{privilege::text, sys, word};

/// Burns processor time in so many threads for so long (A01, A04).
pub(crate) fn spin(seconds: u64, threads: usize) {
    let until = Instant::now() + Duration::from_secs(seconds);
    let burn = move || {
        while Instant::now() < until {
            std::hint::black_box(until);
        }
    };
    let others: Vec<_> = (1..threads).map(|_| thread::spawn(burn)).collect();
    burn();
    for other in others {
        other.join().ok();
    }
}

/// Ignores every signal that can be ignored, then waits (A03).
pub(crate) fn stubborn(seconds: u64) {
    for signal in 1..=64 {
        sys::handle(signal, None);
    }
    println!("ready");
    let until = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < until {
        thread::sleep(Duration::from_millis(100));
    }
}

/// Many children, each of which burns little; together they burn so many seconds (A05).
pub(crate) fn short_children(seconds: f64) {
    let mut burnt = 0.0;
    while burnt < seconds {
        let child = sys::spawn(|| {
            while sys::processor_seconds() < 0.05 {}
            0
        });
        if let Ok(child) = child {
            sys::wait(child);
            burnt += 0.05;
        }
    }
}

/// Stops its children and itself; somebody wakes it after so long, should it still live (A06).
pub(crate) fn stopped(seconds: u64) {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let stopped: Vec<i32> = (0..3)
        .filter_map(|_| {
            sys::spawn(|| {
                sys::kill(i32::try_from(std::process::id()).unwrap_or(0), libc::SIGSTOP).ok();
                0
            })
            .ok()
        })
        .collect();
    let waker = sys::spawn(move || {
        thread::sleep(Duration::from_secs(seconds));
        sys::kill(own, libc::SIGCONT).ok();
        0
    });
    println!("ready");
    sys::kill(own, libc::SIGSTOP).ok();
    for child in stopped {
        sys::kill(child, libc::SIGKILL).ok();
        sys::wait(child);
    }
    if let Ok(waker) = waker {
        sys::wait(waker);
    }
}

/// Touches so much memory and ends well if it may (B01).
pub(crate) fn allocate(mebibytes: usize) {
    let mut memory = vec![0_u8; mebibytes << 20];
    for page in memory.chunks_mut(4096) {
        page[0] = 1;
    }
    std::hint::black_box(&memory);
    println!("{}", json!({ "touched": mebibytes }));
}

/// So many children that each hold so much at the same time (B05).
pub(crate) fn allocate_together(children: usize, mebibytes: usize) {
    let Ok((mut reader, writer)) = std::io::pipe() else { return };
    let mut pids = Vec::new();
    for _ in 0..children {
        let mut writer = writer.try_clone().ok();
        let child = sys::spawn(move || {
            let mut memory = vec![0_u8; mebibytes << 20];
            for page in memory.chunks_mut(4096) {
                page[0] = 1;
            }
            std::hint::black_box(&memory);
            writer.as_mut().map(|writer| writer.write_all(b"."));
            drop(writer);
            sys::pause()
        });
        pids.extend(child);
    }
    drop(writer);
    // Each child writes one byte when it has all its memory; one that was killed writes none,
    // and is not waited for.
    let mut all = Vec::new();
    let mut byte = [0];
    while all.len() < pids.len() {
        let mut poll = libc::pollfd { fd: reader.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let ready = sys::call(libc::SYS_poll, [&raw mut poll as usize, 1, 100, 0, 0, 0]);
        if ready == Ok(1) && reader.read(&mut byte).is_ok_and(|count| count == 1) {
            all.push(byte[0]);
        }
        let dead = |child: &i32| {
            let flags = (libc::WNOHANG | libc::WNOWAIT | libc::WEXITED) as usize;
            let mut information = [0_u8; 128];
            let pointer = information.as_mut_ptr() as usize;
            let wait = [libc::P_PID as usize, *child as usize, pointer, flags, 0, 0];
            sys::call(libc::SYS_waitid, wait).is_ok() && information[0] != 0
        };
        if pids.iter().any(dead) {
            break;
        }
    }
    for child in &pids {
        sys::kill(*child, libc::SIGKILL).ok();
    }
    let killed = pids.len() - all.len();
    for child in pids {
        sys::wait(child);
    }
    println!("{}", json!({ "held": all.len(), "killed": killed }));
}

/// Writes until it may not or it has written so much; keeps the file (B03, E01).
pub(crate) fn fill(path: &str, mebibytes: u64) -> Value {
    let mut file = match fs::File::create(path) {
        Ok(file) => file,
        Err(error) => return json!({ "written": 0, "error": word::io::<()>(Err(error)) }),
    };
    let block = vec![0x5a_u8; 64 << 10];
    let mut written = 0_u64;
    while written < mebibytes << 20 {
        match file.write(&block) {
            Ok(count) => written += count as u64,
            Err(error) => {
                return json!({ "written": written, "error": word::io::<()>(Err(error)) });
            }
        }
    }
    json!({ "written": written, "error": null })
}

/// Reserves room without writing (E02).
pub(crate) fn reserve(path: &str, bytes: usize) -> Value {
    sys::handle(libc::SIGXFSZ, None);
    let file = match fs::File::create(path) {
        Ok(file) => file,
        Err(error) => return json!({ "reserve": word::io::<()>(Err(error)) }),
    };
    let descriptor = file.as_raw_fd() as usize;
    let answer = sys::call(libc::SYS_fallocate, [descriptor, 0, 0, bytes, 0, 0]);
    json!({ "reserve": word::answer(answer) })
}

/// A long file without content (E02).
pub(crate) fn sparse(path: &str, bytes: u64) -> Value {
    sys::handle(libc::SIGXFSZ, None);
    let result = fs::File::create(path).and_then(|file| file.set_len(bytes));
    json!({ "sparse": word::io(result) })
}

/// Makes empty files until it may not or has made so many (E03).
pub(crate) fn many_files(directory: &str, most: u64) -> Value {
    let made = fs::create_dir_all(directory);
    if let Err(error) = made {
        return json!({ "made": 0, "error": word::io::<()>(Err(error)) });
    }
    let root = text(directory);
    let at = libc::AT_FDCWD as usize;
    let place = sys::call(libc::SYS_openat, [at, root, libc::O_DIRECTORY as usize, 0, 0, 0]);
    let Ok(place) = place else { return json!({ "made": 0, "error": "no directory" }) };
    let mut name = *b"00000000\0";
    for made in 0..most {
        name[..8].copy_from_slice(format!("{made:08}").as_bytes());
        let arguments =
            [place as usize, name.as_ptr() as usize, libc::S_IFREG as usize | 0o600, 0, 0, 0];
        if let Err(errno) = sys::call(libc::SYS_mknodat, arguments) {
            return json!({ "made": made, "error": word::errno(errno) });
        }
    }
    json!({ "made": most, "error": null })
}
