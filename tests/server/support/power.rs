//! Power cuts: a server whose disk forgets what no fsync has written.

use super::place::test_dir;
use super::preload::{library, PRELOAD};
use super::{Random, Server};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The files of a test, which no fsync concerns.
const OURS: [&str; 3] = ["log", "conf", "stdout"];

/// The disk of a server. See `power.c`.
pub struct Disk {
    /// The notes of the library, and a link to each file that was written to the disk.
    kept: PathBuf,
    cuts: usize,
}

/// What the disk has at an instant.
#[derive(Default)]
struct Written {
    /// The bytes of each file, by its inode.
    files: HashMap<u64, u64>,
    /// For each folder, the names that it may have after a power cut: those at its last fsync, and those after each
    /// later operation, because a file system may have written some of these on its own, in their order.
    folders: BTreeMap<PathBuf, Vec<Vec<(String, u64)>>>,
}

impl Disk {
    pub fn new() -> Disk {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("disk-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        // Links lead from here to the files of the server, so both are on one file system.
        let kept = test_dir().join(name);
        fs::create_dir_all(&kept).expect("a folder for the notes");
        Disk { kept, cuts: 0 }
    }

    /// The environment variables with which a server uses this disk.
    pub fn environment(&self) -> Vec<(String, String)> {
        vec![
            (PRELOAD.to_owned(), library("power").to_string_lossy().into_owned()),
            ("DQ_POWER".to_owned(), self.kept.to_string_lossy().into_owned()),
        ]
    }

    /// Everything that the server has written is on the disk from now on.
    pub fn settle(&self, server: &Server) {
        let mut lines = String::new();
        for folder in folders_of(server.dir()) {
            let folder = folder.canonicalize().expect("its whole path");
            lines += &format!("D\t{}", folder.display());
            let files = files_of(&folder);
            for (name, path) in &files {
                lines += &format!("\t{name}\t{}", fs::metadata(path).expect("a file").ino());
            }
            lines += "\n";
            for path in files.values() {
                let file = fs::metadata(path).expect("a file");
                let _ = fs::hard_link(path, self.kept.join(file.ino().to_string()));
                lines += &format!("S\t{}\t{}\n", file.ino(), file.len());
            }
        }
        let notes = fs::OpenOptions::new().append(true).create(true).open(self.kept.join("notes"));
        notes.expect("the notes").write_all(lines.as_bytes()).expect("written");
    }

    /// Whether the AOF of the server, with all its bytes, is on the disk.
    pub fn has_aof(&self, server: &Server) -> bool {
        let written = self.written();
        files_of(&server.dir().join("appendonlydir")).values().all(|path| {
            // A file may be removed at any time.
            let Ok(file) = fs::metadata(path) else { return false };
            file.len() == 0 || written.files.get(&file.ino()) == Some(&file.len())
        })
    }

    fn written(&self) -> Written {
        let mut written = Written::default();
        let notes = fs::read_to_string(self.kept.join("notes")).expect("the notes");
        // A process that is killed may leave a part of a line.
        for line in notes.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let words: Vec<&str> = line.trim_end().split('\t').collect();
            let number = |word: &str| word.parse::<u64>().expect("a number");
            if words[0] == "S" {
                written.files.insert(number(words[1]), number(words[2]));
                continue;
            }
            let names = words[2..].chunks(2).map(|pair| (pair[0].to_owned(), number(pair[1]))).collect();
            let states = written.folders.entry(words[1].into()).or_default();
            if words[0] == "D" {
                states.clear();
            }
            states.push(names);
        }
        written
    }

    /// Cuts the power: kills the server, and leaves in its folder what the disk may have. The caller boots it again.
    pub fn cut(&mut self, server: &mut Server, random: &mut Random) {
        server.kill9();
        let (written, dir) = (self.written(), server.dir().canonicalize().expect("its whole path"));
        // A child of the server may still be writing to the old folder, and remove files there.
        self.cuts += 1;
        let old = self.kept.join(format!("before-{}", self.cuts));
        fs::rename(&dir, &old).expect("the old folder");
        fs::create_dir(&dir).expect("the new folder");
        for (folder, states) in &written.folders {
            let inner = folder.strip_prefix(&dir).expect("a folder of the server");
            fs::create_dir_all(folder).expect("a folder");
            let live: HashMap<u64, PathBuf> = files_of(&old.join(inner))
                .into_values()
                .filter_map(|path| Some((fs::metadata(&path).ok()?.ino(), path)))
                .collect();
            for (name, inode) in &states[random.below(states.len())] {
                let kept = self.kept.join(inode.to_string());
                let Some(from) = Some(kept).filter(|kept| kept.exists()).or_else(|| live.get(inode).cloned()) else {
                    // It was never written, and has no name any more.
                    fs::write(folder.join(name), "").expect("an empty file");
                    continue;
                };
                let bytes = fs::read(from).unwrap_or_default();
                let synced = written.files.get(inode).map_or(0, |length| *length as usize).min(bytes.len());
                let more = bytes.len() - synced;
                let torn = random.below(more + 1);
                let length = synced + random.one_of(&[0, torn, more]);
                fs::write(folder.join(name), &bytes[..length]).expect("what is left of it");
            }
        }
        for ours in OURS {
            let _ = fs::copy(old.join(ours), dir.join(ours));
        }
        self.forget();
        self.settle(server);
    }

    /// Forgets the old files.
    fn forget(&self) {
        for file in files_of(&self.kept).values() {
            fs::remove_file(file).expect("removed");
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.kept);
    }
}

/// The folder of a server, and that of its AOF.
fn folders_of(dir: &Path) -> Vec<PathBuf> {
    [dir.to_owned(), dir.join("appendonlydir")].into_iter().filter(|folder| folder.is_dir()).collect()
}

/// The files in a folder that a server writes, by name.
fn files_of(folder: &Path) -> BTreeMap<String, PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let named = files.map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()));
    named.filter(|(name, _)| !OURS.contains(&name.as_str())).collect()
}
