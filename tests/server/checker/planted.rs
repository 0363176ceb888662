//! Tests of the checker itself: it finds every fault that is planted in a small history.

mod forwarding;
mod groups;

use super::check::check;
use super::history::{Act, Delivery, Due, History, Op, Outcome, Rate, Rewind, Span};
use super::report::{Fault, Report};

/// A history that a test writes call by call. Each call ends before the next one begins.
#[derive(Default)]
struct Script {
    history: History,
    time: u64,
    server: u32,
}

const LEASE: i64 = 100;

impl Script {
    fn act(&mut self, outcome: Outcome, act: Act) -> &mut Self {
        let span = Span { called: self.time + 1, answered: self.time + 2, server: self.server };
        self.time += 2;
        self.history.ops.push(Op { span, outcome, act });
        self
    }

    fn done(&mut self, act: Act) -> &mut Self {
        self.act(Outcome::Done, act)
    }

    /// A push of `m`, due at an instant.
    fn push(&mut self, outcome: Outcome, payload: &str, due: i64) -> &mut Self {
        let name = Some("m".to_owned());
        self.act(outcome, push(name, payload, due))
    }

    /// A delivery of `m` at an instant.
    fn pop(&mut self, payload: &str, attempt: i64, number: u64, at: i64) -> &mut Self {
        let receipt = format!("m#{number}");
        let (id, payload) = ("m".to_owned(), payload.to_owned());
        let delivery = Delivery { id, payload, attempt, receipt, earliest: at, latest: at, lease: LEASE };
        self.done(Act::Pop { deliveries: vec![delivery] })
    }

    fn ack(&mut self, outcome: Outcome, number: u64) -> &mut Self {
        self.act(outcome, Act::Ack { receipt: format!("m#{number}") })
    }

    /// The master is lost, and its replica takes over.
    fn takeover(&mut self) -> &mut Self {
        self.time += 1;
        self.history.losses.push(self.time);
        self
    }

    /// The same, and the clock of the replica is behind: it does not know the numbers that were lost, and gives lower
    /// ones.
    fn takeover_by_one_behind(&mut self) -> &mut Self {
        self.takeover().server += 1;
        self.history.rewinds.push(Rewind { begun: self.time, over: self.time, apart: true });
        self
    }

    fn check(&self) -> Report {
        check(&self.history)
    }

    /// Checks that exactly these faults are found.
    #[track_caller]
    fn finds(&self, faults: &[Fault]) {
        let report = self.check();
        let found: Vec<Fault> = report.findings.iter().map(|(fault, _)| *fault).collect();
        assert_eq!(found, faults, "{report}");
    }
}

use Outcome::{Done, Nothing, Refused, Unknown};

fn cancel() -> Act {
    Act::Cancel { id: "m".to_owned() }
}

fn nack(number: u64, due: i64) -> Act {
    Act::Nack { receipt: format!("m#{number}"), due: Some(Due::at(due)), counts: true }
}

/// A push that replaces nothing.
fn push(name: Option<String>, payload: &str, due: i64) -> Act {
    let payload = payload.to_owned();
    Act::Push { name, payload, due: Due::at(due), group: None, replace: false, given: None }
}

#[test]
fn a_good_history_is_not_blamed() {
    let mut s = Script::default();
    s.push(Unknown, "m/0", 50).push(Nothing, "m/1", 60).pop("m/0", 1, 1, 50).pop("m/0", 2, 2, 150);
    s.done(nack(2, 170)).pop("m/0", 3, 3, 170);
    s.done(Act::Extend { receipt: "m#3".into(), lease: LEASE, deadline: 290 });
    s.pop("m/0", 4, 4, 290).ack(Nothing, 3).ack(Done, 4).act(Nothing, cancel());
    let report = s.check();
    let numbers = [report.attempted, report.acknowledged, report.delivered, report.duplicated, report.recovered];
    assert_eq!(numbers, [2, 0, 1, 1, 1], "{report}");
    s.finds(&[]);
}

#[test]
fn a_lost_message_is_found() {
    Script::default().push(Done, "m/0", 0).finds(&[Fault::Lost]);
    // The message was delivered once, and then it disappeared.
    Script::default().push(Done, "m/0", 0).pop("m/0", 1, 1, 0).finds(&[Fault::Lost]);
    // The reply "taken" confirms the push whose reply was lost.
    Script::default().push(Unknown, "m/0", 0).push(Nothing, "m/1", 0).finds(&[Fault::Lost]);
    Script::default().push(Done, "m/0", 0).act(Nothing, cancel()).finds(&[Fault::Lost]);
    // The server made no promise.
    Script::default().push(Unknown, "m/0", 0).finds(&[]);
    // The reply that was lost may have been a success.
    Script::default().push(Done, "m/0", 0).act(Unknown, cancel()).finds(&[]);
    Script::default().push(Done, "m/0", 0).pop("m/0", 1, 1, 0).ack(Unknown, 1).finds(&[]);
}

#[test]
fn an_unexpected_message_is_found() {
    Script::default().pop("m/0", 1, 1, 0).finds(&[Fault::Unexpected]);
    Script::default().push(Refused, "m/0", 0).pop("m/0", 1, 1, 0).ack(Done, 1).finds(&[Fault::Unexpected]);
    Script::default().push(Nothing, "m/0", 0).finds(&[Fault::Unexpected]);
    Script::default().pop("m/0", 1, 1, 0).push(Done, "m/0", 0).ack(Done, 1).finds(&[Fault::Unexpected]);
}

#[test]
fn a_message_that_returns_is_found() {
    let mut s = Script::default();
    s.push(Done, "m/0", 0).pop("m/0", 1, 1, 0).ack(Done, 1).pop("m/0", 2, 2, 900);
    s.finds(&[Fault::Returned]);
    let mut s = Script::default();
    s.push(Done, "m/0", 0).done(cancel()).pop("m/0", 1, 1, 900).ack(Done, 1);
    s.finds(&[Fault::Returned]);
    let mut s = Script::default();
    let mut again = push(Some("m".into()), "m/1", 0);
    if let Act::Push { replace, .. } = &mut again {
        *replace = true;
    }
    s.push(Done, "m/0", 0).done(again).pop("m/0", 1, 1, 900).ack(Done, 1);
    s.finds(&[Fault::Returned, Fault::Lost]);
}

#[test]
fn an_early_delivery_is_found() {
    Script::default().push(Done, "m/0", 50).pop("m/0", 1, 1, 49).ack(Done, 1).finds(&[Fault::Early]);
    let mut s = Script::default();
    s.push(Done, "m/0", 0).pop("m/0", 1, 1, 0).done(nack(1, 70)).pop("m/0", 2, 2, 69).ack(Done, 2);
    s.finds(&[Fault::Early]);
    let later = Act::Reschedule { id: "m".into(), due: Due::at(70) };
    let mut s = Script::default();
    s.push(Done, "m/0", 50).done(later.clone()).pop("m/0", 1, 1, 69).ack(Done, 1);
    s.finds(&[Fault::Early]);
    // It is not known whether the message was rescheduled.
    Script::default().push(Done, "m/0", 50).act(Unknown, later).pop("m/0", 1, 1, 50).ack(Done, 1).finds(&[]);
}

#[test]
fn a_double_delivery_is_found() {
    let mut s = Script::default();
    s.push(Done, "m/0", 0).pop("m/0", 1, 1, 0).pop("m/0", 2, 2, 99).ack(Done, 2);
    s.finds(&[Fault::Overlap]);
    let longer = Act::Extend { receipt: "m#1".into(), lease: 200, deadline: 250 };
    let mut s = Script::default();
    s.push(Done, "m/0", 0).pop("m/0", 1, 1, 0).done(longer.clone()).pop("m/0", 2, 2, 249).ack(Done, 2);
    s.finds(&[Fault::Overlap]);
    // The reply was lost, so the lease may be unchanged, but it cannot be shorter.
    let mut s = Script::default();
    s.push(Done, "m/0", 0).pop("m/0", 1, 1, 0).act(Unknown, longer.clone()).pop("m/0", 2, 2, 100).ack(Done, 2);
    s.finds(&[]);
    let mut s = Script::default();
    s.push(Done, "m/0", 0).pop("m/0", 1, 1, 0).act(Unknown, longer).pop("m/0", 2, 2, 99).ack(Done, 2);
    s.finds(&[Fault::Overlap]);
    // The lease ended by the clock of a master whose replica is behind and knows the second delivery.
    for (third, faults) in [(20, &[][..]), (19, &[Fault::Overlap])] {
        let mut s = Script::default();
        s.push(Done, "m/0", 0).pop("m/0", 1, 1, 0).done(Act::Confirm).pop("m/0", 2, 2, 100).takeover_by_one_behind();
        s.done(Act::Extend { receipt: "m#2".into(), lease: 10, deadline: 20 });
        s.pop("m/0", 3, 3, third).ack(Done, 3).finds(faults);
    }
    // The queue was moved to a server whose clock is ahead, which ends all leases, and back.
    for (moves, apart, faults) in [(2, true, &[][..]), (1, true, &[Fault::Overlap]), (2, false, &[Fault::Overlap])] {
        let mut s = Script::default();
        s.push(Done, "m/0", 0).pop("m/0", 1, 1, 0);
        s.history.rewinds = vec![Rewind { begun: s.time, over: s.time, apart }; moves];
        s.pop("m/0", 2, 2, 99).ack(Done, 2).finds(faults);
    }
}

#[test]
fn a_repeated_receipt_is_found() {
    let mut s = Script::default();
    s.push(Done, "m/0", 0).pop("m/0", 1, 7, 0).pop("m/0", 2, 7, 100).ack(Unknown, 7);
    s.finds(&[Fault::Receipt]);
}

#[test]
fn a_repeated_id_is_found() {
    let push = |payload: &str, id: &str| {
        let mut act = push(None, payload, 0);
        if let Act::Push { given, .. } = &mut act {
            *given = Some(id.to_owned());
        }
        act
    };
    let mut s = Script::default();
    s.done(push("a", "5-0")).done(push("b", "5-0"));
    assert_eq!(s.check().count(Fault::Id), 2);
    let mut s = Script::default();
    s.done(push("a", "5-1")).done(push("b", "5-0"));
    assert_eq!(s.check().count(Fault::Id), 1);
}

#[test]
fn an_attempt_out_of_turn_is_found() {
    let mut s = Script::default();
    s.push(Done, "m/0", 0).pop("m/0", 2, 1, 0).ack(Done, 1);
    s.finds(&[Fault::Attempt]);
    let mut s = Script::default();
    s.push(Done, "m/0", 0).pop("m/0", 1, 1, 0).pop("m/0", 1, 2, 100).ack(Done, 2);
    s.finds(&[Fault::Attempt]);
    // A delivery that was given back uncounted is no attempt; if the reply was lost, it may be one.
    let uncounted = || Act::Nack { receipt: "m#1".into(), due: None, counts: false };
    let given_back = |outcome: Outcome, attempt: i64, faults: &[Fault]| {
        let mut s = Script::default();
        s.push(Done, "m/0", 0).pop("m/0", 1, 1, 0).act(outcome, uncounted()).pop("m/0", attempt, 2, 100).ack(Done, 2);
        s.finds(faults);
    };
    given_back(Done, 1, &[]);
    given_back(Done, 2, &[Fault::Attempt]);
    given_back(Unknown, 1, &[]);
    given_back(Unknown, 2, &[]);
    // It is given back to a server that has forgotten the second attempt.
    let mut s = Script::default();
    s.push(Done, "m/0", 0).pop("m/0", 1, 1, 0).pop("m/0", 2, 2, 100).takeover().done(uncounted());
    s.pop("m/0", 1, 3, 120).ack(Done, 3).finds(&[]);
    // A pop whose reply was lost has delivered the message.
    let mut s = Script::default();
    s.push(Done, "m/0", 0).act(Unknown, Act::Pop { deliveries: vec![] }).pop("m/0", 2, 2, 0).ack(Done, 2);
    s.finds(&[]);
}

#[test]
fn a_receipt_valid_too_long_or_too_briefly_is_found() {
    let mut s = Script::default();
    s.push(Done, "m/0", 0).pop("m/0", 1, 1, 0).pop("m/0", 2, 2, 100).done(nack(1, 0)).ack(Done, 2);
    s.finds(&[Fault::Stale]);
    let mut s = Script::default();
    s.push(Done, "m/0", 0).pop("m/0", 1, 1, 0).ack(Nothing, 1).pop("m/0", 2, 2, 100).ack(Done, 2);
    s.finds(&[Fault::Refused]);
}

#[test]
fn a_failover_may_forget_only_writes_that_no_replica_confirmed() {
    Script::default().push(Done, "m/0", 0).takeover().finds(&[]);
    Script::default().push(Done, "m/0", 0).done(Act::Confirm).takeover().finds(&[Fault::Lost]);
    Script::default().takeover().push(Done, "m/0", 0).finds(&[Fault::Lost]);
    // A confirmation by the new master says nothing about what the old master had answered.
    Script::default().push(Done, "m/0", 0).takeover().done(Act::Confirm).finds(&[]);
    // The delivery and the ack are lost, so the previous delivery counts again.
    let mut s = Script::default();
    s.push(Done, "m/0", 0).pop("m/0", 1, 1, 0).done(Act::Confirm).pop("m/0", 2, 2, 100).ack(Done, 2).takeover();
    s.ack(Done, 1).finds(&[]);
    let delivered_again = |s: &mut Script| {
        s.pop("m/0", 1, 2, 10).ack(Done, 2);
    };
    let mut s = Script::default();
    s.push(Done, "m/0", 0).done(Act::Confirm).pop("m/0", 1, 1, 0).ack(Done, 1).takeover();
    delivered_again(&mut s);
    s.finds(&[]);
    let mut s = Script::default();
    s.push(Done, "m/0", 0).pop("m/0", 1, 1, 0).ack(Done, 1).done(Act::Confirm).takeover();
    delivered_again(&mut s);
    s.finds(&[Fault::Returned, Fault::Attempt, Fault::Overlap]);
}

#[test]
fn a_burst_beyond_the_rate_is_found() {
    let burst = |third: i64| {
        let mut s = Script::default();
        s.history.rate = Some(Rate { most: 2, period: 100 });
        for (nth, at) in [(0, 0), (1, 10), (2, third)] {
            let (name, payload, receipt) = (format!("m{nth}"), format!("m/{nth}"), format!("m{nth}#{nth}"));
            s.done(push(Some(name.clone()), &payload, 0));
            let delivery = Delivery {
                id: name,
                payload,
                attempt: 1,
                receipt: receipt.clone(),
                earliest: at,
                latest: at,
                lease: LEASE,
            };
            s.done(Act::Pop { deliveries: vec![delivery] }).done(Act::Ack { receipt });
        }
        s
    };
    burst(100).finds(&[]);
    burst(99).finds(&[Fault::Burst]);
    // The new master does not know of deliveries that its replica had not received.
    let mut forgotten = burst(99);
    let before_the_last = forgotten.time - 7;
    forgotten.history.losses.push(before_the_last);
    assert_eq!(forgotten.check().count(Fault::Burst), 0);
    // A server whose clock is behind counts what lies in its future from another instant.
    let mut rewound = burst(99);
    rewound.history.rewinds.push(Rewind { begun: before_the_last, over: before_the_last, apart: false });
    rewound.finds(&[]);
    rewound.history.rewinds = vec![Rewind { begun: 1_000, over: 1_000, apart: false }];
    rewound.finds(&[Fault::Burst]);
}

#[test]
fn an_id_accepted_twice_within_its_window_is_found() {
    let twice = |between: &[Act]| {
        let mut s = Script::default();
        s.history.dedupes = true;
        s.push(Done, "m/0", 0).pop("m/0", 1, 1, 0).ack(Done, 1).push(Nothing, "m/1", 0);
        between.iter().for_each(|act| {
            s.done(act.clone());
        });
        s.push(Done, "m/2", 0).pop("m/2", 1, 2, 0).ack(Done, 2);
        s
    };
    twice(&[]).finds(&[Fault::Again]);
    twice(&[cancel()]).finds(&[]);
    let mut forgotten = Script::default();
    forgotten.history.dedupes = true;
    forgotten.push(Done, "m/0", 0).takeover().push(Done, "m/1", 0).pop("m/1", 1, 1, 0).ack(Done, 1);
    forgotten.finds(&[]);
}
