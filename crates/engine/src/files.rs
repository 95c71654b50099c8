//! The files of a sandbox.

use async_trait::async_trait;
use atoll_types::file::{Entry, Listing};
use bytes::Bytes;
use futures_util::stream::BoxStream;

use crate::Result;

/// The content of a file on its way. An error is final.
pub type ByteStream = BoxStream<'static, Result<Bytes>>;

/// Files as the sandbox's own user sees them.
///
/// Paths are the guest's, absolute or relative to the home directory. Links are followed as the
/// guest would follow them, inside: there is no path to anything the guest cannot reach itself.
/// A path that is empty or holds a NUL is [`Invalid`](crate::ErrorKind::Invalid); one that the
/// guest may not use is [`Denied`](crate::ErrorKind::Denied).
#[async_trait]
pub trait Files: Send + Sync {
    /// Opens a regular file for reading, of any size.
    ///
    /// - Anything else (a directory, a pipe, a device) is [`Invalid`](crate::ErrorKind::Invalid),
    ///   at once.
    /// - Ends at the length the file had when it was opened, should it grow.
    async fn read(&self, path: &str) -> Result<ByteStream>;

    /// Writes a whole file, making the directories it needs.
    ///
    /// - The new content replaces the old in one step; until then, and for ever if the call fails,
    ///   is dropped, or `content` ends in an error, the old one stays and nothing else is left.
    /// - An existing file keeps its permission bits; a new one has 0644.
    /// - Over a directory or anything that is no regular file: [`Invalid`](crate::ErrorKind::Invalid).
    /// - No room: [`Exhausted`](crate::ErrorKind::Exhausted).
    async fn write(&self, path: &str, content: ByteStream) -> Result<()>;

    /// What a directory holds, by name, as far as one answer may be long.
    async fn list(&self, path: &str) -> Result<Listing>;

    /// What a path names; a link is told as a link.
    async fn stat(&self, path: &str) -> Result<Entry>;

    /// Makes a directory and those it needs; one that is there is fine.
    async fn make_directory(&self, path: &str) -> Result<()>;

    /// Moves a file or directory, within the sandbox, replacing a file that is there.
    async fn rename(&self, from: &str, to: &str) -> Result<()>;

    /// Copies a regular file, its permission bits too, as [`write`](Self::write) would.
    async fn copy(&self, from: &str, to: &str) -> Result<()>;

    /// Removes a file, a link itself, or a directory with all it holds.
    async fn remove(&self, path: &str) -> Result<()>;

    /// Sets the permission bits (0 to 0o777).
    async fn set_mode(&self, path: &str, mode: u32) -> Result<()>;

    /// Packs a directory, or one regular file, as a tar archive.
    ///
    /// - Files, directories and links, as links, with permission bits (no set-id) and times of
    ///   change in seconds; hard links as such, as far as they can be remembered. Names are
    ///   relative to the directory. No link below the path is followed.
    /// - Pipes, sockets, devices, what the guest may not read, the kernel's own file systems and
    ///   files that are little but holes are left out; a comment at the archive's end tells.
    /// - A file that grows is cut to the length it had when it was reached; one that shrinks is
    ///   filled up with zeros, and told.
    /// - A stream that ends in an error is no archive: it has no end mark.
    async fn pack(&self, path: &str) -> Result<ByteStream>;

    /// Unpacks a plain tar archive into a directory, which is made if it is not there.
    ///
    /// - A name that is absolute, holds `..`, or leads through a link, a hard link to something
    ///   outside, a device or a pipe: [`Denied`](crate::ErrorKind::Denied). What is no archive, is
    ///   compressed, or ends before its end mark: [`Invalid`](crate::ErrorKind::Invalid). No room:
    ///   [`Exhausted`](crate::ErrorKind::Exhausted). The message names the entry.
    /// - A file or link replaces a file or link in one step; a directory that is there keeps its
    ///   mode. Set-id bits are dropped.
    /// - After a failure, and when dropped, entries that were whole stay and nothing else does.
    async fn unpack(&self, path: &str, archive: ByteStream) -> Result<()>;
}
