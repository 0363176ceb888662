//! Schedules of a checker run: every process declares them whenever it can, and consumers work on their runs. No run is
//! lost, none is made twice, and the runs of one schedule never overlap.

use super::history::{History, Outcome, Span, Turn};
use super::producer::outcome;
use super::report::{Fault, Report};
use super::stage::{Link, NOBODY, SERIES};
use crate::support::{eventually, Message, Reply};
use std::sync::Barrier;

/// The ids of the schedules.
const IDS: [&str; 4] = ["s0", "s1", "s2", "s3"];

/// The interval of the schedules, in ms.
const EVERY: i64 = 25;

/// The lease of each delivery, in ms.
const LEASE: i64 = 120;

/// What one process did: how often its declarations created a schedule, and its deliveries.
#[derive(Default)]
pub struct Done {
    pub created: usize,
    pub turns: Vec<Turn>,
    /// Pops whose reply was lost.
    pub hidden: Vec<Span>,
}

/// Declares all schedules as soon as all processes are ready, and again and again until the run is over.
pub fn declare(mut link: Link<'_>, boot: &Barrier, goes_on: bool) -> Done {
    let mut done = Done::default();
    boot.wait();
    loop {
        for id in IDS {
            let rule = format!("EVERY {EVERY} UNTIL 8000000000000 TIMES 1000000");
            let options = format!("RETRIES -1 PRIORITY 1 LEASE {LEASE} TTL 600000000 GROUP {id} HEADERS 1 a b");
            let line = format!("DQ.SCHEDULE {SERIES} {id} {id} {rule} {options}");
            let (_, replies) = link.say(&[line]);
            let answer = replies.first().filter(|reply| !reply.is_error()).map(Reply::text);
            done.created += usize::from(answer.as_deref() == Some("created"));
            assert!(answer.as_deref() != Some("changed"), "the same was declared before");
        }
        if !goes_on || link.stage.over() {
            return done;
        }
        // Nobody pushes to this queue, so the pop only waits.
        link.say(&[format!("DQ.POP {NOBODY} BLOCK 20")]);
    }
}

/// Works on runs until the run of the checker is over.
pub fn work(mut link: Link<'_>) -> Done {
    let mut done = Done::default();
    while !link.stage.over() {
        turn(&mut link, &mut done);
    }
    done
}

/// Waits for a run, and mostly acks it.
fn turn(link: &mut Link<'_>, done: &mut Done) {
    let pop = format!("DQ.POP {SERIES} BLOCK 20 LEASE {LEASE}");
    let (span, replies) = link.say(&["TIME", &pop, "TIME"]);
    let (earliest, latest) = link.stage.between(&span, &replies);
    let Some(reply @ Reply::Array(_)) = replies.get(1) else {
        if replies.get(1).is_none() {
            done.hidden.push(span);
        }
        return;
    };
    let run = Message::all(reply).remove(0);
    let number = run.receipt().rsplit('#').next().and_then(|number| number.parse().ok()).expect("a receipt");
    let mut acked = None;
    if link.chance.below(8) > 0 {
        let (_, replies) = link.say(&[format!("DQ.ACK {SERIES} {}", run.receipt())]);
        acked = Some(outcome(replies.first()));
    }
    let (earliest, latest) = (earliest.expect("it was answered before"), latest.unwrap_or(i64::MAX));
    done.turns.push(Turn { span, id: run.id, number, attempt: run.attempt, earliest, latest, acked });
}

/// Waits until every schedule has one more run, and checks that there is one series for each. Without a takeover, the
/// number of ended runs is that of the acks.
pub fn finish(mut link: Link<'_>, history: &mut History, created: usize) {
    let mut done = Done::default();
    eventually("every schedule goes on", || {
        turn(&mut link, &mut done);
        IDS.iter().all(|id| done.turns.iter().any(|turn| turn.id == *id))
    });
    history.series.append(&mut done.turns);
    history.hidden.append(&mut done.hidden);
    let (_, replies) = link.say(&[format!("DQ.SCAN {SERIES} 0 COUNT 100")]);
    let held: Vec<_> = replies[0].items()[1].items().iter().map(Reply::fields).collect();
    let mut ids: Vec<String> = held.iter().map(|message| message.text("id")).collect();
    ids.sort_unstable();
    if ids != IDS {
        history.complaints.push(format!("there is not one message for each schedule: {ids:?}"));
    }
    if !history.losses.is_empty() {
        return;
    }
    if created > IDS.len() {
        history.complaints.push(format!("{created} series were created"));
    }
    for message in &held {
        let of_it = |outcome: Outcome| {
            history.series.iter().filter(|turn| turn.id == message.text("id") && turn.acked == Some(outcome)).count()
        };
        let (sure, possible) = (of_it(Outcome::Done), of_it(Outcome::Done) + of_it(Outcome::Unknown));
        let runs = usize::try_from(message.int("runs")).expect("a count");
        if !(sure..=possible).contains(&runs) {
            history.complaints.push(format!("{runs} runs ended and {sure} to {possible} were acked: {message:?}"));
        }
    }
}

/// Checks the deliveries of each schedule, one after the other.
pub fn check(history: &History, report: &mut Report) {
    report.runs = history.series.len();
    history.complaints.iter().for_each(|what| report.note(Fault::Run, what.clone()));
    for id in IDS {
        let mut turns: Vec<&Turn> = history.series.iter().filter(|turn| turn.id == id).collect();
        turns.sort_by_key(|turn| (history.takeovers(&turn.span), turn.number));
        for pair in turns.windows(2) {
            let (before, after) = (pair[0], pair[1]);
            let lost = |at: &u64| before.span.called < *at && *at < after.span.answered;
            if history.losses.iter().any(lost) {
                continue;
            }
            let rewound = history.rewinds.iter().any(|rewind| rewind.separates(&before.span, &after.span));
            if let Some(what) = wrong(before, after, hidden(history, &before.span, &after.span), rewound) {
                report.note(Fault::Run, format!("{what}: {before:?}, then {after:?}"));
            }
        }
    }
}

/// The number of deliveries between two others that no client may have seen.
fn hidden(history: &History, after: &Span, by: &Span) -> i64 {
    history.hidden.iter().filter(|span| span.called < by.answered && after.called < span.answered).count() as i64
}

/// What is wrong with two deliveries of a schedule that followed each other.
fn wrong(before: &Turn, after: &Turn, hidden: i64, rewound: bool) -> Option<&'static str> {
    let may_have_ended = matches!(before.acked, Some(Outcome::Done | Outcome::Unknown));
    if after.attempt == 1 && !may_have_ended {
        return Some("a run ended that nobody acked");
    }
    let next_due = (before.earliest / EVERY + 1) * EVERY;
    let is_new = after.attempt == 1 || before.acked == Some(Outcome::Done);
    // A run that was late by one clock may have been ended by another one, in an earlier interval.
    if is_new && !rewound && after.latest < next_due {
        return Some("two runs in one interval");
    }
    if is_new && after.attempt - 1 > hidden {
        return Some("a run went on after its ack");
    }
    if !is_new && !may_have_ended && after.attempt - before.attempt - 1 > hidden {
        return Some("an attempt is missing");
    }
    if !is_new && after.latest < before.earliest + LEASE {
        return Some("two consumers had one run");
    }
    None
}

/// A delivery at an instant, in tests of the check.
fn planted(number: u64, attempt: i64, at: i64, acked: Option<Outcome>) -> Turn {
    let span = Span { called: 10 * number, answered: 10 * number + 1, server: 0 };
    Turn { span, id: IDS[0].to_owned(), number, attempt, earliest: at, latest: at, acked }
}

#[test]
fn a_fault_in_the_runs_of_a_schedule_is_found() {
    const DONE: Option<Outcome> = Some(Outcome::Done);
    const LOST: Option<Outcome> = Some(Outcome::Unknown);
    let found = |turns: &[Turn], losses: &[u64]| {
        let (mut report, history) =
            (Report::default(), History { series: turns.to_vec(), losses: losses.to_vec(), ..History::default() });
        check(&history, &mut report);
        report.count(Fault::Run)
    };
    let good = [
        planted(1, 1, 100, DONE),
        planted(2, 1, 125, None),
        planted(3, 2, 245, LOST),
        planted(4, 3, 365, LOST),
        planted(5, 1, 375, DONE),
    ];
    assert_eq!(found(&good, &[]), 0);
    for (bad, why) in [
        ([planted(1, 1, 100, None), planted(2, 1, 125, DONE)], "a run was lost"),
        ([planted(1, 1, 100, DONE), planted(2, 1, 124, DONE)], "a time had two runs"),
        ([planted(1, 1, 100, DONE), planted(2, 2, 400, DONE)], "a run went on after its ack"),
        ([planted(1, 1, 100, None), planted(2, 2, 219, DONE)], "a run was made twice at once"),
        ([planted(1, 1, 100, None), planted(2, 3, 800, DONE)], "a delivery is missing"),
    ] {
        assert_eq!(found(&bad, &[]), 1, "{why}");
        assert_eq!(found(&bad, &[15]), 0, "a takeover in between may forget the first: {why}");
    }
    let lower = Turn { number: 1, ..planted(2, 1, 125, DONE) };
    assert_eq!(found(&[Turn { number: 2, ..planted(1, 1, 9_000, DONE) }, lower], &[15]), 0, "the new clock is behind");
    let mut history =
        History { series: vec![planted(1, 1, 100, DONE), planted(2, 1, 124, DONE)], ..History::default() };
    history.rewinds = vec![super::history::Rewind { begun: 12, over: 15, apart: true }];
    let mut report = Report::default();
    check(&history, &mut report);
    assert_eq!(report.count(Fault::Run), 0, "the first was late by one clock, and ended by another");
}
