//! The check of a whole history: finds messages that were lost, never pushed, or delivered after completion.

use super::history::{Act, History, Op, Outcome};
use super::messages::{Message, Messages};
use super::report::{Fault, Report};
use super::{batches, branches, forwarding, groups, leases, limits, numbers, series};

/// Checks a history that ends with an empty queue.
pub fn check(history: &History) -> Report {
    let messages = Messages::of(history);
    let mut report = Report { attempted: messages.all.len(), ..Report::default() };
    for seen in &messages.strangers {
        report.note(Fault::Unexpected, format!("{:?} was never pushed", seen.delivery));
    }
    for message in &messages.all {
        count(&messages, message, &mut report);
        nothing_is_lost(&messages, message, &mut report);
        nothing_is_unexpected(&messages, message, &mut report);
        nothing_returns(&messages, message, &mut report);
        leases::check(&messages, message, &mut report);
    }
    numbers::check(history, &mut report);
    limits::check(history, &messages, &mut report);
    forwarding::check(history, &messages, &mut report);
    groups::check(&messages, history.group_room, &mut report);
    series::check(history, &mut report);
    batches::check(history, &mut report);
    branches::check(history, &messages, &mut report);
    report
}

fn count(messages: &Messages<'_>, message: &Message<'_>, report: &mut Report) {
    report.acknowledged += usize::from(acknowledged(messages, message.push));
    report.delivered += usize::from(!message.deliveries.is_empty());
    report.duplicated += usize::from(message.deliveries.len() > 1);
    let seen = message.forwarded || !message.deliveries.is_empty();
    report.recovered += usize::from(message.push.outcome == Outcome::Unknown && seen);
}

/// Whether the server acknowledged a push, and no takeover can have lost it since.
fn acknowledged(messages: &Messages<'_>, push: &Op) -> bool {
    push.done() && !messages.may_be_forgotten(push, u64::MAX)
}

/// The queue is empty at the end, so every acknowledged message was acked, cancelled or replaced, or it is lost.
fn nothing_is_lost(messages: &Messages<'_>, message: &Message<'_>, report: &mut Report) {
    if acknowledged(messages, message.push) && !messages.may_be_gone(message) {
        let fate = if message.deliveries.is_empty() { "never delivered" } else { "delivered, not acked, and gone" };
        report.find(Fault::Lost, messages, message, fate);
    }
    // The reply "the id is taken" confirms an earlier push of the same id: at least one of those messages must exist or
    // have existed.
    let Act::Push { name: Some(_), replace: false, .. } = &message.push.act else { return };
    if message.push.outcome != Outcome::Nothing || messages.may_be_forgotten(message.push, u64::MAX) {
        return;
    }
    let pushed_before = |other: &&Message<'_>| other.push.possible() && other.push.span.before(&message.push.span);
    let mut earlier = messages.all_with_id(message).filter(pushed_before).peekable();
    if earlier.peek().is_none() {
        report.find(Fault::Unexpected, messages, message, "its id was taken, and nobody had pushed it");
    } else if !earlier.any(|other| messages.may_be_gone(other)) {
        report.find(Fault::Lost, messages, message, "its id was taken, and no message of that id was delivered");
    }
}

fn nothing_is_unexpected(messages: &Messages<'_>, message: &Message<'_>, report: &mut Report) {
    let Act::Push { name, given, .. } = &message.push.act else { return };
    let mut find = |what: String| report.find(Fault::Unexpected, messages, message, what);
    for seen in &message.deliveries {
        if !message.push.possible() {
            find("delivered, though its push had been refused".to_owned());
        }
        if seen.op.span.before(&message.push.span) {
            find("delivered before it was pushed".to_owned());
        }
        for id in name.iter().chain(given) {
            if *id != seen.delivery.id {
                find(format!("delivered as {}, its id is {id}", seen.delivery.id));
            }
        }
    }
}

/// A message that was acked, cancelled or replaced is not delivered again.
fn nothing_returns(messages: &Messages<'_>, message: &Message<'_>, report: &mut Report) {
    for (n, seen) in message.deliveries.iter().enumerate() {
        // The ack counted, so this delivery was the last one at that time. A delivery with a later receipt was made
        // after the ack, or it was forgotten before the ack.
        let acks = messages.with_receipt(&seen.delivery.receipt).iter();
        for ack in acks.filter(|op| op.done() && matches!(op.act, Act::Ack { .. })) {
            for later in &message.deliveries[n + 1..] {
                let forgotten = messages.may_be_forgotten(ack, later.op.span.answered)
                    || messages.may_be_forgotten(later.op, ack.span.answered);
                if !forgotten {
                    let what = format!("{} came after the ack of {}", later.delivery.receipt, seen.delivery.receipt);
                    report.find(Fault::Returned, messages, message, what);
                }
            }
        }
        for op in messages.with_id(message.id).iter().filter(|op| message.push.span.before(&op.span)) {
            let absent = match (&op.act, op.outcome) {
                (Act::Cancel { .. } | Act::Push { replace: true, .. }, Outcome::Done) => {
                    !messages.may_be_forgotten(op, seen.op.span.answered)
                }
                // The message was not there. If its removal is forgotten, it comes back; otherwise it stays away.
                (Act::Cancel { .. }, Outcome::Nothing) => {
                    !messages.anything_forgotten(op.span.called, seen.op.span.answered)
                }
                _ => false,
            };
            if absent && op.span.before(&seen.op.span) {
                let what = format!("{} came after {:?}", seen.delivery.receipt, op.act);
                report.find(Fault::Returned, messages, message, what);
            }
        }
    }
}
