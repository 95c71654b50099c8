//! What has to be got before a sandbox can be made, and how far that has come.

/// One step on the way, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// The part this is about, where there are several: a layer of an image.
    pub part: Option<String>,
    /// What is being done. Words of another program, perhaps: not to be trusted by terminals.
    pub doing: String,
    /// Bytes of the part that are done, and that there are.
    pub done: Option<u64>,
    pub total: Option<u64>,
}

/// Who is told of each step. Must not wait.
pub type Report<'a> = &'a (dyn Fn(Progress) + Send + Sync);
