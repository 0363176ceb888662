//! Checks the deliveries of one message: the earliest time of each delivery, and its attempt.

use super::history::{Act, Due, Op, Outcome, Span};
use super::messages::{Message, Messages, Seen};
use super::report::{Fault, Report};

/// Checks the deliveries of a message.
pub fn check(messages: &Messages<'_>, message: &Message<'_>, report: &mut Report) {
    for (n, seen) in message.deliveries.iter().enumerate() {
        let earlier = &message.deliveries[..n];
        attempts_count(messages, message, earlier, seen, report);
        nobody_else_holds_it(messages, message, earlier, seen, report);
        it_is_due(messages, message, earlier, seen, report);
        receipts_hold(messages, message, &message.deliveries[n + 1..], seen, report);
    }
}

/// Attempts rise by one, except for deliveries that no client saw, those that a takeover lost, and those that were
/// given back uncounted.
fn attempts_count(messages: &Messages<'_>, message: &Message<'_>, earlier: &[Seen], seen: &Seen, report: &mut Report) {
    let attempt = seen.delivery.attempt;
    let by = seen.op.span.answered;
    let uncounted = |before: &Seen, certain: bool| {
        messages.with_receipt(&before.delivery.receipt).iter().any(|op| {
            let outcome = if certain { op.done() && !messages.may_be_forgotten(op, by) } else { op.possible() };
            // One that was called later counted for a server that had forgotten this delivery.
            outcome && matches!(op.act, Act::Nack { counts: false, .. }) && op.span.called < by
        })
    };
    // The attempts that certainly counted, and those that may have counted, when a delivery had ended.
    let least = |before: &Seen| before.delivery.attempt - i64::from(uncounted(before, false));
    let most = |before: &Seen| before.delivery.attempt - i64::from(uncounted(before, true));
    for before in earlier.iter().filter(|before| least(before) >= attempt) {
        if !messages.may_be_forgotten(before.op, by) {
            let what = format!("attempt {attempt} came after attempt {}", before.delivery.attempt);
            report.find(Fault::Attempt, messages, message, what);
        }
    }
    let last = earlier.iter().rev().find(|before| least(before) < attempt);
    let (counted, since) = last.map_or((0, message.push.span.called), |last| (most(last), last.op.span.called));
    let missing = usize::try_from(attempt - counted - 1).unwrap_or(0);
    if missing > 0 && missing > messages.hidden_between(since, by) {
        report.find(Fault::Attempt, messages, message, format!("attempt {attempt} came after attempt {counted}"));
    }
}

/// A message never has two leases at once: it is delivered again only after its deadline or after a nack.
fn nobody_else_holds_it(
    messages: &Messages<'_>,
    message: &Message<'_>,
    earlier: &[Seen],
    seen: &Seen,
    report: &mut Report,
) {
    let by = seen.op.span.answered;
    // Leases before the last one had ended when that began, by a clock that may have been set back since. So one that
    // may have been lost counts as well: if it was not, only its lease matters.
    let Some(last) = earlier.iter().rposition(|before| !messages.may_be_forgotten(before.op, by)) else { return };
    let holds_it = |before: &Seen| {
        let asked = messages.with_receipt(&before.delivery.receipt);
        let given_back = |op: &Op| matches!(op.act, Act::Nack { .. }) && op.possible() && op.span.called < by;
        let by_another_clock = messages.leases_may_have_ended_between(&before.op.span, &seen.op.span);
        seen.delivery.latest < deadline(messages, before, by)
            && !by_another_clock
            && !asked.iter().any(|op| given_back(op))
    };
    if earlier[last..].iter().all(holds_it) {
        let before = &earlier[last];
        let (first, second, at) = (&before.delivery.receipt, &seen.delivery.receipt, seen.delivery.latest);
        let what = format!("{second} came at {at}, while {first} was held until {}", deadline(messages, before, by));
        report.find(Fault::Overlap, messages, message, what);
    }
}

/// The earliest instant at which the lease of a delivery may have ended, including the extensions that were called
/// before `by`.
fn deadline(messages: &Messages<'_>, seen: &Seen, by: u64) -> i64 {
    let mut end = seen.delivery.earliest + seen.delivery.lease;
    let mut extensions: Vec<&Op> = messages.with_receipt(&seen.delivery.receipt).to_vec();
    extensions.sort_by_key(|op| op.span.called);
    for op in extensions.into_iter().filter(|op| op.span.called < by) {
        let Act::Extend { lease, deadline, .. } = op.act else { continue };
        end = match op.outcome {
            Outcome::Done if !messages.may_be_forgotten(op, by) => deadline,
            Outcome::Done => end.min(deadline),
            Outcome::Unknown if messages.rewound_between(&seen.op.span, &op.span) => i64::MIN,
            // The extension starts the lease again at an instant after the delivery.
            Outcome::Unknown => end.min(seen.delivery.earliest + lease),
            Outcome::Nothing | Outcome::Refused => end,
        };
    }
    end
}

/// A message is never delivered before the due time that its push, a nack or a reschedule gave it.
fn it_is_due(messages: &Messages<'_>, message: &Message<'_>, earlier: &[Seen], seen: &Seen, report: &mut Report) {
    // A nack counted, so deliveries with later receipts were made after it, or were forgotten before it.
    let before = |nack: &Op| !messages.may_be_forgotten(seen.op, nack.span.answered);
    let due = dues(messages, message, earlier, &seen.op.span, before).iter().map(|due| due.from).min();
    if let Some(due) = due.filter(|due| seen.delivery.latest < *due) {
        let what = format!("{} came at {}, it was due at {due}", seen.delivery.receipt, seen.delivery.latest);
        report.find(Fault::Early, messages, message, what);
    }
}

/// The due times that a message can have had when a call was carried out, after these deliveries: those that its push,
/// a nack or a reschedule gave it, without those that another one certainly replaced by then. `before` says whether a
/// nack that counted certainly came before the call.
pub fn dues(
    messages: &Messages<'_>,
    message: &Message<'_>,
    earlier: &[Seen<'_>],
    call: &Span,
    before: impl Fn(&Op) -> bool,
) -> Vec<Due> {
    let nacks = earlier.iter().flat_map(|seen| messages.with_receipt(&seen.delivery.receipt));
    let given = nacks.chain(messages.with_id(message.id)).copied().filter(|op| {
        matches!(op.act, Act::Nack { due: Some(_), .. } | Act::Reschedule { .. })
            && op.possible()
            && op.span.called < call.answered
            && !op.span.before(&message.push.span)
    });
    let given: Vec<&Op> = given.chain([message.push]).collect();
    // The calls that certainly came before and certainly concerned this message. They override the due time that was
    // given before them.
    let certain = |op: &Op| {
        op.done()
            && !messages.may_be_forgotten(op, call.answered)
            && match op.act {
                Act::Nack { .. } => before(op),
                Act::Reschedule { .. } => op.span.before(call) && messages.alone(message),
                _ => false,
            }
    };
    let overruled = |op: &Op| given.iter().any(|later| op.span.before(&later.span) && certain(later));
    given.iter().filter(|op| !overruled(op)).filter_map(|op| due(op)).collect()
}

fn due(op: &Op) -> Option<Due> {
    match op.act {
        Act::Push { due, .. } | Act::Reschedule { due, .. } => Some(due),
        Act::Nack { due, .. } => due,
        _ => None,
    }
}

/// A receipt counts until its delivery ends, and no longer counts after a later delivery.
fn receipts_hold(messages: &Messages<'_>, message: &Message<'_>, later: &[Seen], seen: &Seen, report: &mut Report) {
    let asked = messages.with_receipt(&seen.delivery.receipt);
    for op in asked {
        let stale = later
            .iter()
            .find(|later| later.op.span.before(&op.span) && !messages.may_be_forgotten(later.op, op.span.answered));
        if let (Some(later), true) = (stale, op.done()) {
            let what = format!("{:?} counted after {} was delivered", op.act, later.delivery.receipt);
            report.find(Fault::Stale, messages, message, what);
        }
        if op.outcome != Outcome::Nothing || !matches!(op.act, Act::Ack { .. }) {
            continue;
        }
        let by = op.span.answered;
        let cause = |other: &&Op| {
            !std::ptr::eq(*other, *op)
                && other.possible()
                && other.span.called < by
                && !other.span.before(&message.push.span)
                && !matches!(other.act, Act::Extend { .. } | Act::Push { replace: false, .. })
        };
        let explained = asked.iter().copied().chain(messages.with_id(message.id).iter().copied());
        let explained = explained.filter(|other| !std::ptr::eq(*other, message.push)).any(|other| cause(&other))
            || later.iter().any(|later| later.op.span.called < by)
            || messages.hidden_between(seen.op.span.called, by) > 0
            || messages.may_be_forgotten(seen.op, by);
        if !explained {
            let what = format!("the ack of {} did not count", seen.delivery.receipt);
            report.find(Fault::Refused, messages, message, what);
        }
    }
}
