//! The agent's program, carried inside this one.

use std::{
    fs::File,
    io::{self, Write as _},
    os::fd::OwnedFd,
    sync::OnceLock,
};

use rustix::{
    fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create},
    io::Errno,
};

static BYTES: &[u8] = include_bytes!(env!("ATOLL_AGENT"));

/// The agent: a static ELF program.
pub fn agent_bytes() -> &'static [u8] {
    BYTES
}

/// A descriptor of the agent's program, in memory and sealed: nobody can change it, and all
/// sandboxes share its pages.
///
/// It is close-on-exec, which does not hinder running it: `execveat` with an empty path, or
/// `execve` of `/proc/self/fd/N`, opens the program before descriptors are closed (only a script
/// would be gone by then). Pass it on to another process as any descriptor.
pub fn agent_memfd() -> io::Result<OwnedFd> {
    static PROGRAM: OnceLock<OwnedFd> = OnceLock::new();

    if let Some(program) = PROGRAM.get() {
        return program.try_clone();
    }
    let made = sealed(BYTES)?;
    // Two threads may both have made one; either will do.
    PROGRAM.get_or_init(|| made).try_clone()
}

fn sealed(bytes: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Kernels before 6.3 know no such flag and make every such file executable.
    let descriptor = match memfd_create("atoll-agent", flags | MemfdFlags::EXEC) {
        Err(Errno::INVAL) => memfd_create("atoll-agent", flags)?,
        other => other?,
    };
    let mut file = File::from(descriptor);
    file.write_all(bytes)?;
    fcntl_add_seals(
        &file,
        SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL,
    )?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn the_agent_is_a_static_program() {
        let bytes = agent_bytes();

        assert!(bytes.starts_with(b"\x7fELF"));
        let interpreter = b"/lib/ld-musl";
        assert!(!bytes.windows(interpreter.len()).any(|window| window == interpreter));
    }

    #[test]
    fn the_descriptor_can_be_run_and_not_written() {
        let program = agent_memfd().unwrap();
        let path = format!("/proc/self/fd/{}", program.as_raw_fd());

        assert!(File::from(program.try_clone().unwrap()).write_all(b"x").is_err());
        rustix::fs::access(path, rustix::fs::Access::EXEC_OK).unwrap();
    }
}
