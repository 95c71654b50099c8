//! Messages about what happens to files.

#[derive(Clone, PartialEq, prost::Message)]
pub struct Watch {
    #[prost(string, tag = "1")]
    pub path: String,
    #[prost(bool, tag = "2")]
    pub recursive: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Change {
    #[prost(enumeration = "ChangeKind", tag = "1")]
    pub kind: i32,
    /// Empty for an overflow.
    #[prost(bytes = "vec", tag = "2")]
    pub path: Vec<u8>,
    /// Where it was before it moved.
    #[prost(bytes = "vec", tag = "3")]
    pub from: Vec<u8>,
    #[prost(bool, tag = "4")]
    pub directory: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum ChangeKind {
    /// Events were lost.
    Overflow = 0,
    Created = 1,
    Written = 2,
    Removed = 3,
    Moved = 4,
    Attributes = 5,
    /// A directory that is not watched, the first of perhaps many.
    Unwatched = 6,
}
