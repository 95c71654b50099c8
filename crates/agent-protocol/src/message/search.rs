//! Messages about finding files and lines, and changing text.

#[derive(Clone, PartialEq, prost::Message)]
pub struct Glob {
    #[prost(string, tag = "1")]
    pub pattern: String,
    #[prost(string, tag = "2")]
    pub path: String,
    #[prost(bool, tag = "3")]
    pub hidden: bool,
    #[prost(uint32, tag = "4")]
    pub limit: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Grep {
    #[prost(string, tag = "1")]
    pub pattern: String,
    #[prost(string, tag = "2")]
    pub path: String,
    #[prost(string, optional, tag = "3")]
    pub glob: Option<String>,
    #[prost(bool, tag = "4")]
    pub literal: bool,
    #[prost(bool, tag = "5")]
    pub ignore_case: bool,
    #[prost(bool, tag = "6")]
    pub hidden: bool,
    #[prost(uint32, tag = "7")]
    pub context: u32,
    #[prost(uint32, tag = "8")]
    pub limit: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Match {
    #[prost(bytes = "vec", tag = "1")]
    pub path: Vec<u8>,
    #[prost(uint64, tag = "2")]
    pub line: u64,
    #[prost(uint64, tag = "3")]
    pub column: u64,
    #[prost(uint64, tag = "4")]
    pub length: u64,
    #[prost(bytes = "vec", tag = "5")]
    pub text: Vec<u8>,
    #[prost(bool, tag = "6")]
    pub cut: bool,
    #[prost(bytes = "vec", repeated, tag = "7")]
    pub before: Vec<Vec<u8>>,
    #[prost(bytes = "vec", repeated, tag = "8")]
    pub after: Vec<Vec<u8>>,
}

/// The end of a search.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Searched {
    #[prost(bool, tag = "1")]
    pub truncated: bool,
    #[prost(uint64, tag = "2")]
    pub searched: u64,
    #[prost(uint64, tag = "3")]
    pub binary: u64,
    #[prost(uint64, tag = "4")]
    pub unreadable: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct EditFile {
    #[prost(string, tag = "1")]
    pub path: String,
    #[prost(message, repeated, tag = "2")]
    pub edits: Vec<Edit>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Edit {
    #[prost(string, tag = "1")]
    pub old: String,
    #[prost(string, tag = "2")]
    pub new: String,
    #[prost(bool, tag = "3")]
    pub replace_all: bool,
    #[prost(uint64, optional, tag = "4")]
    pub expected: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Edited {
    #[prost(uint64, tag = "1")]
    pub replaced: u64,
    #[prost(uint64, tag = "2")]
    pub size: u64,
}
