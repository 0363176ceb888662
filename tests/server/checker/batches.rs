//! Batches of a checker run: each is pushed and closed, consumers end its members in every way, and one message
//! follows, once.

use super::history::{Batch, Followed, History, Outcome, Span};
use super::producer::outcome;
use super::report::{Fault, Report};
use super::stage::{Link, BATCHES};
use crate::support::{eventually, Reply};

/// The members of each batch.
const MEMBERS: i64 = 3;

/// The lease of each delivery, in ms.
const LEASE: i64 = 120;

/// What else happens to the queue. Neither the number of members nor what follows depends on it.
const MORE: &[&str] = &[
    "DQ.PAUSE {key} OUT FOR 5",
    "DQ.RESUME {key} OUT",
    "DQ.RESUME {key} ALL",
    "DQ.RESUME {key} IN",
    "DQ.PAUSE {key} GROUP g FOR 5",
    "DQ.RESUME {key} GROUP g",
    "DQ.RELEASE {key} w0 COUNT 1 NOCOUNT",
    "DQ.RELEASE {key} w1",
    "DQ.PROMOTE {key} COUNT 1 UNTIL 8000000000000",
    "DQ.REDRIVE {key} COUNT 1 DELAY 1",
    "DQ.REDRIVE {key} OLDER 1 REASON REJECTED",
    "DQ.REDRIVE {key} REASON RETRIES",
    "DQ.REDRIVE {key} REASON EXPIRED",
    "DQ.PURGE {key} DEAD COUNT 1 OLDER 1",
    "DQ.PURGE {key} DONE DEAD GROUP g RECURRING",
    "DQ.ALTER {key} MKQUEUE LEASE 100 RETRIES -1 BACKOFF 1 50 JITTER 50 TTL 600000000 MAXLEN 100000 DELAY 1",
    "DQ.ALTER {key} MAXINFLIGHT 50 RATE 1000 20 DEADLEN 20 DEADTTL 1000 RETAIN 0 DONELEN 5 MAXPAYLOAD 99 ERRORS 3",
    "DQ.ALTER {key} GROUPINFLIGHT 2 GROUPRATE 1000 20 GROUPORDER TURN DEDUPE 1000 MAXLEASE 1000",
    "DQ.ALTER {key} GROUPORDER DUE FORWARD NONE DEADFORWARD NONE",
];

/// What one process did.
#[derive(Default)]
pub struct Done {
    pub batches: Vec<Batch>,
    pub followed: Vec<Followed>,
}

/// Makes batches and works on their messages until the run is over. `who` tells its batches from those of others.
pub fn work(mut link: Link<'_>, who: usize) -> Done {
    let mut done = Done::default();
    while !link.stage.over() {
        let name = format!("b{who}-{}", done.batches.len());
        let options = format!("RETRIES -1 PRIORITY 1 LEASE {LEASE} HEADERS 1 a b DELAY 1");
        let push = format!("DQ.MPUSH {BATCHES} {MEMBERS} m m m BATCH {name} TTL 600000000 {options}");
        let close = format!("DQ.BATCH {BATCHES} {name} THEN {name} {options}");
        let mut more = || link.chance.one_of(MORE).replace("{key}", BATCHES);
        let lines = [push, close, more(), more(), more()];
        let (span, replies) = link.say(&lines);
        let (pushed, closed) = (outcome(replies.first()), outcome(replies.get(1)));
        done.batches.push(Batch { name, span, pushed, closed });
        for _ in 0..=MEMBERS {
            turn(&mut link, &mut done.followed, who);
        }
    }
    done
}

/// Waits for a message, and mostly ends it. Returns whether there was one.
fn turn(link: &mut Link<'_>, followed: &mut Vec<Followed>, who: usize) -> bool {
    let (span, replies) = link.say(&[format!("DQ.POP {BATCHES} BLOCK 20 LEASE {LEASE} META AS w{who}")]);
    let Some(Reply::Array(messages)) = replies.first() else { return false };
    let [id, payload, _, receipt, meta] = messages[0].items() else { panic!("{messages:?}") };
    let (id, payload, receipt) = (id.text(), payload.text(), receipt.text());
    let is_member = payload == "m";
    if !is_member {
        let headers = meta.fields().get("headers").fields();
        assert_eq!(headers.text("dq-batch"), payload, "what follows tells of its batch");
        let [total, acked, dead, cancelled] =
            ["total", "acked", "dead", "cancelled"].map(|what| headers.text(&format!("dq-batch-{what}")));
        let number = |text: String| text.parse::<i64>().expect("a number");
        let ended = number(acked) + number(dead) + number(cancelled);
        followed.push(Followed { batch: payload, id: id.clone(), total: number(total), ended, span });
    }
    let line = match link.chance.below(12) {
        0 => return true,
        1 if is_member => format!("DQ.CANCEL {BATCHES} {id}"),
        2 if is_member => format!("DQ.NACK {BATCHES} {receipt} DEAD"),
        3 => format!("DQ.BURY {BATCHES} {id} ERROR bad"),
        4..6 => format!("DQ.COMPLETE {BATCHES} {receipt} RESULT r RETAIN 0"),
        _ => format!("DQ.ACK {BATCHES} {receipt}"),
    };
    link.say(&[line]);
    true
}

/// Works until nothing is left, for as long as there is something to do: a slow machine is not a failure.
pub fn finish(mut link: Link<'_>, history: &mut History) {
    while link.say(&[format!("DQ.LEN {BATCHES}")]).1[0].int() > 0 {
        eventually("a message of a batch is delivered", || turn(&mut link, &mut history.followed, 0));
    }
}

/// Checks that one message has followed each batch.
pub fn check(history: &History, report: &mut Report) {
    let is_lost = |from: u64, to: u64| history.losses.iter().any(|at| from < *at && *at < to);
    for batch in &history.batches {
        let mut seen: Vec<&Followed> =
            history.followed.iter().filter(|followed| followed.batch == batch.name).collect();
        seen.sort_by_key(|followed| followed.span.called);
        let mut first: Vec<&Followed> = Vec::new();
        for followed in seen {
            if first.iter().all(|known| known.id != followed.id) {
                first.push(followed);
            }
        }
        report.batches += first.len();
        let may_be_lost = is_lost(batch.span.called, u64::MAX);
        let is_closed = matches!(batch.closed, Outcome::Done | Outcome::Nothing);
        if is_closed && first.is_empty() && !may_be_lost {
            report.note(Fault::Batch, format!("nothing followed {batch:?}"));
        }
        if batch.closed == Outcome::Refused && !first.is_empty() {
            report.note(Fault::Batch, format!("{first:?} followed, though nobody closed {batch:?}"));
        }
        for pair in first.windows(2).filter(|pair| !is_lost(pair[0].span.called, pair[1].span.answered)) {
            report.note(Fault::Batch, format!("it was followed twice: {batch:?} by {pair:?}"));
        }
        let is_miscounted = |followed: &&&Followed| {
            let wanted = batch.pushed == Outcome::Done && followed.total != MEMBERS && !may_be_lost;
            followed.total != followed.ended || wanted
        };
        if let Some(followed) = first.iter().find(is_miscounted) {
            report.note(Fault::Batch, format!("its members were miscounted: {batch:?} and {followed:?}"));
        }
    }
}

#[test]
fn a_fault_in_what_follows_a_batch_is_found() {
    let span = |at: u64| Span { called: at, answered: at + 1, server: 0 };
    let name = "b".to_owned();
    let followed = |id: &str, total: i64, at: u64| {
        let (batch, id) = (name.clone(), id.to_owned());
        Followed { batch, id, total, ended: MEMBERS, span: span(at) }
    };
    let found = |closed: Outcome, followed: &[Followed], losses: &[u64]| {
        let batches = vec![Batch { name: name.clone(), span: span(10), pushed: Outcome::Done, closed }];
        let history = History { batches, followed: followed.to_vec(), losses: losses.to_vec(), ..History::default() };
        let mut report = Report::default();
        check(&history, &mut report);
        report.count(Fault::Batch)
    };
    let once = [followed("1-1", MEMBERS, 20), followed("1-1", MEMBERS, 30)];
    assert_eq!(found(Outcome::Done, &once, &[]), 0, "a redelivery is no second message");
    assert_eq!(found(Outcome::Unknown, &[], &[]), 0);
    assert_eq!(found(Outcome::Done, &[], &[]), 1, "nothing followed");
    assert_eq!(found(Outcome::Done, &[], &[15]), 0, "a takeover may have lost it");
    assert_eq!(found(Outcome::Refused, &once, &[]), 1, "nobody closed it");
    let twice = [followed("1-1", MEMBERS, 20), followed("1-2", MEMBERS, 30)];
    assert_eq!(found(Outcome::Done, &twice, &[]), 1, "it followed twice");
    assert_eq!(found(Outcome::Done, &twice, &[25]), 0, "a takeover may have lost the first");
    assert_eq!(found(Outcome::Done, &[followed("1-1", MEMBERS - 1, 20)], &[]), 1, "a member was not counted");
}
