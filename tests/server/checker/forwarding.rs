//! Checks forwarding: each message is in the queue or in the target, once, and not before it is due.

use super::history::{Act, Entry, History, Look, Op};
use super::leases::dues;
use super::messages::{Message, Messages};
use super::report::{Fault, Report};
use std::collections::{HashMap, HashSet};

/// Checks what was seen of the target. The last look saw all of it, when the queue was empty.
pub fn check(history: &History, messages: &Messages<'_>, report: &mut Report) {
    let Some(last) = history.looks.last() else { return };
    report.forwarded = last.target.len();
    let by_payload: HashMap<&str, &Message<'_>> =
        messages.all.iter().map(|message| (message.payload, message)).collect();
    // The first look that saw each entry.
    let mut first: HashMap<&str, (&Look, &Entry)> = HashMap::new();
    for look in &history.looks {
        never_in_both(look, report);
        for entry in &look.target {
            let known = first.entry(&entry.payload).or_insert((look, entry));
            if look.latest < known.0.latest {
                *known = (look, entry);
            }
        }
    }
    let landed: HashSet<&str> = last.target.iter().map(|entry| entry.payload.as_str()).collect();
    for (payload, (look, entry)) in &first {
        let Some(message) = by_payload.get(payload) else {
            report.note(Fault::Unexpected, format!("{entry:?} was never pushed"));
            continue;
        };
        it_stays(history, messages, message, look, &landed, report);
        it_was_due(messages, message, look, entry, report);
    }
    for entry in &last.target {
        if let Some(message) = by_payload.get(entry.payload.as_str()) {
            it_is_expected(messages, message, entry, last, report);
        }
    }
}

/// At no instant is a message both in the queue and in the target, or twice in the target.
fn never_in_both(look: &Look, report: &mut Report) {
    let mut target = HashSet::new();
    for entry in &look.target {
        if !target.insert(&entry.payload) {
            report.note(Fault::Twice, format!("{entry:?} is twice in the target"));
        }
    }
    for payload in look.queue.iter().flatten().filter(|payload| target.contains(payload)) {
        report.note(Fault::Twice, format!("{payload} is in the queue and in the target"));
    }
}

/// What was in the target stays there, unless a takeover can have lost it.
fn it_stays(
    history: &History,
    messages: &Messages<'_>,
    message: &Message<'_>,
    look: &Look,
    landed: &HashSet<&str>,
    report: &mut Report,
) {
    let by = history.looks.last().map_or(0, |last| last.span.answered);
    if !landed.contains(message.payload) && !messages.span_may_be_forgotten(&look.span, by) {
        report.find(Fault::Lost, messages, message, "it was in the target, and is no longer");
    }
}

/// No message is seen in the target before its due time, and the target tells the due time that it had.
fn it_was_due(messages: &Messages<'_>, message: &Message<'_>, look: &Look, entry: &Entry, report: &mut Report) {
    let dues = dues(messages, message, &[], &look.span, |_| false);
    let least = dues.iter().map(|due| due.from).min().unwrap_or(i64::MIN);
    if look.latest < least {
        let what = format!("it was in the target at {}, and due at {least}", look.latest);
        report.find(Fault::Early, messages, message, what);
    }
    let (Some(told), Some(added)) = (entry.due, entry.added) else { return };
    if added < told {
        report.find(Fault::Early, messages, message, format!("it was added to the target at {added}: {entry:?}"));
    }
    if !dues.iter().any(|due| due.from <= told && told <= due.to) {
        report.find(Fault::Early, messages, message, format!("the target tells a wrong due time: {entry:?}"));
    }
}

/// A message in the target was accepted, has its own id, and was not cancelled.
fn it_is_expected(messages: &Messages<'_>, message: &Message<'_>, entry: &Entry, last: &Look, report: &mut Report) {
    if !message.push.possible() {
        report.find(Fault::Unexpected, messages, message, "it was forwarded, though its push had been refused");
    }
    if entry.id.as_deref().is_some_and(|id| message.id.is_some_and(|own| own != id)) {
        report.find(Fault::Unexpected, messages, message, format!("it was forwarded as {entry:?}"));
    }
    let cancels = |op: &&&Op| {
        matches!(op.act, Act::Cancel { .. })
            && op.done()
            && message.push.span.before(&op.span)
            && !messages.may_be_forgotten(op, last.span.answered)
    };
    // If the id was pushed only once, the cancellation removed this message.
    if messages.alone(message) && messages.with_id(message.id).iter().any(|op| cancels(&op)) {
        report.find(Fault::Returned, messages, message, "it was cancelled, and is in the target");
    }
}
