//! F15: verbs that find, change, pack and unpack, with the paths every other verb is tried with.

use std::sync::Arc;

use anyhow::Result;
use atoll_engine::{Edit, Files, Glob, Grep};
use bytes::Bytes;
use futures_util::StreamExt as _;

use super::corpus;
use crate::{
    check::{Check, check, claim},
    ground::PATIENCE,
    stage::{Stage, Yard},
};

const NAIVE: &str = "a service that resolves paths on the host";

/// The most that is read of an archive: far more than the secrets are long.
const MUCH: usize = 4 << 20;

pub(super) fn checks() -> Vec<Check> {
    vec![
        check("F15", "finding_names_leads_nowhere_else", |stage| tried(stage, Verb::Glob))
            .against(NAIVE),
        check("F15", "finding_lines_leads_nowhere_else", |stage| tried(stage, Verb::Grep))
            .against(NAIVE),
        check("F15", "editing_leads_nowhere_else", |stage| tried(stage, Verb::Edit)).against(NAIVE),
        check("F15", "packing_leads_nowhere_else", |stage| tried(stage, Verb::Pack)).against(NAIVE),
        check("F15", "unpacking_leads_nowhere_else", |stage| tried(stage, Verb::Unpack))
            .against(NAIVE),
    ]
}

#[derive(Debug, Clone, Copy)]
enum Verb {
    Glob,
    Grep,
    Edit,
    Pack,
    Unpack,
}

async fn tried(stage: Arc<Stage>, verb: Verb) -> Result<()> {
    let yard = stage.yard(stage.usual()).await?;
    yard.shell(&corpus::make_links(&stage.canary)).await?;
    let directory = stage.canary.directory().display().to_string();
    let odd = corpus::odd(&stage.canary);
    let paths = corpus::LINKS.iter().map(|path| (*path).to_owned()).chain(odd).chain([directory]);
    for path in paths {
        let attempt = tokio::time::timeout(PATIENCE, attempt(&stage, &yard, verb, &path)).await;
        attempt.unwrap_or_else(|_| claim(false, || format!("{verb:?} {path:?} does not end")))?;
        stage.canary.unchanged()?;
    }
    Ok(())
}

/// One verb, one path. What it answers is the guest's own affair, as long as it tells no secret.
async fn attempt(stage: &Stage, yard: &Yard, verb: Verb, path: &str) -> Result<()> {
    let (files, canary) = (yard.files(), &stage.canary);
    let what = format!("the answer to {verb:?} of {path:?}");
    match verb {
        Verb::Glob => {
            let inside = Glob { pattern: "**".into(), path: Some(path.into()), ..Glob::default() };
            let pattern = Glob { pattern: format!("{path}/*"), ..Glob::default() };
            for glob in [inside, pattern] {
                let found = files.glob(&glob).await;
                canary.absent_from(&what, format!("{found:?}").as_bytes())?;
            }
        }
        Verb::Grep => {
            let grep = Grep {
                pattern: ".".into(),
                path: Some(path.into()),
                hidden: true,
                ..Grep::default()
            };
            let found = files.grep(&grep).await;
            canary.absent_from(&what, format!("{found:?}").as_bytes())?;
        }
        Verb::Edit => edit(files, path).await,
        Verb::Pack => {
            let Ok(mut archive) = files.pack(path).await else { return Ok(()) };
            let mut packed = Vec::new();
            while let Some(Ok(piece)) = archive.next().await {
                packed.extend_from_slice(&piece);
                if packed.len() > MUCH {
                    break;
                }
            }
            canary.absent_from(&what, &packed)?;
        }
        Verb::Unpack => unpack(stage, files, path).await,
    }
    Ok(())
}

/// Whatever the secret is, one of these is in it.
async fn edit(files: &dyn Files, path: &str) {
    for digit in "0123456789abcdef".chars() {
        let edit =
            Edit { old: digit.into(), new: "guest".into(), replace_all: true, ..Edit::default() };
        let _ = files.edit(path, &[edit]).await;
    }
}

/// An archive into this place, and archives whose own names lead to the secrets.
async fn unpack(stage: &Stage, files: &dyn Files, path: &str) {
    let canary = stage.canary.directory().display().to_string();
    let up = "../".repeat(20);
    let file = b'0';
    let archives = [
        vec![entry("new", file, "")],
        vec![entry(&format!("{up}{canary}/new"), file, "")],
        vec![entry(&format!("{canary}/readable"), file, "")],
        vec![entry("way", b'2', &canary), entry("way/new", file, "")],
        vec![entry("way", b'2', &format!("{canary}/readable")), entry("way", file, "")],
        vec![entry("hard", b'1', &format!("{canary}/readable")), entry("hard", file, "")],
        vec![entry("hard", b'1', &format!("{up}{canary}/readable"))],
    ];
    for archive in archives {
        let mut bytes = archive.concat();
        bytes.resize(bytes.len() + 1024, 0);
        let stream = futures_util::stream::iter([Ok(Bytes::from(bytes))]).boxed();
        let _ = files.unpack(path, stream).await;
    }
}

/// A header and, for a file, its content.
fn entry(name: &str, kind: u8, target: &str) -> Vec<u8> {
    let content: &[u8] = if kind == b'0' { b"from an archive" } else { b"" };
    let mut block = vec![0_u8; 512];
    let mut put = |at: usize, most: usize, text: &[u8]| {
        let count = text.len().min(most);
        block[at..at + count].copy_from_slice(&text[..count]);
    };
    put(0, 100, name.as_bytes());
    put(100, 8, b"0000644\0");
    put(108, 8, b"0000000\0");
    put(116, 8, b"0000000\0");
    put(124, 12, format!("{:011o}\0", content.len()).as_bytes());
    put(136, 12, b"00000000000\0");
    put(148, 8, b"        ");
    put(156, 1, &[kind]);
    put(157, 100, target.as_bytes());
    put(257, 8, b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block.extend_from_slice(content);
    block.resize(block.len().next_multiple_of(512), 0);
    block
}
