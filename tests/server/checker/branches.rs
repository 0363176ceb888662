//! The two histories that a partition makes of one, while the old master goes on and its replica has taken over. What
//! the old master was asked after that is abandoned, and the rest is judged like any other history with a takeover. A
//! receipt of the one never counts in the other.

use super::history::{Act, Delivery, Due, History, Op, Outcome, Span, Split, Turn};
use super::messages::Messages;
use super::report::{Fault, Report};
use std::collections::HashSet;

/// Moves what an old master was asked after the takeover to the abandoned calls, and counts each split as a takeover.
pub fn separate(history: &mut History) {
    for split in &history.splits.clone() {
        history.losses.push(split.at);
        let asked_it = |op: &Op| op.span.server == split.old && op.span.called < split.healed;
        let (abandoned, kept): (Vec<Op>, Vec<Op>) =
            history.ops.drain(..).partition(|op| asked_it(op) && op.span.called > split.at);
        history.ops = kept;
        history.abandoned.extend(abandoned);
        for op in history.ops.iter_mut().filter(|op| asked_it(op) && op.span.answered > split.at) {
            make_uncertain(op);
        }
        forget_the_rest(history, split);
    }
}

/// Drops what was seen of schedules, batches and the target of a forwarding on the old master, unless it certainly was
/// before the takeover. A pop that was under way may have delivered a run before.
fn forget_the_rest(history: &mut History, split: &Split) {
    let is_there = |span: &Span| span.server == split.old && span.called < split.healed;
    let is_abandoned = |span: &Span| is_there(span) && span.called > split.at;
    let may_be_abandoned = |span: &Span| is_there(span) && span.answered > split.at;
    let (unsure, sure) = history.series.drain(..).partition(|turn: &Turn| may_be_abandoned(&turn.span));
    history.series = sure;
    history.hidden.extend(unsure.into_iter().map(|turn: Turn| turn.span));
    history.hidden.retain(|span| !is_abandoned(span));
    history.batches.retain(|batch| !is_abandoned(&batch.span));
    history.followed.retain(|followed| !may_be_abandoned(&followed.span));
    history.looks.retain(|look| !may_be_abandoned(&look.span));
}

/// Makes a call one whose reply nobody saw, because it may have been carried out before the takeover or after it.
fn make_uncertain(op: &mut Op) {
    op.outcome = Outcome::Unknown;
    match &mut op.act {
        Act::Push { given, .. } => *given = None,
        Act::Pop { deliveries } => deliveries.clear(),
        Act::Ack { .. } | Act::Nack { .. } | Act::Extend { .. } => {}
        Act::Cancel { .. } | Act::Reschedule { .. } | Act::Confirm => {}
    }
}

/// Checks that nothing of the abandoned calls counts elsewhere, and counts the calls that the servers have forgotten.
pub fn check(history: &History, messages: &Messages<'_>, report: &mut Report) {
    report.abandoned = history.abandoned.iter().filter(|op| op.outcome != Outcome::Refused).count();
    let given: HashSet<&str> = history.abandoned.iter().flat_map(deliveries).map(|d| d.receipt.as_str()).collect();
    for delivery in messages.deliveries().map(|seen| seen.delivery) {
        if given.contains(delivery.receipt.as_str()) {
            report.note(Fault::Receipt, format!("the old master gave the same receipt: {delivery:?}"));
        }
    }
    for op in history.ops.iter().filter(|op| op.done()) {
        if receipt(op).is_some_and(|receipt| given.contains(receipt)) {
            report.note(Fault::Stale, format!("a receipt counted that the old master gave: {op:?}"));
        }
    }
    for split in &history.splits {
        refuses_from_then_on(history, split, report);
    }
    count_forgotten(history, messages, report);
}

fn deliveries(op: &Op) -> &[Delivery] {
    match &op.act {
        Act::Pop { deliveries } => deliveries,
        _ => &[],
    }
}

fn receipt(op: &Op) -> Option<&str> {
    match &op.act {
        Act::Ack { receipt } | Act::Nack { receipt, .. } | Act::Extend { receipt, .. } => Some(receipt),
        _ => None,
    }
}

/// Whether a call has certainly changed a queue.
fn changed_something(op: &Op) -> bool {
    op.done() && !matches!(&op.act, Act::Pop { deliveries } if deliveries.is_empty()) && !matches!(op.act, Act::Confirm)
}

/// A master that has refused a write because it has lost its replicas accepts nothing until it follows the new master.
fn refuses_from_then_on(history: &History, split: &Split, report: &mut Report) {
    let Some(refused) = split.refused else { return };
    let later = |op: &&Op| op.span.server == split.old && (refused..split.healed).contains(&op.span.called);
    for op in history.ops.iter().chain(&history.abandoned).filter(later).filter(|op| changed_something(op)) {
        report.note(Fault::Lost, format!("a master without replicas accepted {op:?}"));
    }
}

/// Counts the pushes and acks that were answered and that no server knows any more.
fn count_forgotten(history: &History, messages: &Messages<'_>, report: &mut Report) {
    let abandoned = |what: fn(&Act) -> bool| history.abandoned.iter().filter(|op| op.done() && what(&op.act)).count();
    report.forgotten_pushes = abandoned(|act| matches!(act, Act::Push { .. }));
    report.forgotten_acks = abandoned(|act| matches!(act, Act::Ack { .. }));
    for message in &messages.all {
        let is_seen = !message.deliveries.is_empty() || messages.may_be_gone(message);
        let is_forgotten = message.push.done() && messages.may_be_forgotten(message.push, u64::MAX) && !is_seen;
        report.forgotten_pushes += usize::from(is_forgotten);
        let came_back = |op: &&Op| message.deliveries.iter().any(|seen| op.span.before(&seen.op.span));
        report.forgotten_acks += messages.acks(message).filter(|op| op.done()).filter(came_back).count();
    }
}

/// A history of a master that is asked once before a takeover and goes on after it, in tests of the check.
struct Script(History);

impl Script {
    const OLD: u32 = 1;
    const NEW: u32 = 2;

    /// The replica has taken over at 100, and the old master follows it at 200.
    fn new(refused: Option<u64>) -> Script {
        let split = Split { old: Script::OLD, at: 100, refused, healed: 200 };
        Script(History { splits: vec![split], ..History::default() })
    }

    /// A call of a server that took a tick.
    fn asks(mut self, server: u32, called: u64, act: Act) -> Script {
        let span = Span { called, answered: called + 1, server };
        self.0.ops.push(Op { span, outcome: Outcome::Done, act });
        self
    }

    fn pushes(self, server: u32, called: u64, payload: &str) -> Script {
        let (name, payload) = (Some(payload.to_owned()), payload.to_owned());
        self.asks(
            server,
            called,
            Act::Push { name, payload, due: Due::at(0), group: None, replace: false, given: None },
        )
    }

    fn pops(self, server: u32, called: u64, id: &str, number: u64) -> Script {
        let (receipt, at) = (format!("{id}#{number}"), called as i64);
        let (id, payload) = (id.to_owned(), id.to_owned());
        let delivery = Delivery { id, payload, attempt: 1, receipt, earliest: at, latest: at, lease: 1_000 };
        self.asks(server, called, Act::Pop { deliveries: vec![delivery] })
    }

    fn acks(self, server: u32, called: u64, receipt: &str) -> Script {
        self.asks(server, called, Act::Ack { receipt: receipt.to_owned() })
    }

    #[track_caller]
    fn finds(mut self, faults: &[Fault]) -> Report {
        separate(&mut self.0);
        let report = super::check::check(&self.0);
        let found: Vec<Fault> = report.findings.iter().map(|(fault, _)| *fault).collect();
        assert_eq!(found, faults, "{report}");
        report
    }
}

#[test]
fn a_fault_between_two_sides_of_a_partition_is_found() {
    use Script as S;
    let both = || S::new(None).pushes(S::OLD, 10, "m").asks(S::OLD, 20, Act::Confirm);
    // Both sides deliver the message, and each ack counts on its own side.
    let good = both().pops(S::OLD, 110, "m", 1).pops(S::NEW, 120, "m", 2).acks(S::OLD, 130, "m#1");
    let report = good.acks(S::NEW, 140, "m#2").finds(&[]);
    assert_eq!((report.abandoned, report.forgotten_pushes, report.forgotten_acks), (2, 0, 1));
    // What was pushed to the old master is forgotten, and that is no fault.
    let report = both().pops(S::NEW, 120, "m", 2).acks(S::NEW, 140, "m#2").pushes(S::OLD, 150, "n").finds(&[]);
    assert_eq!((report.abandoned, report.forgotten_pushes, report.forgotten_acks), (1, 1, 0));
    // What a replica had confirmed is lost.
    both().finds(&[Fault::Lost]);
    // What the old master was told after the takeover reaches the new one.
    S::new(None).pushes(S::OLD, 110, "n").pops(S::NEW, 220, "n", 1).finds(&[Fault::Unexpected]);
    // A receipt counts on the other side.
    let crossed = both().pops(S::OLD, 110, "m", 1).pops(S::NEW, 120, "m", 2).acks(S::NEW, 210, "m#1");
    crossed.acks(S::NEW, 220, "m#2").finds(&[Fault::Stale]);
    // Both sides give the same receipt.
    let same = both().pops(S::OLD, 110, "m", 1).pops(S::NEW, 120, "m", 1).acks(S::NEW, 210, "m#1");
    same.finds(&[Fault::Receipt, Fault::Stale]);
    // Two consumers hold the message on the surviving side.
    let twice = both().pops(S::NEW, 120, "m", 1).pops(S::NEW, 130, "m", 2).acks(S::NEW, 210, "m#2");
    twice.finds(&[Fault::Attempt, Fault::Overlap]);
    // A master without replicas refuses a write and accepts a later one.
    let refusing = S::new(Some(150)).pushes(S::OLD, 140, "n");
    refusing.finds(&[]);
    S::new(Some(150)).pushes(S::OLD, 160, "n").finds(&[Fault::Lost]);
}
