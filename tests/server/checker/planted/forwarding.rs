//! Faults of forwarding, planted in small histories.

use super::{cancel, Script};
use crate::checker::history::{Act, Due, Entry, Look, Outcome, Span};
use crate::checker::report::Fault;

use Outcome::{Done, Nothing, Refused, Unknown};

/// An entry of the stream, added in the millisecond in which its message was due.
fn entry(payload: &str, due: i64) -> Entry {
    Entry { payload: payload.to_owned(), id: Some("m".to_owned()), due: Some(due), added: Some(due) }
}

impl Script {
    /// A look at the queue and at its target.
    fn look(&mut self, latest: i64, queue: &[&str], target: &[Entry]) -> &mut Self {
        let span = Span { called: self.time + 1, answered: self.time + 2, server: 0 };
        self.time += 2;
        let queue = Some(queue.iter().map(|payload| (*payload).to_owned()).collect());
        self.history.looks.push(Look { span, latest, queue, target: target.to_vec() });
        self
    }

    /// The last look, which finds the queue empty.
    #[track_caller]
    fn leaves(&mut self, target: &[Entry], faults: &[Fault]) {
        self.look(1_000, &[], target).finds(faults);
    }
}

#[test]
fn a_good_forwarding_is_not_blamed() {
    let mut s = Script::default();
    s.push(Done, "m/0", 50).look(40, &["m/0"], &[]).look(50, &[], &[entry("m/0", 50)]).act(Nothing, cancel());
    s.leaves(&[entry("m/0", 50)], &[]);
    Script::default().push(Unknown, "m/0", 50).leaves(&[], &[]);
    Script::default().push(Unknown, "m/0", 50).push(Nothing, "m/1", 50).leaves(&[entry("m/0", 50)], &[]);
    Script::default().push(Done, "m/0", 50).done(cancel()).leaves(&[], &[]);
}

#[test]
fn a_message_that_is_in_neither_is_found() {
    Script::default().push(Done, "m/0", 0).leaves(&[], &[Fault::Lost]);
    Script::default().push(Done, "m/0", 0).act(Nothing, cancel()).leaves(&[], &[Fault::Lost]);
    Script::default().push(Unknown, "m/0", 0).push(Nothing, "m/1", 0).leaves(&[], &[Fault::Lost]);
    // It was in the target.
    let mut s = Script::default();
    s.push(Unknown, "m/0", 0).look(5, &[], &[entry("m/0", 0)]).leaves(&[], &[Fault::Lost]);
}

#[test]
fn a_message_that_is_in_both_is_found() {
    let once = &[entry("m/0", 0)][..];
    let twice = &[entry("m/0", 0), entry("m/0", 0)][..];
    Script::default().push(Done, "m/0", 0).look(5, &["m/0"], once).leaves(once, &[Fault::Twice]);
    Script::default().push(Done, "m/0", 0).leaves(twice, &[Fault::Twice]);
    // A takeover is no excuse, because it loses the removal and the write together.
    let mut s = Script::default();
    s.push(Done, "m/0", 0).takeover().look(5, &["m/0"], once).leaves(once, &[Fault::Twice]);
    Script::default().push(Done, "m/0", 0).look(5, &[], once).takeover().look(6, &["m/0"], &[]).leaves(once, &[]);
}

#[test]
fn a_stranger_in_the_target_is_found() {
    Script::default().leaves(&[entry("m/0", 0)], &[Fault::Unexpected]);
    Script::default().push(Refused, "m/0", 0).leaves(&[entry("m/0", 0)], &[Fault::Unexpected]);
    let other = Entry { id: Some("n".into()), ..entry("m/0", 0) };
    Script::default().push(Done, "m/0", 0).leaves(&[other], &[Fault::Unexpected]);
}

#[test]
fn a_message_that_is_forwarded_early_is_found() {
    let seen = |latest: i64, entry: Entry, faults: &[Fault]| {
        let mut s = Script::default();
        s.push(Done, "m/0", 50).look(latest, &[], std::slice::from_ref(&entry)).leaves(&[entry], faults);
    };
    let element = Entry { id: None, due: None, added: None, ..entry("m/0", 0) };
    seen(49, element.clone(), &[Fault::Early]);
    seen(50, element, &[]);
    seen(50, Entry { added: Some(49), ..entry("m/0", 50) }, &[Fault::Early]);
    seen(50, entry("m/0", 49), &[Fault::Early]);
    let later = |outcome: Outcome, due: i64, faults: &[Fault]| {
        let mut s = Script::default();
        s.push(Done, "m/0", 50).act(outcome, Act::Reschedule { id: "m".into(), due: Due::at(70) });
        s.look(69, &[], &[entry("m/0", due)]).leaves(&[entry("m/0", due)], faults);
    };
    later(Unknown, 50, &[]);
    later(Done, 50, &[Fault::Early, Fault::Early]);
    later(Done, 70, &[Fault::Early]);
}

#[test]
fn a_cancelled_message_in_the_target_is_found() {
    let target = &[entry("m/0", 0)][..];
    Script::default().push(Done, "m/0", 0).done(cancel()).leaves(target, &[Fault::Returned]);
    Script::default().push(Done, "m/0", 0).act(Unknown, cancel()).leaves(target, &[]);
    // Another message of the same id was cancelled.
    Script::default().push(Done, "m/0", 0).push(Done, "m/1", 0).done(cancel()).leaves(target, &[]);
}

#[test]
fn a_failover_may_forget_only_a_forwarding_that_no_replica_confirmed() {
    let target = &[entry("m/0", 0)][..];
    let taken_over = |confirmed: bool, faults: &[Fault]| {
        let mut s = Script::default();
        s.push(Unknown, "m/0", 0).look(5, &[], target);
        if confirmed {
            s.done(Act::Confirm);
        }
        s.takeover().leaves(&[], faults);
    };
    taken_over(true, &[Fault::Lost]);
    taken_over(false, &[]);
    Script::default().push(Done, "m/0", 0).takeover().leaves(&[], &[]);
    Script::default().push(Done, "m/0", 0).done(cancel()).takeover().leaves(target, &[]);
}
