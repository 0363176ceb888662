//! Checks the other promises of the settings of a queue: its rate limit and its deduplication window.

use super::history::{Act, History, Op, Rate};
use super::messages::{Message, Messages};
use super::report::{Fault, Report};

pub fn check(history: &History, messages: &Messages<'_>, report: &mut Report) {
    if let Some(rate) = history.rate {
        no_burst(messages, rate, report);
    }
    if history.dedupes {
        for message in &messages.all {
            no_repeat(messages, message, report);
        }
    }
}

/// No span of the period holds more deliveries than the rate allows. Deliveries whose instant is not known exactly are
/// left out, and so are those that a takeover may have lost, because the new master does not know of them. Deliveries
/// by different clocks are not compared.
fn no_burst(messages: &Messages<'_>, rate: Rate, report: &mut Report) {
    let exact = messages.deliveries().filter(|seen| seen.delivery.earliest == seen.delivery.latest);
    let mut begun: Vec<_> = exact.map(|seen| (seen.delivery.earliest, seen.op)).collect();
    begun.sort_by_key(|(at, _)| *at);
    for (nth, (last, op)) in begun.iter().enumerate() {
        let window = begun[..=nth].iter().rev().take_while(|(at, _)| *at > last - rate.period);
        let by = op.span.answered;
        let counts = |earlier: &Op| {
            !messages.may_be_forgotten(earlier, by) && !messages.rewound_between(&earlier.span, &op.span)
        };
        let count = window.filter(|(_, earlier)| counts(earlier)).count();
        if count > rate.most {
            let Rate { most, period } = rate;
            report.note(Fault::Burst, format!("{count} deliveries in the {period} ms up to {last}, and not {most}"));
        }
    }
}

/// An id that was accepted is not accepted again, unless it was cancelled in between or replaces its message.
fn no_repeat(messages: &Messages<'_>, message: &Message<'_>, report: &mut Report) {
    if !message.push.done() || !matches!(message.push.act, Act::Push { name: Some(_), replace: false, .. }) {
        return;
    }
    let by = message.push.span.answered;
    for earlier in messages.all_with_id(message) {
        let accepted = earlier.push.done() && earlier.push.span.before(&message.push.span);
        let cancelled = messages.with_id(message.id).iter().any(|op| {
            let cancels = matches!(op.act, Act::Cancel { .. }) && op.possible();
            cancels && op.span.called < by && !op.span.before(&earlier.push.span)
        });
        if accepted && !cancelled && !messages.may_be_forgotten(earlier.push, by) {
            report.find(Fault::Again, messages, message, format!("its id was accepted for {}", earlier.payload));
        }
    }
}
