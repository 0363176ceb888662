//! The waiting messages compared with a list.

use super::*;
use proptest::prelude::*;

/// A model without an order: a list of (priority, due, sequence) that is searched for each answer.
#[derive(Default)]
struct Model(Vec<(i8, u64, u64)>);

impl Model {
    fn due_by(&self, now: u64) -> usize {
        self.0.iter().filter(|(_, due, _)| *due <= now).count()
    }

    fn due_after(&self, now: u64) -> Option<UnixMs> {
        self.0.iter().map(|(_, due, _)| *due).filter(|due| *due > now).min().map(UnixMs::new)
    }

    fn first(&self, now: u64) -> Option<(i8, u64, u64)> {
        let due = self.0.iter().copied().filter(|(_, due, _)| *due <= now);
        due.min_by_key(|(priority, due, sequence)| (-i32::from(*priority), *due, *sequence))
    }

    fn remove(&mut self, message: (i8, u64, u64)) {
        self.0.retain(|held| *held != message);
    }
}

fn assert_same(waiting: &Waiting, model: &Model, now: u64) {
    assert_eq!(waiting.check(), Ok(()));
    assert_eq!(waiting.len(), model.0.len());
    assert_eq!(waiting.ready(), model.due_by(now));
    assert_eq!(waiting.next_due(), model.due_after(now));
    assert_eq!(waiting.earliest(), model.due_after(0));
    assert_eq!(waiting.due_by(UnixMs::new(now + 50), 7), model.due_by(now + 50).min(7));
    assert_eq!(waiting.due_after(UnixMs::new(now + 50)), model.due_after(now + 50));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

    #[test]
    fn order_and_counts_are_exact(
        steps in prop::collection::vec((0u8..12, 1u64..400, -2i8..3, 0u64..40), 1..if cfg!(miri) { 40 } else { 300 }),
    ) {
        let (mut waiting, mut model, mut now) = (Waiting::default(), Model::default(), 0);
        for (sequence, (what, due, priority, passed)) in steps.iter().copied().enumerate() {
            let sequence = sequence as u64;
            match what {
                0..=5 => {
                    waiting.insert(priority, UnixMs::new(due), Sequence(sequence));
                    model.0.push((priority, due, sequence));
                }
                6 | 7 => {
                    // A pop happens at the view's instant, or after it.
                    let at = now + passed;
                    let expected = model.first(at);
                    prop_assert_eq!(waiting.pop(UnixMs::new(at)), expected.map(|(_, _, sequence)| Sequence(sequence)));
                    expected.into_iter().for_each(|first| model.remove(first));
                }
                8 | 9 if !model.0.is_empty() => {
                    let victim = model.0[due as usize % model.0.len()];
                    waiting.remove(victim.0, UnixMs::new(victim.1), Sequence(victim.2));
                    model.remove(victim);
                }
                10 => now = now.saturating_sub(passed),
                _ => now += passed,
            }
            waiting.advance(UnixMs::new(now));
            assert_same(&waiting, &model, now);
        }
        let keys = model.0.iter().map(|(priority, due, sequence)| {
            (*priority, Key::at(UnixMs::new(*due), Sequence(*sequence)))
        });
        let mut loaded = Waiting::from_unsorted(keys.collect());
        loaded.advance(UnixMs::new(now));
        assert_same(&loaded, &model, now);
        while let Some(first) = model.first(u64::MAX) {
            prop_assert_eq!(waiting.pop(UnixMs::MAX), Some(Sequence(first.2)));
            prop_assert_eq!(loaded.pop(UnixMs::MAX), Some(Sequence(first.2)));
            model.remove(first);
        }
        prop_assert!(waiting.pop(UnixMs::MAX).is_none() && waiting.len() == 0);
    }
}
