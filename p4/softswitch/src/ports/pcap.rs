//! Writes what passes an interface to pcap files.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const SNAP_LEN: u32 = 262_144;
const LINK_ETHERNET: u32 = 1;

/// The two files of an interface: what came in and what went out.
pub(super) struct Capture {
    received: BufWriter<File>,
    sent: BufWriter<File>,
}

impl Capture {
    /// Creates `<interface>_in.pcap` and `<interface>_out.pcap` in `folder`.
    pub(super) fn create(folder: &Path, interface: &str) -> io::Result<Self> {
        let open = |direction: &str| {
            let path = folder.join(format!("{interface}_{direction}.pcap"));
            let mut file = BufWriter::new(File::create(path)?);
            file.write_all(&MAGIC_NANOSECONDS.to_le_bytes())?;
            file.write_all(&[2, 0, 4, 0])?; // version 2.4
            file.write_all(&[0; 8])?; // time zone, accuracy
            file.write_all(&SNAP_LEN.to_le_bytes())?;
            file.write_all(&LINK_ETHERNET.to_le_bytes())?;
            Ok::<_, io::Error>(file)
        };
        Ok(Capture {
            received: open("in")?,
            sent: open("out")?,
        })
    }

    pub(super) fn received(&mut self, frame: &[u8], epoch: u64) -> io::Result<()> {
        record(&mut self.received, frame, epoch)
    }

    pub(super) fn sent(&mut self, frame: &[u8], epoch: u64) -> io::Result<()> {
        record(&mut self.sent, frame, epoch)
    }

    /// Writes out what is buffered, so that the files can be read while the switch runs.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.received.flush()?;
        self.sent.flush()
    }
}

fn record(file: &mut BufWriter<File>, frame: &[u8], epoch: u64) -> io::Result<()> {
    // pcap's seconds have 32 bits.
    let seconds = (epoch / 1_000_000_000) as u32;
    let nanoseconds = (epoch % 1_000_000_000) as u32;
    let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
    for word in [seconds, nanoseconds, length.min(SNAP_LEN), length] {
        file.write_all(&word.to_le_bytes())?;
    }
    file.write_all(&frame[..frame.len().min(SNAP_LEN as usize)])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn files_have_the_format() {
        let folder = tempfile::tempdir().unwrap();
        let mut capture = Capture::create(folder.path(), "eth7").unwrap();
        capture.received(&[1, 2, 3], 5_000_000_007).unwrap();
        capture.flush().unwrap();
        let bytes = std::fs::read(folder.path().join("eth7_in.pcap")).unwrap();
        assert_eq!(bytes[..4], [0x4d, 0x3c, 0xb2, 0xa1]);
        assert_eq!(bytes[20..24], [1, 0, 0, 0]);
        assert_eq!(bytes[24..32], [5, 0, 0, 0, 7, 0, 0, 0]);
        assert_eq!(bytes[32..40], [3, 0, 0, 0, 3, 0, 0, 0]);
        assert_eq!(bytes[40..], [1, 2, 3]);
        assert_eq!(
            std::fs::read(folder.path().join("eth7_out.pcap"))
                .unwrap()
                .len(),
            24
        );
    }
}
