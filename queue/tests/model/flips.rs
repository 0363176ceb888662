//! Every bit of the last effects of a history flipped, one at a time: the effect is refused, means the same, or means
//! something else, of which nothing in the bytes tells.
//!
//! These are the bytes of the effects alone. The words around them in an AOF are the server's, which refuses to start
//! with most flips in them.

use crate::exercise::digest;
use crate::history::history;
use crate::world;
use dq_queue::{Effect, Image, Queue, Stamped};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// How many of the last effects are damaged at most.
const EFFECTS: usize = 200;

/// What a flip of one bit did.
#[derive(Debug, Default)]
struct Flips {
    refused: usize,
    /// The queue is the same.
    harmless: usize,
    /// Nothing but the bytes of a message differs: its payload, its headers or another text.
    other_text: usize,
    /// What was decided differs: which message, a time, a receipt, a setting.
    other_decision: usize,
}

/// The effects of a history with more than [`EFFECTS`] of them.
fn effects() -> Vec<Vec<u8>> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut drawn = || history(700..800, 1).new_tree(&mut runner).expect("a history").current();
    std::iter::repeat_with(|| world::effects(&drawn()))
        .find(|effects| effects.len() > EFFECTS)
        .expect("an endless source")
}

fn apply(queue: &Option<Queue>, stamped: &Stamped<'_>) -> Option<Queue> {
    let mut queue = match queue {
        Some(queue) => queue.duplicate().unwrap(),
        None => Queue::made_by(&stamped.effect)?,
    };
    queue.apply(stamped).ok().map(|_| queue)
}

/// A message without its texts.
fn decided<'a>(image: &Image<'a>) -> Image<'a> {
    Image { payload: b"", headers: None, errors: None, checkpoint: None, ..image.clone() }
}

/// Where the long texts of an effect are in its bytes. A flip in one of them changes nothing else, and is not applied.
fn long_texts(bytes: &[u8], effect: &Effect<'_>) -> Vec<std::ops::Range<usize>> {
    let texts: Vec<&[u8]> = match effect {
        Effect::Push(_, images) => images.iter().map(|image| image.payload).collect(),
        Effect::Schedule(_, image) => vec![image.payload],
        Effect::Complete { result, .. } => result.iter().copied().collect(),
        Effect::Nack { error, checkpoint, .. } => error.iter().chain(checkpoint).copied().collect(),
        Effect::Bury(_, error) => error.iter().copied().collect(),
        Effect::Extend { checkpoint, .. } => checkpoint.iter().copied().collect(),
        _ => Vec::new(),
    };
    let start = |text: &[u8]| text.as_ptr() as usize - bytes.as_ptr() as usize;
    texts.into_iter().filter(|text| text.len() > 8).map(|text| start(text)..start(text) + text.len()).collect()
}

/// Whether two queues differ in nothing but texts.
fn differ_in_text(one: &Queue, other: &Queue) -> bool {
    let texts = |effect: Effect<'_>| match effect {
        Effect::Begin(header) => vec![format!("{:?}", (header.settings, header.last_sequence, header.last_receipt))],
        Effect::Continue(images) => images.iter().map(|image| format!("{:?}", decided(image))).collect(),
        Effect::Done(done) => done.iter().map(|done| format!("{:?}", (done.sequence, done.name))).collect(),
        effect => vec![format!("{effect:?}")],
    };
    let all = |queue: &Queue| queue.pieces().flat_map(texts).collect::<Vec<_>>();
    all(one) == all(other)
}

#[test]
fn a_flipped_bit_in_an_effect_is_refused_or_survived() {
    flip_each(10);
}

/// `make explore` runs this.
#[test]
#[ignore = "takes minutes"]
fn a_flipped_bit_in_many_effects_is_refused_or_survived() {
    flip_each(EFFECTS);
}

/// Flips each bit of the last `damaged` effects of a history.
fn flip_each(damaged: usize) {
    let effects = effects();
    let (first, last) = effects.split_at(effects.len() - damaged);
    let mut queue = None;
    for bytes in first {
        queue = apply(&queue, &Stamped::decode(bytes).unwrap());
    }
    let (mut flips, mut length) = (Flips::default(), 0);
    for bytes in last {
        let stamped = Stamped::decode(bytes).unwrap();
        let texts = long_texts(bytes, &stamped.effect);
        let right = apply(&queue, &stamped).expect("it was applied before");
        let must = digest(&right);
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            if texts.iter().any(|text| text.contains(&(bit / 8))) && Stamped::decode(&damaged).is_ok() {
                flips.other_text += 1;
                continue;
            }
            let Some(wrong) = Stamped::decode(&damaged).ok().and_then(|stamped| apply(&queue, &stamped)) else {
                flips.refused += 1;
                continue;
            };
            assert_eq!(wrong.check(), Ok(()), "{damaged:02x?}");
            match digest(&wrong) == must {
                true => flips.harmless += 1,
                false if differ_in_text(&right, &wrong) => flips.other_text += 1,
                false => flips.other_decision += 1,
            }
        }
        length += bytes.len();
        queue = Some(right);
    }
    println!("{damaged} effects, {length} bytes: {flips:?}");
    assert!(flips.refused > 0);
}
