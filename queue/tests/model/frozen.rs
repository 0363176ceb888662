//! What each release wrote: every later version loads it to the same digests.
//!
//! `tests/golden/vMAJOR.MINOR.PATCH` is a copy of the golden files of that release (`scripts/freeze-golden.sh`, a step
//! of every release). Nothing writes these files again, `DQ_BLESS` included, and their hash is here, so that an edit is
//! noticed. Files of servers (`queue.rdb`, `queue.aof`, `queue.dump`) are loaded by
//! `tests/server/durability/golden.rs`.

use crate::exercise::{digest, NOW};
use crate::golden::{hash, unhex};
use dq_queue::time::UnixMs;
use dq_queue::wire::Loader;
use dq_queue::{Queue, Stamped};
use std::path::{Path, PathBuf};

/// Each release, and the hash of all its files. `scripts/freeze-golden.sh` says when to add a line; the test then fails
/// once, and prints the hash.
const RELEASES: [(&str, &str); 1] = [("v0.2.0", "87551354aac367a2")];

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden")
}

fn lines(release: &str, name: &str) -> Vec<String> {
    let path = golden().join(release).join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(str::to_owned).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The queue that the release has saved.
fn load(release: &str) -> Queue {
    let mut loader = Loader::default();
    for line in lines(release, "snapshot.hex") {
        loader.take(&unhex(&line)).unwrap_or_else(|refused| panic!("{release}: {refused}"));
    }
    let queue = loader.finish(UnixMs::new(NOW)).unwrap();
    queue.check().unwrap();
    queue
}

#[test]
fn the_files_of_a_release_are_never_changed() {
    let frozen: Vec<String> = names(&golden()).into_iter().filter(|name| name.contains('.')).collect();
    assert_eq!(frozen, RELEASES.map(|(release, _)| release), "the folders of tests/golden");
    for (release, expected) in RELEASES {
        let mut bytes = Vec::new();
        for name in names(&golden().join(release)) {
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(&std::fs::read(golden().join(release).join(name)).unwrap());
        }
        assert_eq!(hash(&bytes), expected, "the files of {release} are frozen: see CONTRIBUTING.md, Releases");
    }
}

#[test]
fn a_queue_saved_by_each_release_loads_to_its_digest() {
    for (release, _) in RELEASES {
        assert_eq!(vec![hash(&digest(&load(release)))], lines(release, "snapshot.digest"), "{release}");
    }
}

#[test]
fn the_effects_of_each_release_lead_to_its_digests() {
    for (release, _) in RELEASES {
        let (effects, digests) = (lines(release, "effects.hex"), lines(release, "effects.digest"));
        assert_eq!(effects.len(), digests.len(), "{release}");
        for (nth, (effect, expected)) in effects.iter().zip(digests).enumerate() {
            let bytes = unhex(effect);
            let stamped = Stamped::decode(&bytes).unwrap_or_else(|refused| panic!("{release}, line {nth}: {refused}"));
            let mut queue = load(release);
            let outcome = queue.apply(&stamped);
            queue.check().unwrap();
            let found = outcome.map_or_else(|refused| refused.to_string(), |_| hash(&digest(&queue)));
            assert_eq!(found, expected, "{release}, line {nth} of effects.hex");
        }
    }
}
