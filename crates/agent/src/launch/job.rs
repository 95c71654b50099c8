//! What a keeper needs to know to start its command.

use std::{io, os::fd::OwnedFd};

use prost::Message;
use rustix::{
    fs::{MemfdFlags, SeekFrom, memfd_create, seek},
    io::{read, write},
};

/// One command, with every choice made.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Job {
    #[prost(string, repeated, tag = "1")]
    pub(crate) argv: Vec<String>,
    /// All of it, `KEY=VALUE`.
    #[prost(string, repeated, tag = "2")]
    pub(crate) env: Vec<String>,
    /// Absolute.
    #[prost(string, tag = "3")]
    pub(crate) directory: String,
    /// Its streams are a terminal, which is to be its controlling one.
    #[prost(bool, tag = "4")]
    pub(crate) terminal: bool,
}

impl Job {
    /// Puts it into a file without a name, since a packet could not hold it.
    pub(crate) fn to_file(&self) -> io::Result<OwnedFd> {
        let file = memfd_create("job", MemfdFlags::CLOEXEC)?;
        let bytes = self.encode_to_vec();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let count = write(&file, rest)?;
            rest = &rest[count..];
        }
        seek(&file, SeekFrom::Start(0))?;
        Ok(file)
    }

    pub(crate) fn from_file(file: &OwnedFd) -> io::Result<Self> {
        let mut bytes = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            match read(file, &mut buffer)? {
                0 => break,
                count => bytes.extend_from_slice(&buffer[..count]),
            }
        }
        Self::decode(&bytes[..]).map_err(io::Error::other)
    }
}
