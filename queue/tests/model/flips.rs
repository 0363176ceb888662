//! Every bit of the last effects of a history flipped, one at a time: each such effect is refused.
//!
//! These are the bytes of the effects alone. The words around them in an AOF are the server's, which refuses to start
//! with most flips in them.

use crate::history::history;
use crate::world;
use dq_queue::wire::unsealed;
use dq_queue::Refused;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// How many of the last effects are damaged.
const EFFECTS: usize = 200;

/// The effects of a history with more than [`EFFECTS`] of them.
fn effects() -> Vec<Vec<u8>> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut drawn = || history(700..800, 1).new_tree(&mut runner).expect("a history").current();
    std::iter::repeat_with(|| world::effects(&drawn()))
        .find(|effects| effects.len() > EFFECTS)
        .expect("an endless source")
}

#[test]
fn an_effect_with_a_flipped_bit_is_refused() {
    let effects = effects();
    let last = &effects[effects.len() - EFFECTS..];
    for bytes in last {
        assert_eq!(unsealed(bytes), Ok(&bytes[..]));
        let mut damaged = bytes.clone();
        for bit in 0..8 * bytes.len() {
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(unsealed(&damaged), Err(Refused::Malformed), "bit {bit} of {bytes:02x?}");
            damaged[bit / 8] ^= 1 << (bit % 8);
        }
    }
    println!("{} flips", last.iter().map(|bytes| 8 * bytes.len()).sum::<usize>());
}
