//! The second look at a queue whose messages wait: whether somebody takes them shows only in time.

use super::finding::{Findings, Severity, Subject, NO_CONSUMER};
use super::queues::{age, doubled, doubled_rate, number, Limits};
use crate::condition::{Condition, Level, Recent};
use crate::reply::Fields;
use crate::time::{millis, span};
use crate::trouble::Trouble;
use dq_client::{cmd, Client, Error, Resend};
use std::time::{Duration, Instant};

/// The totals of a queue whose messages wait for a consumer.
pub struct Waiting {
    at: Instant,
    delivered: i64,
    acked: i64,
    /// How many have become due, but for those that were cancelled before or failed since.
    arrived: i64,
    /// The messages that are due and have not ended.
    backlog: i64,
    trouble: Trouble,
}

impl Waiting {
    pub fn of(info: &Fields, trouble: Trouble) -> Waiting {
        Waiting {
            at: Instant::now(),
            delivered: number(info, "delivered"),
            acked: number(info, "acked"),
            arrived: number(info, "pushed") - number(info, "delayed"),
            backlog: number(info, "ready") + number(info, "inflight"),
            trouble,
        }
    }

    /// Why messages still wait after `passed` although some are taken.
    fn why(&self, now: &Waiting, passed: Duration) -> String {
        let fewer = self.backlog - now.backlog;
        let (passed, arrives) = (millis(passed), now.arrived > self.arrived);
        match u64::try_from(fewer) {
            Err(_) => "messages arrive faster than they are completed".to_owned(),
            Ok(0) if arrives => "messages arrive as fast as they are completed".to_owned(),
            Ok(0) => format!("none arrived and none was completed in {}: deliveries take long", span(passed)),
            Ok(fewer) => {
                let arriving = if arrives { "fewer messages arrive than are completed" } else { "nothing arrives" };
                let left = passed.saturating_mul(u64::try_from(now.backlog).unwrap_or(0)) / fewer;
                format!("{arriving}: at this pace, the backlog is gone in about {}", span(left))
            }
        }
    }
}

/// Whether messages that were seen waiting still wait: nothing was delivered since.
pub fn check_again(
    client: &Client,
    name: &[u8],
    before: &Waiting,
    limits: &Limits,
    findings: &mut Findings,
) -> Result<(), Error> {
    let about = &mut findings.about(Subject::Queue(name.to_vec()));
    about.trouble = before.trouble;
    let reply = client.call(cmd("DQ.INFO").arg(name), Resend::Harmless)?;
    let Ok(Some(info)) = Fields::read(reply) else { return Ok(()) };
    let Some(age) = age(&info) else { return Ok(()) };
    let (inflight, running) = (number(&info, "inflight"), info.int("oldest-inflight").unwrap_or(0));
    let is_served =
        number(&info, "delivered") > before.delivered || number(&info, "waiting-clients") > 0 || inflight > 0;
    let moves = number(&info, "delivered") > before.delivered || number(&info, "acked") > before.acked;
    let running = u64::try_from(running).unwrap_or(0);
    let is_stuck = !moves && inflight > 0 && u128::from(running) >= limits.ready.as_millis();
    let conditions = Condition::of(&info, Recent::default());
    let is = |condition: Condition| conditions.iter().any(|(one, _)| *one == condition);
    let waits = [Condition::Late, Condition::Unserved, Condition::Occupied].map(|condition| (condition, Level::Bad));
    let severity = match waits.iter().any(|bad| conditions.contains(bad)) {
        true => Severity::Critical,
        false => Severity::Warning,
    };
    let (ready, age) = (number(&info, "ready"), span(age));
    let ready = if ready == 1 { "1 message is ready".to_owned() } else { format!("{ready} messages are ready") };
    let held = match inflight {
        0 => String::new(),
        _ => format!("; {inflight} in flight, the oldest for {}", span(running)),
    };
    if is_stuck {
        let what = format!("it is late: {ready}, the oldest for {age}{held}");
        let passed = span(millis(before.at.elapsed()));
        let why = &format!(
            "nothing was delivered or completed in {passed}: deliveries take long, or consumers are gone or hang and keep \
             their messages"
        );
        let advice = "take them back from a consumer that is gone with dqctl release, or one of a consumer without a name with dqctl nack; who holds them, list with dqctl consumers QUEUE";
        about.add(severity, "stuck", what, why, advice);
    } else if is(Condition::Occupied) {
        let what = format!("{ready}, the oldest for {age}: it is at its MAXINFLIGHT{held}");
        let why = "consumers hold as many messages as it lets them";
        let advice =
            format!("wait, or double the limit with dqctl alter QUEUE --maxinflight {}", doubled(&info, "maxinflight"));
        about.add(severity, "behind", what, why, &advice);
    } else if is_served && is(Condition::Limited) {
        let what = format!("{ready}, the oldest for {age}: it is at its RATE");
        let why = "messages arrived faster than its rate lets them be delivered";
        about.warning(
            "behind",
            what,
            why,
            &format!("wait, or double the rate with dqctl alter QUEUE --rate {}", doubled_rate(&info, "rate")),
        );
    } else if is_served {
        let what = format!("it is late: {ready}, the oldest for {age}, although there are consumers{held}");
        let advice = match number(&info, "groups") {
            0 => "add consumers; dqctl stats QUEUE shows how long they take",
            _ => "add consumers, or look with dqctl groups QUEUE whether a few groups have most of it",
        };
        let why = before.why(&Waiting::of(&info, before.trouble), before.at.elapsed());
        about.add(severity, "behind", what, &why, advice);
    } else {
        let since = if before.delivered > 0 { "no consumer waits" } else { "none was ever taken" };
        let what = format!("{ready}, the oldest for {age}, and {since}");
        let why = "no client waits, nothing is in flight, and nothing is delivered";
        let advice = "start its consumers; dqctl info QUEUE shows how many wait";
        about.add(severity, NO_CONSUMER, what, why, advice);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Waiting;
    use crate::reply::Fields;
    use crate::trouble::Trouble;
    use dq_client::Value;
    use std::time::Duration;

    #[test]
    fn the_cause_of_a_backlog_is_what_two_looks_show() {
        let at = |pushed, delayed, ready| {
            let numbers = [("pushed", pushed), ("delayed", delayed), ("ready", ready), ("inflight", 1)];
            let info = numbers.map(|(name, number)| (name.to_owned(), Value::Int(number))).into();
            Waiting::of(&Fields(info), Trouble::default())
        };
        let before = at(2_000, 9, 1_999);
        for (now, why) in [
            (at(2_004, 13, 1_995), "nothing arrives: at this pace, the backlog is gone in about 16m38s"),
            (
                at(2_002, 9, 1_997),
                "fewer messages arrive than are completed: at this pace, the backlog is gone in about 33m18s",
            ),
            (at(2_000, 9, 1_999), "none arrived and none was completed in 2s: deliveries take long"),
            (at(2_004, 9, 1_999), "messages arrive as fast as they are completed"),
            (at(2_004, 9, 2_001), "messages arrive faster than they are completed"),
            // They were pushed with a delay, and are due now.
            (at(2_000, 7, 2_001), "messages arrive faster than they are completed"),
        ] {
            assert_eq!(before.why(&now, Duration::from_secs(2)), why);
        }
    }
}
