//! What one stream of a process has written so far.

/// Grows in blocks, so that nothing is ever copied to make room.
const BLOCK: usize = 32 << 10;

/// Bytes in order, from the first on.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Every one is full but the last.
    blocks: Vec<Vec<u8>>,
    length: u64,
}

impl Log {
    pub(crate) fn len(&self) -> u64 {
        self.length
    }

    pub(crate) fn append(&mut self, mut data: &[u8]) {
        self.length += data.len() as u64;
        while !data.is_empty() {
            let full = self.blocks.last().is_none_or(|block| block.len() == BLOCK);
            if full {
                self.blocks.push(Vec::new());
            }
            let Some(block) = self.blocks.last_mut() else { return };
            let count = data.len().min(BLOCK - block.len());
            block.extend_from_slice(&data[..count]);
            data = &data[count..];
        }
    }

    /// What follows `offset`, as much as lies together; empty if nothing does yet.
    pub(crate) fn after(&self, offset: u64) -> &[u8] {
        let Ok(offset) = usize::try_from(offset) else { return &[] };
        let block = self.blocks.get(offset / BLOCK);
        block.and_then(|block| block.get(offset % BLOCK..)).unwrap_or_default()
    }

    /// Nothing more will come: gives back what was kept for it.
    pub(crate) fn seal(&mut self) {
        if let Some(block) = self.blocks.last_mut() {
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
                let part = log.after((offset + read.len()) as u64);
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

        assert_eq!(log.after(3), b"");
        assert_eq!(log.after(4), b"");
        assert_eq!(log.after(u64::MAX), b"");
    }
}
