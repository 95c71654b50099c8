//! What one stream of a process has written so far, or the last of it.

use std::collections::VecDeque;

/// Grows in blocks, so that nothing is ever copied to make room.
const BLOCK: usize = 32 << 10;

/// Bytes in order, from the first that is kept on.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Every one is full but the last.
    blocks: VecDeque<Vec<u8>>,
    /// Where the first block begins: whole blocks were dropped before it.
    first: u64,
    length: u64,
}

impl Log {
    /// All that was ever written.
    pub(crate) fn len(&self) -> u64 {
        self.length
    }

    /// How much of it is there.
    pub(crate) fn kept(&self) -> u64 {
        self.length - self.first
    }

    /// Drops the oldest bytes while `most` or more are left, and says how many.
    pub(crate) fn trim(&mut self, most: u64) -> u64 {
        let before = self.first;
        while self.blocks.len() > 1 && self.kept() - BLOCK as u64 >= most {
            self.blocks.pop_front();
            self.first += BLOCK as u64;
        }
        self.first - before
    }

    /// Drops all of it; how much it was is still known.
    pub(crate) fn clear(&mut self) {
        self.blocks = VecDeque::new();
        self.first = self.length;
    }

    pub(crate) fn append(&mut self, mut data: &[u8]) {
        self.length += data.len() as u64;
        while !data.is_empty() {
            let full = self.blocks.back().is_none_or(|block| block.len() == BLOCK);
            if full {
                self.blocks.push_back(Vec::new());
            }
            let Some(block) = self.blocks.back_mut() else { return };
            let count = data.len().min(BLOCK - block.len());
            block.extend_from_slice(&data[..count]);
            data = &data[count..];
        }
    }

    /// What follows `offset`, or the first byte that is kept if that comes later, and where that
    /// is: as much as lies together; empty if nothing does yet.
    pub(crate) fn after(&self, offset: u64) -> (u64, &[u8]) {
        let offset = offset.max(self.first);
        let Ok(index) = usize::try_from(offset - self.first) else { return (offset, &[]) };
        let block = self.blocks.get(index / BLOCK);
        (offset, block.and_then(|block| block.get(index % BLOCK..)).unwrap_or_default())
    }

    /// Nothing more will come: gives back what was kept for it.
    pub(crate) fn seal(&mut self) {
        if let Some(block) = self.blocks.back_mut() {
            block.shrink_to_fit();
        }
        self.blocks.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_offset_reads_on_to_the_end() {
        let data: Vec<u8> = (0..=250).cycle().take(3 * BLOCK + 17).collect();
        let mut log = Log::default();
        for part in data.chunks(1000) {
            log.append(part);
        }

        for offset in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, data.len()] {
            let mut read = Vec::new();
            loop {
                let (_, part) = log.after((offset + read.len()) as u64);
                if part.is_empty() {
                    break;
                }
                read.extend_from_slice(part);
            }
            assert_eq!(read, data[offset..], "from {offset}");
        }
        assert_eq!(log.len(), data.len() as u64);
    }

    #[test]
    fn beyond_the_end_there_is_nothing() {
        let mut log = Log::default();
        log.append(b"abc");

        for offset in [3, 4, u64::MAX] {
            assert_eq!(log.after(offset), (offset, &b""[..]));
        }
    }

    #[test]
    fn what_was_dropped_is_skipped_and_nothing_else() {
        let data: Vec<u8> = (0..=250).cycle().take(5 * BLOCK + 17).collect();
        let mut log = Log::default();
        let mut dropped = 0;
        for part in data.chunks(1000) {
            log.append(part);
            dropped += log.trim(2 * BLOCK as u64);
        }

        assert_eq!(dropped, 3 * BLOCK as u64);
        assert_eq!((log.len(), log.kept()), (data.len() as u64, 2 * BLOCK as u64 + 17));
        for offset in [0, 1, dropped - 1, dropped] {
            assert_eq!(log.after(offset), (dropped, &data[3 * BLOCK..4 * BLOCK]));
        }
        assert_eq!(log.after(dropped + 5).1, &data[3 * BLOCK + 5..4 * BLOCK]);
        assert_eq!(log.after(5 * BLOCK as u64 + 2).1, &data[5 * BLOCK + 2..]);
        assert_eq!(log.trim(0), 2 * BLOCK as u64, "the last block stays");
        assert_eq!(log.after(0), (5 * BLOCK as u64, &data[5 * BLOCK..]));
    }
}
