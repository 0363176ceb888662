//! Sorts more lines than fit into memory: sorted parts are written to a temporary file, and merged at the end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

/// How many bytes of lines are held in memory before they are written to the file.
const PART: usize = 32 << 20;
/// How many bytes of a part are read at a time while the parts are merged.
const BLOCK: usize = 64 << 10;

/// The sort key of a line: two numbers, the more important one first.
pub type Key = (u64, u64);

pub struct Sorter {
    part_size: usize,
    lines: Vec<(Key, String)>,
    bytes: usize,
    file: Option<File>,
    /// Where the parts end in the file.
    ends: Vec<u64>,
}

impl Sorter {
    pub fn new() -> Sorter {
        Sorter::with_parts_of(PART)
    }

    fn with_parts_of(part_size: usize) -> Sorter {
        Sorter { part_size, lines: Vec::new(), bytes: 0, file: None, ends: Vec::new() }
    }

    pub fn add(&mut self, key: Key, line: String) -> io::Result<()> {
        self.bytes += line.len();
        self.lines.push((key, line));
        if self.bytes >= self.part_size {
            self.write_part()?;
        }
        Ok(())
    }

    /// Writes all lines in their order. Lines with equal keys keep the order in which they were added.
    pub fn write(mut self, out: &mut impl Write) -> io::Result<()> {
        self.lines.sort_by_key(|(key, _)| *key);
        let Some(file) = self.file.take() else {
            return self.lines.iter().try_for_each(|(_, line)| out.write_all(line.as_bytes()));
        };
        self.file = Some(file);
        self.write_part()?;
        let Some(file) = &self.file else { return Ok(()) };
        let mut parts = Vec::new();
        let mut start = 0;
        for end in &self.ends {
            parts.push(Part { file, next: start, end: *end, block: Vec::new(), read: 0 });
            start = *end;
        }
        let mut heads = BinaryHeap::new();
        for (number, part) in parts.iter_mut().enumerate() {
            heads.extend(part.line()?.map(|(key, line)| Reverse((key, number, line))));
        }
        while let Some(Reverse((_, number, line))) = heads.pop() {
            out.write_all(&line)?;
            if let Some(part) = parts.get_mut(number) {
                heads.extend(part.line()?.map(|(key, line)| Reverse((key, number, line))));
            }
        }
        Ok(())
    }

    fn write_part(&mut self) -> io::Result<()> {
        self.lines.sort_by_key(|(key, _)| *key);
        let file = match self.file.take() {
            Some(file) => file,
            None => temporary_file()?,
        };
        let mut out = io::BufWriter::with_capacity(BLOCK, &file);
        let mut end = self.ends.last().copied().unwrap_or(0);
        for ((first, second), line) in self.lines.drain(..) {
            let length = line.len() as u64;
            for number in [first, second, length] {
                out.write_all(&number.to_le_bytes())?;
            }
            out.write_all(line.as_bytes())?;
            end += 24 + length;
        }
        out.flush()?;
        drop(out);
        self.ends.push(end);
        self.file = Some(file);
        self.bytes = 0;
        Ok(())
    }
}

/// A file without a name, which is gone when the program ends, in whatever way.
fn temporary_file() -> io::Result<File> {
    let told = |error: io::Error, path: &std::path::Path| {
        io::Error::new(
            error.kind(),
            format!("no temporary file {}: {error}; TMPDIR names another place", path.display()),
        )
    };
    let directory = std::env::temp_dir();
    for number in 0..1_000 {
        let path = directory.join(format!("dqctl-dump-{}-{number}", std::process::id()));
        let mut options = File::options();
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.read(true).write(true).create_new(true).open(&path) {
            Ok(file) => {
                std::fs::remove_file(&path)?;
                return Ok(file);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(told(error, &path)),
        }
    }
    Err(told(io::ErrorKind::AlreadyExists.into(), &directory))
}

/// A sorted part of the file.
struct Part<'a> {
    file: &'a File,
    /// The part of the file that has not been read yet.
    next: u64,
    end: u64,
    block: Vec<u8>,
    /// How much of the block has been used.
    read: usize,
}

impl Part<'_> {
    fn line(&mut self) -> io::Result<Option<(Key, Vec<u8>)>> {
        if self.read == self.block.len() && self.next == self.end {
            return Ok(None);
        }
        let mut numbers = [0; 3];
        for number in &mut numbers {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&self.take(8)?);
            *number = u64::from_le_bytes(bytes);
        }
        let [first, second, length] = numbers;
        let line = self.take(usize::try_from(length).map_err(io::Error::other)?)?;
        Ok(Some(((first, second), line)))
    }

    fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        if self.block.len() - self.read < length {
            self.block.drain(..self.read);
            self.read = 0;
            let had = self.block.len();
            let left = usize::try_from(self.end - self.next).unwrap_or(usize::MAX);
            let more = BLOCK.max(length - had).min(left);
            self.block.resize(had + more, 0);
            self.file.read_exact_at(self.block.get_mut(had..).unwrap_or_default(), self.next)?;
            self.next += more as u64;
        }
        let taken = self.block.get(self.read..self.read + length).ok_or(io::ErrorKind::UnexpectedEof)?.to_vec();
        self.read += length;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::Sorter;

    #[test]
    fn lines_come_out_sorted_whatever_fits_into_memory() {
        for part_size in [1, 100, 1_000, 1 << 20] {
            let mut sorter = Sorter::with_parts_of(part_size);
            let mut expected = Vec::new();
            for number in 0..2_000_u64 {
                let key = (number * 7919 % 3, number * 104_729 % 500);
                let line = format!("{key:?} {number} {}\n", "x".repeat((number % 50) as usize));
                expected.push((key, line.clone()));
                sorter.add(key, line).unwrap();
            }
            expected.sort_by_key(|(key, _)| *key);
            let mut out = Vec::new();
            sorter.write(&mut out).unwrap();
            let expected: String = expected.into_iter().map(|(_, line)| line).collect();
            assert!(out == expected.into_bytes(), "parts of {part_size}");
        }
    }
}
