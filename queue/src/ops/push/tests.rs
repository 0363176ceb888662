//! When a pushed message is due, and payloads that are too large.

use super::*;
use crate::settings::Settings;

#[test]
fn a_push_without_a_time_waits_for_the_delay_of_the_queue() {
    let mut queue = Queue::new(Settings { delay: DurationMs::new(500), ..Settings::default() });
    let mut due_of = |due: Option<Due>| {
        let message = NewMessage { due, ..NewMessage::default() };
        match queue.push(UnixMs::new(1_000), &mut Floor::default(), &message) {
            Pushed::Added { image, .. } => image.record.due.as_ms(),
            refused => panic!("{refused:?}"),
        }
    };
    let dues = [None, Some(Due::Now), Some(Due::After(DurationMs::new(7))), Some(Due::At(UnixMs::new(9)))];
    assert_eq!(dues.map(&mut due_of), [1_500, 1_000, 1_007, 9]);
}

#[test]
#[cfg_attr(miri, ignore = "Miri would fill four gigabytes")]
fn a_payload_whose_length_has_no_place_in_the_format_is_refused() {
    // The system gives zeros without memory until something is written.
    let payload = vec![0; PAYLOAD_MAX + 1];
    let (now, mut floor) = (UnixMs::new(1_760_000_000_000), Floor::default());
    for maxpayload in [0, PAYLOAD_MAX as u64 + 1] {
        let mut queue = Queue::new(Settings { maxpayload, ..Settings::default() });
        let message = NewMessage { payload: &payload, ..NewMessage::default() };
        assert_eq!(queue.push(now, &mut floor, &message), Pushed::TooLarge);
        let messages = [NewMessage::default(), message];
        let refused = queue.push_all(now, &mut floor, &messages, |_| ());
        assert_eq!((refused, queue.counts().total()), (Err(NotPushed::TooLarge(payload.len())), 0));
        assert!(queue.is_too_large(&payload) && !queue.is_too_large(&payload[1..]));
    }
}
