//! The frozen bytes of the format: every later version reads what an older one wrote, with the same digest.
//!
//! `tests/golden/v1` holds a saved queue, every effect, and the digests that they lead to. A test fails if this version
//! writes other bytes, or if these files no longer load to their digests. After a release, an addition gets a new
//! version and its own folder next to this one, which `DQ_BLESS=1 cargo test -p dq-queue --test model golden` writes.
//! What was released is in folders of its own, which `DQ_BLESS` leaves alone (`frozen`).

use crate::damage::every_effect;
use crate::exercise::{digest, lively, reload, NOW};
use dq_queue::time::UnixMs;
use dq_queue::wire::{Loader, VERSION};
use dq_queue::{Queue, Refused, Stamped};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(format!("v{VERSION}"))
}

/// Compares `lines` with a file, or writes the file if `DQ_BLESS` is set. Each piece is one line, so a difference shows
/// which piece changed.
fn assert_golden(name: &str, lines: &[String]) {
    let path = folder().join(name);
    if std::env::var_os("DQ_BLESS").is_some() {
        std::fs::create_dir_all(folder()).unwrap();
        // Other tests read the file meanwhile.
        let new = folder().join(format!("{name}.new"));
        std::fs::write(&new, lines.join("\n") + "\n").unwrap();
        std::fs::rename(&new, &path).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let golden: Vec<&str> = golden.lines().collect();
    assert_eq!(golden.len(), lines.len(), "{name}");
    for (nth, (golden, line)) in golden.iter().zip(lines).enumerate() {
        assert_eq!(golden, line, "line {nth} of {name} changed: see docs/internals/decisions/0003-format.md");
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn unhex(line: &str) -> Vec<u8> {
    line.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// The pieces of a saved queue.
pub fn saved(queue: &Queue) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    let saved: Result<(), Refused> = queue.save(|piece| {
        pieces.push(piece.to_vec());
        Ok(())
    });
    saved.unwrap();
    pieces
}

/// A short form of a digest: FNV-1a, 64 bits (Fowler, Noll and Vo).
pub fn hash(bytes: &[u8]) -> String {
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
    format!("{hash:016x}")
}

#[test]
fn the_bytes_of_a_saved_queue_do_not_change() {
    let pieces: Vec<String> = saved(&lively()).iter().map(|piece| hex(piece)).collect();
    assert_golden("snapshot.hex", &pieces);
}

#[test]
fn the_bytes_of_each_effect_do_not_change() {
    let effects: Vec<String> = every_effect(&lively()).iter().map(|effect| hex(effect)).collect();
    assert_golden("effects.hex", &effects);
}

#[test]
fn a_saved_queue_of_each_version_loads_to_its_digest() {
    let text = std::fs::read_to_string(folder().join("snapshot.hex")).unwrap();
    let mut loader = Loader::default();
    text.lines().for_each(|line| loader.take(&unhex(line)).unwrap());
    let queue = loader.finish(UnixMs::new(NOW + 1_000_000)).unwrap();
    queue.check().unwrap();
    assert_golden("snapshot.digest", &[hash(&digest(&queue))]);
    assert_eq!(digest(&queue), digest(&lively()));
}

#[test]
fn the_effects_of_each_version_lead_to_their_digests() {
    let text = std::fs::read_to_string(folder().join("effects.hex")).unwrap();
    let mut digests = Vec::new();
    for line in text.lines() {
        let bytes = unhex(line);
        let stamped = Stamped::decode(&bytes).unwrap();
        let mut queue = reload(&lively());
        // An effect that is refused here has no digest, such as further messages of a snapshot that the queue already
        // has.
        let outcome = queue.apply(&stamped);
        queue.check().unwrap();
        digests.push(outcome.map_or_else(|refused| refused.to_string(), |_| hash(&digest(&queue))));
    }
    assert_golden("effects.digest", &digests);
}
