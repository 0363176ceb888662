//! Checks groups: the number of messages of a group that are out at a time is limited, and they come in the order of
//! due time and push.
//!
//! A message occupies its group from its first delivery until it is removed. An ended lease, a retry and a reschedule
//! do not change that; a first delivery that was given back uncounted does. Runs with groups leave out `DQ.PROMOTE`,
//! after which the due times of messages are not known, and no message dies in them.

use super::history::{Act, Due, Op};
use super::leases::dues;
use super::messages::{Message, Messages, Seen};
use super::report::{Fault, Report};
use std::collections::BTreeMap;

/// A message of a group.
struct Member<'a> {
    message: &'a Message<'a>,
    /// Its due time, if nothing but its push can have set it.
    fixed: Option<Due>,
    /// When the first call began that may have removed it. A run on a slow disk has thousands of messages in a group,
    /// and each is compared with all of them: most were removed long before.
    may_end_at: u64,
    /// The same of calls that certainly came after its last delivery.
    is_over_at: u64,
}

impl<'a> Member<'a> {
    fn new(messages: &Messages<'_>, message: &'a Message<'a>, due: Due) -> Member<'a> {
        let fixed = (!has_moved(messages, message)).then_some(due);
        let ends = || messages.acks(message).chain(messages.removals(message));
        let is_after =
            |op: &&Op| op.possible() && message.deliveries.iter().all(|delivery| delivery.op.span.before(&op.span));
        let first = |called: Option<u64>| called.unwrap_or(u64::MAX);
        Member {
            message,
            fixed,
            may_end_at: first(ends().map(|op| op.span.called).min()),
            is_over_at: first(ends().filter(is_after).map(|op| op.span.called).min()),
        }
    }
}

/// Checks all groups of a queue in which `room` messages of one group may be out at a time.
pub fn check(messages: &Messages<'_>, room: usize, report: &mut Report) {
    let mut groups: BTreeMap<&str, Vec<Member<'_>>> = BTreeMap::new();
    for message in &messages.all {
        if let Act::Push { group: Some(group), due, .. } = &message.push.act {
            groups.entry(group).or_default().push(Member::new(messages, message, *due));
        }
    }
    for members in groups.values() {
        for member in members {
            for (nth, seen) in member.message.deliveries.iter().enumerate() {
                report.grouped += 1;
                group_has_room(messages, members, member.message, seen, room, report);
                // A message that was delivered before, and not given back uncounted, has its place already.
                if seen.delivery.attempt == 1 {
                    it_is_its_turn(messages, members, member, nth, room, report);
                }
            }
        }
    }
}

/// Whether a nack or a reschedule may have given a message another due time.
fn has_moved(messages: &Messages<'_>, message: &Message<'_>) -> bool {
    let nacks = message.deliveries.iter().flat_map(|seen| messages.with_receipt(&seen.delivery.receipt));
    let mut calls = nacks.chain(messages.with_id(message.id));
    calls.any(|op| matches!(op.act, Act::Nack { due: Some(_), .. } | Act::Reschedule { .. }))
}

/// A message is delivered only while fewer than `room` others occupy its group: they were delivered, and are not done.
fn group_has_room(
    messages: &Messages<'_>,
    members: &[Member<'_>],
    message: &Message<'_>,
    seen: &Seen<'_>,
    room: usize,
    report: &mut Report,
) {
    let not_over = members.iter().filter(|other| other.is_over_at >= seen.op.span.answered);
    let others = not_over.map(|other| other.message).filter(|other| !std::ptr::eq(*other, message));
    let occupying = |other: &&Message<'_>| other.deliveries.iter().any(|held| occupies(messages, other, held, seen));
    let out: Vec<&Message<'_>> = others.filter(occupying).collect();
    if room > 0 && out.len() >= room {
        let stories: String = out.iter().map(|other| messages.story(other)).collect();
        let what = format!("{} came while {} occupied its group{stories}", seen.delivery.receipt, out.len());
        report.find(Fault::Group, messages, message, what);
    }
}

/// Whether the message of an earlier delivery certainly still occupies its group when another one is delivered.
fn occupies(messages: &Messages<'_>, message: &Message<'_>, held: &Seen<'_>, seen: &Seen<'_>) -> bool {
    // Numbers tell the order, but not those of different servers.
    if held.delivery.number() >= seen.delivery.number() || seen.op.span.before(&held.op.span) {
        return false;
    }
    // One pop takes all of its messages at one instant.
    if std::ptr::eq(held.op, seen.op) {
        return true;
    }
    let between = |op: &Op| op.possible() && op.span.called < seen.op.span.answered && !op.span.before(&held.op.span);
    let mut ends = messages.acks(message).chain(messages.removals(message));
    !ends.any(between) && !may_be_given_back(messages, held, between) && !forgotten(messages, held, seen)
}

/// Whether a delivery may have been the only one of its message, and was given back uncounted: then the message no
/// longer occupies its group.
fn may_be_given_back(messages: &Messages<'_>, held: &Seen<'_>, between: impl Fn(&Op) -> bool) -> bool {
    let uncounted = |op: &&Op| matches!(op.act, Act::Nack { counts: false, .. }) && between(op);
    held.delivery.attempt == 1 && messages.with_receipt(&held.delivery.receipt).iter().any(uncounted)
}

fn forgotten(messages: &Messages<'_>, held: &Seen<'_>, seen: &Seen<'_>) -> bool {
    messages.may_be_forgotten(held.op, seen.op.span.answered)
}

/// A message is delivered for the first time only if no other message of its group waits that is due earlier, or due at
/// the same time and pushed earlier.
fn it_is_its_turn(
    messages: &Messages<'_>,
    members: &[Member<'_>],
    member: &Member<'_>,
    nth: usize,
    room: usize,
    report: &mut Report,
) {
    let (message, seen) = (member.message, &member.message.deliveries[nth]);
    let earlier = &message.deliveries[..nth];
    let receipts_rise = |nack: &Op| !messages.may_be_forgotten(seen.op, nack.span.answered);
    let all =
        member.fixed.map_or_else(|| dues(messages, message, earlier, &seen.op.span, receipts_rise), |due| vec![due]);
    let Some(own) = all.iter().map(|due| due.from).min() else { return };
    for other in members {
        let has_ended = other.may_end_at < seen.op.span.answered;
        if std::ptr::eq(other.message, message) || has_ended || !waits(messages, other.message, seen, room) {
            continue;
        }
        let by_push = other.message.push.span.before(&message.push.span);
        if latest(messages, other, seen).is_some_and(|due| due < own || due == own && by_push) {
            let what = format!("{} came before {}", seen.delivery.receipt, other.message.payload);
            report.find(Fault::Order, messages, message, format!("{what}{}", messages.story(other.message)));
        }
    }
}

/// Whether a message certainly waited when another one was delivered. If there is room for one, it may also occupy the
/// group, because nobody may be delivered then either; what certainly occupies it is checked for itself.
fn waits(messages: &Messages<'_>, message: &Message<'_>, seen: &Seen<'_>, room: usize) -> bool {
    let by = seen.op.span.answered;
    let push = message.push;
    if !push.done() || !push.span.before(&seen.op.span) || messages.may_be_forgotten(push, by) {
        return false;
    }
    // A pop whose reply was lost may have delivered it. Then it occupies the group, in which there may be more room.
    if room != 1 && messages.hidden_between(push.span.called, by) > 0 {
        return false;
    }
    let may_end = |op: &Op| op.span.called < by;
    let waits = before(message, seen).last().is_none_or(|last| {
        let may_wait = may_be_given_back(messages, last, |op| op.possible() && may_end(op));
        let was_given_back = |op: &Op| op.done() && op.span.before(&seen.op.span) && !messages.may_be_forgotten(op, by);
        match room {
            1 => may_wait || forgotten(messages, last, seen),
            _ => may_be_given_back(messages, last, was_given_back),
        }
    });
    waits
}

/// The deliveries of a message that were made before a delivery of another one.
fn before<'m, 'a>(message: &'m Message<'a>, seen: &Seen<'_>) -> &'m [Seen<'a>] {
    let number = seen.delivery.number();
    &message.deliveries[..message.deliveries.partition_point(|own| own.delivery.number() < number)]
}

/// The latest due time that a message that waits can have had when another one was delivered.
fn latest(messages: &Messages<'_>, member: &Member<'_>, seen: &Seen<'_>) -> Option<i64> {
    if let Some(due) = member.fixed {
        return Some(due.to);
    }
    let certain = |nack: &Op| nack.span.before(&seen.op.span);
    let all = dues(messages, member.message, before(member.message, seen), &seen.op.span, certain);
    all.iter().map(|due| due.to).max()
}
