//! Faults of groups, planted in small histories.

use super::{push, Script, LEASE};
use crate::checker::history::{Act, Delivery, Due, Outcome};
use crate::checker::report::Fault;

use Outcome::{Done, Nothing, Unknown};

/// What is planted in the histories of one group.
trait Grouped {
    fn group(room: usize) -> Script;
    fn member(&mut self, outcome: Outcome, id: &str, due: i64) -> &mut Self;
    fn deliver(&mut self, each: &[(&str, i64, u64)]) -> &mut Self;
    fn acked(&mut self, outcome: Outcome, receipt: &str) -> &mut Self;
    fn all_acked(&mut self, receipts: &[&str]) -> &mut Self;
}

impl Grouped for Script {
    /// A queue in which at most `room` messages of a group may be out.
    fn group(room: usize) -> Script {
        let mut s = Script::default();
        s.history.group_room = room;
        s
    }

    /// A push to the group, due at an instant.
    fn member(&mut self, outcome: Outcome, id: &str, due: i64) -> &mut Self {
        let mut act = push(Some(id.to_owned()), id, due);
        if let Act::Push { group, .. } = &mut act {
            *group = Some("g".to_owned());
        }
        self.act(outcome, act)
    }

    /// One pop of messages, each with its attempt and the number of its receipt. The lease of an earlier delivery has
    /// ended.
    fn deliver(&mut self, each: &[(&str, i64, u64)]) -> &mut Self {
        let delivery = |(id, attempt, number): &(&str, i64, u64)| {
            let at = 1_000 + *number as i64 * LEASE;
            let (id, receipt) = ((*id).to_owned(), format!("{id}#{number}"));
            Delivery { payload: id.clone(), id, attempt: *attempt, receipt, earliest: at, latest: at, lease: LEASE }
        };
        self.done(Act::Pop { deliveries: each.iter().map(delivery).collect() })
    }

    fn acked(&mut self, outcome: Outcome, receipt: &str) -> &mut Self {
        self.act(outcome, Act::Ack { receipt: receipt.to_owned() })
    }

    fn all_acked(&mut self, receipts: &[&str]) -> &mut Self {
        receipts.iter().fold(self, |s, receipt| s.acked(Done, receipt))
    }
}

/// A nack that is not counted, and keeps the due time.
fn uncounted(receipt: &str) -> Act {
    Act::Nack { receipt: receipt.to_owned(), due: None, counts: false }
}

/// A nack after which a message waits for its backoff.
fn backoff(receipt: &str) -> Act {
    Act::Nack { receipt: receipt.to_owned(), due: Some(Due { from: 0, to: i64::MAX }), counts: true }
}

/// Two messages are pushed, and one is delivered; then something happens, and the other one is delivered.
fn between(happens: &[(Outcome, Act)], faults: &[Fault]) {
    let mut s = Script::group(1);
    s.member(Done, "a", 0).member(Done, "b", 0).deliver(&[("a", 1, 1)]);
    for (outcome, act) in happens {
        s.act(*outcome, act.clone());
    }
    s.deliver(&[("b", 1, 2)]).acked(Done, "b#2").acked(Unknown, "a#1").finds(faults);
}

#[test]
fn a_second_message_of_a_group_is_found() {
    let cancel = Act::Cancel { id: "a".into() };
    let ack = Act::Ack { receipt: "a#1".into() };
    let later = Act::Reschedule { id: "a".into(), due: Due::at(9_000) };
    let found = &[Fault::Group];
    // The lease has expired, which does not end the occupation, and neither does a retry.
    between(&[], found);
    between(&[(Done, backoff("a#1"))], found);
    between(&[(Done, later)], found);
    between(&[(Nothing, cancel.clone())], found);
    for end in [ack, cancel] {
        between(&[(Done, end.clone())], &[]);
        // The reply was lost.
        between(&[(Unknown, end)], &[]);
    }
    let both = |room: usize, faults: &[Fault]| {
        let mut s = Script::group(room);
        s.member(Done, "a", 0).member(Done, "b", 0).member(Done, "c", 0);
        s.deliver(&[("a", 1, 1), ("b", 1, 2), ("c", 1, 3)]).all_acked(&["a#1", "b#2", "c#3"]).finds(faults);
    };
    both(1, &[Fault::Group, Fault::Group]);
    both(2, &[Fault::Group]);
    both(0, &[]);
}

#[test]
fn only_an_uncounted_first_delivery_leaves_its_group() {
    // It was given back, and comes again in its turn.
    let mut s = Script::group(1);
    s.member(Done, "a", 0).deliver(&[("a", 1, 1)]).done(uncounted("a#1")).member(Done, "b", -5);
    s.deliver(&[("b", 1, 2)]).acked(Done, "b#2").deliver(&[("a", 1, 3)]).acked(Done, "a#3").finds(&[]);
    // It was delivered twice, and one of the deliveries counts.
    let mut s = Script::group(1);
    s.member(Done, "a", 0).member(Done, "b", 5).deliver(&[("a", 1, 1)]).deliver(&[("a", 2, 2)]);
    s.done(uncounted("a#2")).deliver(&[("b", 1, 3)]).acked(Done, "b#3").deliver(&[("a", 2, 4)]).acked(Done, "a#4");
    s.finds(&[Fault::Group]);
}

#[test]
fn a_message_of_a_group_out_of_turn_is_found() {
    let order = |first: (&str, i64), second: (&str, i64), faults: &[Fault]| {
        let mut s = Script::group(1);
        s.member(Done, first.0, first.1).member(Done, second.0, second.1);
        s.deliver(&[("b", 1, 1)]).acked(Done, "b#1").deliver(&[("a", 1, 2)]).acked(Done, "a#2").finds(faults);
    };
    order(("a", 10), ("b", 11), &[Fault::Order]);
    order(("b", 11), ("a", 10), &[Fault::Order]);
    // They are due at once, so the push decides.
    order(("a", 10), ("b", 10), &[Fault::Order]);
    order(("b", 10), ("a", 10), &[]);
    order(("a", 12), ("b", 11), &[]);
    // What was given back uncounted has its old place.
    let mut s = Script::group(1);
    s.member(Done, "a", 0).member(Done, "b", 5).deliver(&[("a", 1, 1)]).done(uncounted("a#1"));
    s.deliver(&[("b", 1, 2)]).acked(Done, "b#2").deliver(&[("a", 1, 3)]).acked(Done, "a#3").finds(&[Fault::Order]);
}

#[test]
fn what_may_not_wait_is_no_message_out_of_turn() {
    let passed = |outcome: Outcome, act: Option<(Outcome, Act)>, faults: &[Fault]| {
        let mut s = Script::group(1);
        s.member(outcome, "a", 10).member(Done, "b", 11);
        if let Some((outcome, act)) = act {
            s.act(outcome, act);
        }
        s.deliver(&[("b", 1, 1)]).acked(Done, "b#1").deliver(&[("a", 1, 2)]).acked(Done, "a#2").finds(faults);
    };
    passed(Done, None, &[Fault::Order]);
    passed(Unknown, None, &[]);
    let to = |due: i64| Act::Reschedule { id: "a".into(), due: Due::at(due) };
    passed(Done, Some((Done, to(12))), &[]);
    passed(Done, Some((Unknown, to(12))), &[]);
    passed(Done, Some((Unknown, to(5))), &[Fault::Order]);
    passed(Done, Some((Unknown, Act::Cancel { id: "a".into() })), &[]);
}

#[test]
fn a_pop_without_a_reply_may_have_taken_what_is_passed() {
    let passed = |room: usize, faults: &[Fault]| {
        let mut s = Script::group(room);
        s.member(Done, "a", 10).member(Done, "b", 11).act(Unknown, Act::Pop { deliveries: vec![] });
        s.deliver(&[("b", 1, 1)]).acked(Done, "b#1").deliver(&[("a", 2, 2)]).acked(Done, "a#2").finds(faults);
    };
    passed(1, &[Fault::Order]);
    passed(2, &[]);
}

#[test]
fn a_failover_may_forget_what_a_group_had_out() {
    let taken_over = |confirmed: bool, faults: &[Fault]| {
        let mut s = Script::group(1);
        s.member(Done, "a", 0).member(Done, "b", 5).done(Act::Confirm).deliver(&[("a", 1, 1)]);
        if confirmed {
            s.done(Act::Confirm);
        }
        s.takeover().deliver(&[("b", 1, 2)]).all_acked(&["b#2", "a#1"]).finds(faults);
    };
    taken_over(true, &[Fault::Group]);
    // Nobody of the group is out, but the one whose turn it is was there.
    taken_over(false, &[Fault::Order]);
}

#[test]
fn a_delivery_after_a_takeover_does_not_occupy_the_group_before_it() {
    // The new server has not seen the first delivery, and its clock is behind, so its receipts have lower numbers.
    let mut s = Script::group(1);
    s.member(Done, "a", 0).member(Done, "b", 5).deliver(&[("a", 1, 9)]).takeover_by_one_behind();
    s.deliver(&[("a", 1, 1)]).acked(Done, "a#1").deliver(&[("b", 1, 2)]).acked(Done, "b#2").finds(&[]);
}
