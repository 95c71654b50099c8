//! The files of a sandbox.

use async_trait::async_trait;
use atoll_types::{
    file::{Entry, Listing},
    search::{Edit, Edited, Glob, Grep, Matches},
    watch::Change,
};
use bytes::Bytes;
use futures_util::stream::BoxStream;

use crate::Result;

/// The content of a file on its way. An error is final.
pub type ByteStream = BoxStream<'static, Result<Bytes>>;

/// What happens to files, as it happens. An error is final.
pub type Changes = BoxStream<'static, Result<Change>>;

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

    /// What happens in a directory, from the moment this returns until the stream is dropped.
    ///
    /// - With `recursive`, in every directory below it too, also those made later; what was in
    ///   them before they could be watched is told as created. Links are not followed.
    /// - What is no directory is [`Invalid`](crate::ErrorKind::Invalid).
    /// - A file written through these calls is told as created or written, once it is in place.
    /// - Nothing is left out in silence: events that were lost, because a reader was slow or too
    ///   much happened at once, are told as [`Change::Overflow`], directories beyond what can be
    ///   watched as [`Change::Unwatched`].
    /// - Ends after the directory itself is told as removed, which it also is when it was moved.
    /// - More watches than a sandbox may have are [`Exhausted`](crate::ErrorKind::Exhausted).
    async fn watch(&self, path: &str, recursive: bool) -> Result<Changes>;

    /// Finds files, directories and links by name, by the rules of [`Glob`].
    ///
    /// - They come in the order of a walk by name, and links are not followed below where it
    ///   begins.
    /// - A pattern that makes no sense is [`Invalid`](crate::ErrorKind::Invalid).
    /// - Where a limit of number, size or time is reached, `truncated` says so.
    async fn glob(&self, glob: &Glob) -> Result<Listing>;

    /// Finds lines in regular files, by the rules of [`Grep`].
    ///
    /// - Only regular files are opened; those with a zero byte are no text, and are counted. Links
    ///   are not followed below where it begins.
    /// - Files of any size are searched, long lines are told cut, in time that grows with the
    ///   files alone.
    /// - A pattern that makes no sense is [`Invalid`](crate::ErrorKind::Invalid), and says where.
    /// - Where a limit of number, size or time is reached, `truncated` says so.
    async fn grep(&self, grep: &Grep) -> Result<Matches>;

    /// Replaces text in a regular file of moderate size, as [`write`](Self::write) would.
    ///
    /// - All edits are done, or none.
    /// - Text that is not there, or more than once without `replace_all`, or not as often as
    ///   `expected`, is [`Invalid`](crate::ErrorKind::Invalid), and the message counts.
    /// - A file that somebody else changes meanwhile is
    ///   [`AlreadyExists`](crate::ErrorKind::AlreadyExists), which callers are told as a conflict.
    /// - A file that is too large is [`Exhausted`](crate::ErrorKind::Exhausted).
    async fn edit(&self, path: &str, edits: &[Edit]) -> Result<Edited>;
}
