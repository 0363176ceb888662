//! Replays the corpus of the fuzzer: each file is an input that reached new code.

use crate::damage::every_effect;
use crate::exercise::{self, lively};
use crate::golden::saved;
use std::path::{Path, PathBuf};

fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target)
}

/// Passes every input of a target to `replay`.
fn each_of(target: &str, replay: fn(&[u8])) {
    let folder = folder(target);
    let mut inputs: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    inputs.sort();
    assert!(inputs.len() > 10, "{} holds what the fuzzer found", folder.display());
    for input in inputs {
        let bytes = std::fs::read(&input).unwrap();
        // If it fails, the message names the input.
        let replayed = std::panic::catch_unwind(|| replay(&bytes));
        assert!(replayed.is_ok(), "{}", input.display());
    }
}

#[test]
fn snapshots_that_the_fuzzer_made_are_refused_or_survived() {
    each_of("snapshot", exercise::snapshot);
}

#[test]
fn effects_that_the_fuzzer_made_are_refused_or_survived() {
    each_of("effects", exercise::effects);
}

#[test]
fn ids_of_the_fuzzer_are_read_as_they_are_printed() {
    each_of("ids", exercise::ids);
}

/// Writes the inputs from which the fuzzer starts: a snapshot, every effect, and ids of every form.
#[test]
#[ignore = "writes files: `make fuzz` runs it"]
fn seeds_for_the_fuzzer() {
    let write = |target: &str, name: &str, pieces: &[Vec<u8>]| {
        let framed = pieces.iter().flat_map(|piece| [&(piece.len() as u16).to_be_bytes()[..], piece].concat());
        std::fs::create_dir_all(folder(target)).unwrap();
        std::fs::write(folder(target).join(name), framed.collect::<Vec<u8>>()).unwrap();
    };
    write("snapshot", "seed-lively", &saved(&lively()));
    let effects = every_effect(&lively());
    for (nth, effect) in effects.iter().enumerate() {
        write("effects", &format!("seed-{nth}"), std::slice::from_ref(effect));
        let mut queue = lively();
        exercise::apply(&mut queue, effect);
        write("snapshot", &format!("seed-after-{nth}"), &saved(&queue));
    }
    write("effects", "seed-all", &effects);
    for (nth, id) in ["1-1", "a", "a#7", "1760000000000-0#18446744073709551615", "", "01-1"].iter().enumerate() {
        std::fs::create_dir_all(folder("ids")).unwrap();
        std::fs::write(folder("ids").join(format!("seed-{nth}")), id).unwrap();
    }
}
