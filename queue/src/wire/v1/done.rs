//! Done messages.

use super::super::super::done::DoneMessage;
use super::super::super::id::Sequence;
use super::super::Refused;
use super::numbers::*;
use serde::{Deserialize, Serialize};
use serde_bytes::Bytes;

/// A done message: the sequence as a distance from that of the one before, the due time as a distance from the
/// sequence's instant, the deliveries, the instant of completion as a distance from the due time, the end as a distance
/// from that, the name, the result, and when its id was accepted, as a distance from the sequence's instant.
#[derive(Debug, Serialize, Deserialize)]
pub struct Done<'a>(
    i64,
    i64,
    u32,
    i64,
    i64,
    #[serde(borrow)] Option<&'a Bytes>,
    #[serde(borrow)] Option<&'a Bytes>,
    i64,
);

/// The wire form of done messages, with the first sequence as a distance from `base`.
pub fn done<'a>(messages: &[DoneMessage<'a>], base: u64) -> Vec<Done<'a>> {
    let mut last = base;
    let mut next = |live: &DoneMessage<'a>| {
        let sequence = live.sequence.0;
        let created = instant_of(sequence);
        Done(
            distance(sequence, std::mem::replace(&mut last, sequence)),
            time_distance(live.due, created),
            live.attempts,
            time_distance(live.done, live.due),
            time_distance(live.until, live.done),
            live.name.map(Bytes::new),
            live.result.map(Bytes::new),
            time_distance(live.accepted, created),
        )
    };
    messages.iter().map(&mut next).collect()
}

/// Converts back what [`done`] wrote. Returns an error if a value is out of its range.
pub fn live_done(messages: Vec<Done<'_>>, base: u64) -> Result<Vec<DoneMessage<'_>>, Refused> {
    let mut last = base;
    let next = |Done(from, due, attempts, done, until, name, result, accepted)| {
        last = at_distance(from, last);
        let created = instant_of(last);
        let due = time_at(due, created)?;
        let done = time_at(done, due)?;
        Ok(DoneMessage {
            sequence: Sequence(last),
            name: name.map(|name: &Bytes| &**name),
            due,
            attempts,
            done,
            until: time_at(until, done)?,
            result: result.map(|result: &Bytes| &**result),
            accepted: time_at(accepted, created)?,
        })
    };
    messages.into_iter().map(next).collect()
}
