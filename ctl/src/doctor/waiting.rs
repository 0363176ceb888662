//! The second look at a queue whose messages wait: whether somebody takes them shows only in time.

use super::finding::{Findings, Subject, NO_CONSUMER};
use super::queues::{age, number, Limits};
use crate::condition::{Condition, Recent};
use crate::reply::Fields;
use crate::time::span;
use crate::trouble::Trouble;
use dq_client::{cmd, Client, Error, Resend};

/// The totals of a queue whose messages wait for a consumer.
pub struct Waiting {
    pub delivered: i64,
    pub acked: i64,
    pub trouble: Trouble,
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
    let is_limited = conditions.iter().any(|(condition, _)| *condition == Condition::Limited);
    let (ready, age) = (number(&info, "ready"), span(age));
    let ready = if ready == 1 { "1 message is ready".to_owned() } else { format!("{ready} messages are ready") };
    let held = match inflight {
        0 => String::new(),
        _ => format!("; {inflight} in flight, the oldest for {}", span(running)),
    };
    if is_stuck {
        let what = format!("{ready}, the oldest for {age}{held}");
        let why = "nothing is delivered or completed: consumers that are gone or hang keep their messages";
        let advice = "dqctl consumers QUEUE shows who holds them; dqctl release QUEUE CONSUMER takes them back";
        about.warning("stuck", what, why, advice);
    } else if is_served && is_limited {
        let what = format!("{ready}, the oldest for {age}: it is at its RATE");
        let why = "messages arrived faster than its rate lets them be delivered";
        about.warning("behind", what, why, "wait, or raise the rate with dqctl alter QUEUE --rate N/TIME");
    } else if is_served {
        let what = format!("{ready}, the oldest for {age}, although there are consumers{held}");
        let advice = "add consumers, or look at MAXINFLIGHT, groups that wait, and dqctl consumers QUEUE";
        about.warning("behind", what, "messages arrive faster than they are completed", advice);
    } else {
        let since = if before.delivered > 0 { "nobody waits" } else { "none was ever taken" };
        let what = format!("{ready}, the oldest for {age}, and {since}");
        let why = "no client waits, nothing is in flight, and nothing is delivered";
        about.critical(NO_CONSUMER, what, why, "start its consumers; dqctl info QUEUE shows how many wait");
    }
    Ok(())
}
