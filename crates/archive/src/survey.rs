//! What is in an archive that passes by.

use crate::{
    left_out::Contents,
    read::{Event, Reader},
};

/// Counts what an archive holds, as far as it makes sense.
#[derive(Debug, Default)]
pub struct Survey {
    reader: Reader,
    seen: Contents,
    lost: bool,
}

impl Survey {
    /// Takes the next bytes. After the first that make no sense, none are looked at.
    pub fn write(&mut self, mut data: &[u8]) {
        while !self.lost {
            match self.reader.next(&mut data) {
                Ok(None) => return,
                Ok(Some(Event::Entry(entry))) => {
                    self.seen.entries += u64::from(!entry.path.is_empty());
                }
                Ok(Some(Event::Data(data))) => self.seen.bytes += data.len() as u64,
                Ok(Some(Event::Whole)) => {}
                Ok(Some(Event::LeftOut(left_out))) => self.seen.left_out = left_out,
                Err(_) => self.lost = true,
            }
        }
    }

    pub fn seen(&self) -> &Contents {
        &self.seen
    }
}
