//! pcap files: what passes an interface is written to them, and ports can be files altogether.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write as _};
use std::path::{Path, PathBuf};

use crate::ids::Port;

const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const MAGIC_MICROSECONDS: u32 = 0xa1b2_c3d4;
const MAGIC_NEXT_GENERATION: u32 = 0x0a0d_0d0a;
const SNAP_LEN: u32 = 262_144;

/// What the frames of a file begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkType {
    Ethernet = 1,
    /// IPv4 or IPv6.
    Raw = 101,
}

/// Writes a pcap file.
pub(super) struct PcapWriter {
    file: BufWriter<File>,
}

/// `<folder>/<interface>_<direction>.pcap`: direction `in` is into the switch.
pub(super) fn file_name(folder: &Path, interface: &str, direction: &str) -> PathBuf {
    folder.join(format!("{interface}_{direction}.pcap"))
}

/// An error that names the file.
fn at(path: &Path, error: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("{}: {error}", path.display()))
}

impl PcapWriter {
    pub(super) fn create(path: &Path, link: LinkType) -> io::Result<Self> {
        let file = File::create(path).map_err(|error| at(path, error))?;
        let mut file = BufWriter::new(file);
        file.write_all(&MAGIC_NANOSECONDS.to_le_bytes())?;
        file.write_all(&[2, 0, 4, 0])?; // version 2.4
        file.write_all(&[0; 8])?; // time zone, accuracy
        file.write_all(&SNAP_LEN.to_le_bytes())?;
        file.write_all(&(link as u32).to_le_bytes())?;
        file.flush()?;
        Ok(PcapWriter { file })
    }

    /// Writes a frame that passed at `epoch` ns since 1970.
    pub(super) fn write(&mut self, frame: &[u8], epoch: u64) -> io::Result<()> {
        // pcap's seconds have 32 bits.
        let seconds = (epoch / 1_000_000_000) as u32;
        let nanoseconds = (epoch % 1_000_000_000) as u32;
        let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        for word in [seconds, nanoseconds, length.min(SNAP_LEN), length] {
            self.file.write_all(&word.to_le_bytes())?;
        }
        self.file
            .write_all(&frame[..frame.len().min(SNAP_LEN as usize)])
    }

    /// Writes out what is buffered, so that the file can be read while the switch runs.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Reads a pcap file, one frame ahead.
struct PcapReader {
    path: PathBuf,
    file: BufReader<File>,
    big_endian: bool,
    /// ns of one unit of the fraction of a second.
    unit: u64,
    /// The time (ns) of the frame in `frame`; `None` at the end.
    time: Option<u64>,
    frame: Vec<u8>,
}

impl PcapReader {
    fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path).map_err(|error| at(path, error))?;
        let mut file = BufReader::new(file);
        let mut header = [0; 24];
        file.read_exact(&mut header)
            .map_err(|_| at(path, "is too short for a pcap file"))?;
        let magic = [header[0], header[1], header[2], header[3]];
        let (big_endian, unit) = match (u32::from_le_bytes(magic), u32::from_be_bytes(magic)) {
            (MAGIC_MICROSECONDS, _) => (false, 1_000),
            (MAGIC_NANOSECONDS, _) => (false, 1),
            (_, MAGIC_MICROSECONDS) => (true, 1_000),
            (_, MAGIC_NANOSECONDS) => (true, 1),
            (MAGIC_NEXT_GENERATION, _) => {
                let said = "is pcapng; pcap is wanted: editcap -F pcap FILE.pcapng FILE.pcap";
                return Err(at(path, said));
            }
            _ => return Err(at(path, "is not a pcap file")),
        };
        let mut reader = PcapReader {
            path: path.to_owned(),
            file,
            big_endian,
            unit,
            time: None,
            frame: Vec::new(),
        };
        reader.advance()?;
        Ok(reader)
    }

    /// Reads the next frame.
    fn advance(&mut self) -> io::Result<()> {
        self.time = None;
        let mut header = [0; 16];
        let mut read = 0;
        while read < header.len() {
            match self.file.read(&mut header[read..])? {
                0 if read == 0 => return Ok(()),
                0 => return Err(at(&self.path, "ends within a record")),
                count => read += count,
            }
        }
        let word = |i: usize| {
            let bytes = [header[i], header[i + 1], header[i + 2], header[i + 3]];
            match self.big_endian {
                true => u32::from_be_bytes(bytes),
                false => u32::from_le_bytes(bytes),
            }
        };
        let (kept, length) = (word(8), word(12));
        if kept > SNAP_LEN {
            return Err(at(&self.path, format!("has a record of {kept} bytes")));
        }
        if kept != length {
            let said = format!(
                "holds {kept} of a frame's {length} bytes only; capture whole frames (tcpdump -s 0)"
            );
            return Err(at(&self.path, said));
        }
        self.time = Some(u64::from(word(0)) * 1_000_000_000 + u64::from(word(4)) * self.unit);
        self.frame.resize(kept as usize, 0);
        self.file
            .read_exact(&mut self.frame)
            .map_err(|_| at(&self.path, "ends within a frame"))
    }
}

/// Frames from the files of several ports, in the order of their times.
pub(super) struct Replay {
    files: Vec<(Port, PcapReader)>,
    /// From when (ns of the switch's clock) on they are read.
    start: u64,
    /// The file whose frame was handed out last.
    used: Option<usize>,
}

impl Replay {
    /// Opens the files.
    ///
    /// # Errors
    /// When one is missing or no pcap file; the message names it.
    pub(super) fn open<'a>(
        files: impl Iterator<Item = (Port, &'a Path)>,
        start: u64,
    ) -> io::Result<Self> {
        let files = files.map(|(port, path)| Ok((port, PcapReader::open(path)?)));
        Ok(Replay {
            files: files.collect::<io::Result<_>>()?,
            start,
            used: None,
        })
    }

    /// When (ns) there is something to read; `None`: all has been read.
    pub(super) fn due(&self) -> Option<u64> {
        let more = self
            .files
            .iter()
            .enumerate()
            .any(|(at, (_, file))| file.time.is_some() && self.used != Some(at));
        (more || self.used.is_some()).then_some(self.start)
    }

    /// The next frame and its port; `None` at the end.
    pub(super) fn next_frame(&mut self) -> io::Result<Option<(Port, &[u8])>> {
        let next = self.next_timed()?;
        Ok(next.map(|(port, _, frame)| (port, frame)))
    }

    /// [`next_frame`](Self::next_frame), with its time (ns since 1970) between.
    fn next_timed(&mut self) -> io::Result<Option<(Port, u64, &[u8])>> {
        if let Some(used) = self.used.take() {
            self.files[used].1.advance()?;
        }
        let times = self.files.iter().enumerate();
        let first = times
            .filter_map(|(at, (_, file))| Some((file.time?, at)))
            .min();
        self.used = first.map(|(_, at)| at);
        Ok(first.map(|(time, at)| {
            let (port, file) = &self.files[at];
            (*port, time, &file.frame[..])
        }))
    }
}

/// Hands `take` the frames of pcap files, each file's as come in by its port, in the order of their
/// times (ns since 1970).
///
/// # Errors
/// When a file is missing or no pcap file, and the first error of `take`.
pub fn each_frame(
    files: &[(Port, PathBuf)],
    mut take: impl FnMut(u64, Port, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let files = files.iter().map(|(port, path)| (*port, path.as_path()));
    let mut replay = Replay::open(files, 0)?;
    while let Some((port, time, frame)) = replay.next_timed()? {
        take(time, port, frame)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn files_have_the_format() {
        let folder = tempfile::tempdir().unwrap();
        let path = file_name(folder.path(), "eth7", "in");
        assert!(path.ends_with("eth7_in.pcap"));
        let mut capture = PcapWriter::create(&path, LinkType::Raw).unwrap();
        assert_eq!(std::fs::read(&path).unwrap().len(), 24);
        capture.write(&[1, 2, 3], 5_000_000_007).unwrap();
        capture.flush().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes[..4], [0x4d, 0x3c, 0xb2, 0xa1]);
        assert_eq!(bytes[20..24], [101, 0, 0, 0]);
        assert_eq!(bytes[24..32], [5, 0, 0, 0, 7, 0, 0, 0]);
        assert_eq!(bytes[32..40], [3, 0, 0, 0, 3, 0, 0, 0]);
        assert_eq!(bytes[40..], [1, 2, 3]);
    }

    /// A file of microseconds in the other byte order.
    fn big_endian(records: &[(u32, u32, &[u8])]) -> Vec<u8> {
        let mut bytes = MAGIC_MICROSECONDS.to_be_bytes().to_vec();
        bytes.extend_from_slice(&[0; 20]);
        for (seconds, micros, frame) in records {
            let len = frame.len() as u32;
            for word in [*seconds, *micros, len, len] {
                bytes.extend_from_slice(&word.to_be_bytes());
            }
            bytes.extend_from_slice(frame);
        }
        bytes
    }

    #[test]
    fn files_are_read_in_the_order_of_their_times() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("1"), folder.path().join("2"));
        let mut capture = PcapWriter::create(&one, LinkType::Ethernet).unwrap();
        capture.write(&[1], 1_000_000_000).unwrap();
        capture.write(&[3], 1_000_003_000).unwrap();
        capture.flush().unwrap();
        std::fs::write(&two, big_endian(&[(1, 2, &[2]), (2, 0, &[4, 4])])).unwrap();
        let files = [(7, one.as_path()), (9, two.as_path())];
        let mut replay = Replay::open(files.into_iter(), 5).unwrap();
        let mut frames = Vec::new();
        while replay.due() == Some(5) {
            let Some((port, frame)) = replay.next_frame().unwrap() else {
                break;
            };
            frames.push((port, frame.to_vec()));
        }
        let want = [(7, vec![1]), (9, vec![2]), (7, vec![3]), (9, vec![4, 4])];
        assert_eq!(frames, want);
        assert_eq!(replay.due(), None);

        let mut times = Vec::new();
        let files = [(7, one), (9, two)];
        each_frame(&files, |time, port, _| {
            times.push((time, port));
            Ok(())
        })
        .unwrap();
        assert_eq!(times[1], (1_000_002_000, 9));
        assert!(times.is_sorted() && times.len() == 4, "{times:?}");
        let stop = each_frame(&files, |_, _, _| Err(io::Error::other("enough")));
        assert_eq!(stop.unwrap_err().to_string(), "enough");
    }

    #[test]
    fn broken_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x_in.pcap");
        let mut whole = big_endian(&[(1, 2, &[2; 40])]);
        let mut cases = vec![
            (b"nonsense".to_vec(), "too short"),
            (vec![7; 64], "not a pcap"),
            (whole[..whole.len() - 1].to_vec(), "within a frame"),
            (whole[..30].to_vec(), "within a record"),
        ];
        let mut next_generation = MAGIC_NEXT_GENERATION.to_le_bytes().to_vec();
        next_generation.extend_from_slice(&[0; 40]);
        cases.push((next_generation, "editcap"));
        whole[24 + 15] = 41;
        cases.push((whole, "40 of a frame's 41 bytes"));
        for (bytes, said) in cases {
            std::fs::write(&path, bytes).unwrap();
            let error = Replay::open([(1, path.as_path())].into_iter(), 0)
                .err()
                .unwrap();
            let error = error.to_string();
            assert!(
                error.contains("x_in.pcap") && error.contains(said),
                "{error}"
            );
        }
    }
}
