//! Finding files and lines in them, and changing text in place.

use serde::{Deserialize, Serialize};

/// Body of `POST …/files/glob`: which names to find.
///
/// `*` and `?` stand for signs within a name, `[a-z]` and `[!a-z]` for one of a set, `{a,b}` for
/// either, `**` as a whole part for any number of directories; `\` takes the next sign as it is.
/// Names that begin with a dot are found by parts that do, or with `hidden`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Glob {
    /// Relative to `path`.
    pub pattern: String,
    /// The directory to look in; the home directory if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Wildcards stand for names that begin with a dot, too.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hidden: bool,
    /// How many to tell at most; 1000 if absent, 10000 at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Body of `POST …/files/grep`: which lines to find.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Grep {
    /// A regular expression, as Rust's `regex` has them: no look-around, no back-references.
    pub pattern: String,
    /// The file, or the directory whose files are searched; the home directory if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Only files this matches, as in `Glob`: their name or, if it holds a `/`, their path
    /// relative to `path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub glob: Option<String>,
    /// The pattern is text, not a regular expression.
    #[serde(default, skip_serializing_if = "is_false")]
    pub literal: bool,
    /// Upper and lower case are the same.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ignore_case: bool,
    /// Look into files and directories whose names begin with a dot, too.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hidden: bool,
    /// Lines to tell before and after each, 10 at most.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub context: u32,
    /// How many lines to tell at most; 1000 if absent, 10000 at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// What a search found, in the order of a walk by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Matches {
    pub matches: Vec<Match>,
    /// There may be more: a limit of number, size or time was reached.
    pub truncated: bool,
    /// Files looked into.
    pub searched: u64,
    /// Files left, wholly or from a zero byte on, because they are no text.
    pub binary: u64,
    /// Files and directories that could not be read.
    pub unreadable: u64,
}

/// A line in which something was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Match {
    pub path: String,
    /// From 1.
    pub line: u64,
    /// The byte of the line where the first match begins, from 1.
    pub column: u64,
    /// How many bytes long the first match is.
    pub length: u64,
    /// The line without its end; bytes that are no UTF-8 are replaced.
    pub text: String,
    /// `text` is only a piece of a long line.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cut: bool,
    /// The lines before it, as far as they were asked for; long ones are cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
}

/// Body of `POST …/files/edit`: text to replace, all of it or none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct EditFile {
    pub path: String,
    /// One after another, each on what the one before it left.
    pub edits: Vec<Edit>,
}

/// One text to put in place of another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// As it is in the file, to the last space. There once, unless `replace_all` says otherwise.
    pub old: String,
    pub new: String,
    /// Wherever it is, at least once.
    #[serde(default, skip_serializing_if = "is_false")]
    pub replace_all: bool,
    /// Exactly so many times, or nothing is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<u64>,
}

/// The answer of `POST …/files/edit`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Edited {
    /// How many places were replaced, by all edits together.
    pub replaced: u64,
    /// The file's size now.
    pub size: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(value: &u32) -> bool {
    *value == 0
}
