//! The one place where the probe talks to the kernel by number.
//!
//! A probe makes calls no library would make, with arguments nobody would pass. Each is made in a
//! child of its own, so that one that succeeds, blocks or kills changes nothing but its own report.
#![expect(unsafe_code, reason = "calls by number, forks and raw signals are what a probe is for")]

use std::{
    ffi::c_int,
    ptr,
    sync::atomic::{AtomicI64, Ordering},
};

/// What a call gave: its value or its errno.
pub(crate) type Answer = Result<i64, i32>;

/// What became of a call made in a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Answered(Answer),
    /// The child was killed before it could tell.
    Killed(i32),
    /// The child ended before it could tell.
    Exited,
    /// The child stopped, as a traced process does.
    Stopped,
}

/// Makes one system call. The caller answers for pointers among the arguments.
pub(crate) fn call(number: i64, arguments: [usize; 6]) -> Answer {
    let [one, two, three, four, five, six] = arguments;
    // SAFETY: the probe passes null or pointers to live buffers; anything else is the point of it.
    let value = unsafe { libc::syscall(number, one, two, three, four, five, six) };
    if value == -1 { Err(errno()) } else { Ok(value) }
}

pub(crate) fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// A page that a child shares with its parent.
#[derive(Clone, Copy)]
struct Slot(&'static [AtomicI64; 2]);

impl Slot {
    fn new() -> Self {
        // SAFETY: an anonymous mapping of one page, never unmapped, zeroed by the kernel, which is
        // a valid pair of atomics.
        let page = unsafe {
            libc::mmap(
                ptr::null_mut(),
                4096,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(page, libc::MAP_FAILED, "no memory for a page");
        // SAFETY: as above; the mapping lives as long as the process.
        Self(unsafe { &*page.cast() })
    }

    fn put(self, answer: Answer) {
        let (kind, value) = match answer {
            Ok(value) => (1, value),
            Err(errno) => (2, i64::from(errno)),
        };
        self.0[1].store(value, Ordering::SeqCst);
        self.0[0].store(kind, Ordering::SeqCst);
    }

    fn take(self) -> Option<Answer> {
        let value = self.0[1].load(Ordering::SeqCst);
        match self.0[0].load(Ordering::SeqCst) {
            1 => Some(Ok(value)),
            2 => Some(Err(i32::try_from(value).unwrap_or(0))),
            _ => None,
        }
    }
}

/// Runs `body` in a child and returns what it answered, or how it went.
pub(crate) fn isolated(body: impl FnOnce() -> Answer) -> Outcome {
    let slot = Slot::new();
    let child = fork();
    let child = match child {
        Ok(0) => {
            slot.put(body());
            leave(0)
        }
        Ok(child) => child,
        Err(errno) => return Outcome::Answered(Err(errno)),
    };
    let mut status = 0;
    loop {
        // SAFETY: `status` outlives the call; the child is ours and not yet reaped.
        if unsafe { libc::waitpid(child, &raw mut status, 0) } == child {
            break;
        }
    }
    let answer = slot.take().map(Outcome::Answered);
    // SAFETY: the page was mapped by `Slot::new` and nobody uses it any more.
    unsafe { libc::munmap(ptr::from_ref(slot.0).cast_mut().cast(), 4096) };
    if libc::WIFSTOPPED(status) {
        kill(child, libc::SIGKILL).ok();
        wait(child);
        return answer.unwrap_or(Outcome::Stopped);
    }
    if libc::WIFSIGNALED(status) {
        return answer.unwrap_or(Outcome::Killed(libc::WTERMSIG(status)));
    }
    answer.unwrap_or(Outcome::Exited)
}

/// Ends this process at once by the plainest call there is.
pub(crate) fn leave(code: usize) -> ! {
    loop {
        // SAFETY: exit(2) takes an integer.
        unsafe { libc::syscall(libc::SYS_exit, code) };
    }
}

/// Forks. The probe has one thread wherever it does.
pub(crate) fn fork() -> Result<i32, i32> {
    // SAFETY: the probe forks only while it has one thread.
    let child = unsafe { libc::fork() };
    if child < 0 { Err(errno()) } else { Ok(child) }
}

/// Forks a child that runs `body` and ends with its value.
pub(crate) fn spawn(body: impl FnOnce() -> usize) -> Result<i32, i32> {
    match fork()? {
        0 => leave(body()),
        child => Ok(child),
    }
}

/// Waits for a child's end and returns its raw status.
pub(crate) fn wait(child: i32) -> i32 {
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    while unsafe { libc::waitpid(child, &raw mut status, 0) } < 0 && errno() == libc::EINTR {}
    status
}

pub(crate) fn kill(process: i32, signal: i32) -> Answer {
    // SAFETY: kill(2) takes integers.
    if unsafe { libc::kill(process, signal) } < 0 { Err(errno()) } else { Ok(0) }
}

pub(crate) fn pause() -> ! {
    loop {
        // SAFETY: pause(2) takes nothing.
        unsafe { libc::pause() };
    }
}

extern "C" fn nothing(_: c_int) {}

/// Makes every blocking call of this process return `EINTR` before long.
pub(crate) fn interrupt_often() {
    handle(libc::SIGALRM, Some(nothing));
    let often = libc::timeval { tv_sec: 0, tv_usec: 20_000 };
    let timer = libc::itimerval { it_interval: often, it_value: often };
    // SAFETY: both pointers are to live values or null.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, ptr::null_mut()) };
}

/// Sets what a signal does: a handler, or nothing at all.
pub(crate) fn handle(signal: i32, handler: Option<extern "C" fn(c_int)>) -> i32 {
    // SAFETY: a zeroed sigaction is a valid one without flags; the handlers are async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler.map_or(libc::SIG_IGN, |handler| handler as usize);
        libc::sigaction(signal, &raw const action, ptr::null_mut())
    }
}

/// `vfork` shares its caller's stack, so the child must end before it touches it.
#[cfg(target_arch = "x86_64")]
pub(crate) fn vfork() -> Answer {
    let value: i64;
    // SAFETY: the child of the call exits by the next instructions, without using the stack.
    unsafe {
        core::arch::asm!(
            "syscall", "test rax, rax", "jnz 2f", "mov edi, 0", "mov eax, 60", "syscall", "2:",
            inlateout("rax") libc::SYS_vfork => value,
            out("rcx") _, out("r11") _, out("rdi") _,
        );
    }
    if value < 0 { Err(i32::try_from(-value).unwrap_or(0)) } else { Ok(value) }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn vfork() -> Answer {
    Err(libc::ENOSYS)
}

/// Calls through the 32-bit gate, with zeroes; as if refused where the processor has no such gate.
#[cfg(target_arch = "x86_64")]
pub(crate) fn legacy_call(number: i32) -> Answer {
    let value: i64;
    // SAFETY: rbx, which the compiler keeps for itself, is restored; the kernel may clear r8-r11.
    unsafe {
        core::arch::asm!(
            "mov {keep}, rbx", "xor ebx, ebx", "int 0x80", "mov rbx, {keep}",
            keep = out(reg) _,
            inlateout("rax") i64::from(number) => value,
            inlateout("rcx") 0_i64 => _, inlateout("rdx") 0_i64 => _,
            inlateout("rsi") 0_i64 => _, inlateout("rdi") 0_i64 => _,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    let value = i64::from(value as i32);
    if value < 0 { Err(i32::try_from(-value).unwrap_or(0)) } else { Ok(value) }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn legacy_call(_: i32) -> Answer {
    Err(libc::ENOSYS)
}

/// Seconds of processor time of this process alone.
pub(crate) fn processor_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
