//! Dead messages at which nobody looks: those of the last day, and those that are old.

use super::finding::About;
use super::queues::{number, Limits};
use crate::reply::{self, Fields};
use crate::time::{exact, millis, now_ms, span};
use dq_client::{cmd, Client, Error, Resend};

/// The most dead messages, and the most bytes of payloads, that are read to find the oldest one.
const DEAD_MESSAGES: u64 = 1_000;
const DEAD_BYTES: u64 = 16 * 1024 * 1024;

/// Looks at how old the dead messages are. `new` are the words for them if the newest one is a warning.
pub fn check(
    client: &Client,
    name: &[u8],
    info: &Fields,
    new: Option<String>,
    limits: &Limits,
    about: &mut About,
) -> Result<(), Error> {
    let count = |name: &str| u64::try_from(number(info, name)).unwrap_or(0);
    let dead = count("dead");
    if dead == 0 {
        return Ok(());
    }
    // The newest are read first, so the oldest is the last one. Large ones are not all read.
    let messages: u64 = ["delayed", "ready", "inflight", "dead"].into_iter().map(count).sum();
    let average = count("payload-bytes") / messages.max(1) + 1;
    let read = dead.min(DEAD_MESSAGES).min((DEAD_BYTES / average).max(1));
    let command = cmd("DQ.PEEK").arg(name).arg("dead").arg("COUNT").arg(read).clone();
    let messages = match client.call(&command, Resend::Harmless) {
        Err(Error::NoPermission(_)) => {
            about.not_checked("dead", "the age of dead messages", "+dq.peek");
            return Ok(());
        }
        reply => reply::list(reply?).unwrap_or_default(),
    };
    let oldest = messages.into_iter().next_back().and_then(|message| Fields::read(message).ok().flatten());
    let Some(died) = oldest.and_then(|message| message.int("died")) else { return Ok(()) };
    let age = u64::try_from(now_ms().saturating_sub(died)).unwrap_or(0);
    tell((dead, read), age, new, limits, about);
    Ok(())
}

/// Tells of dead messages of which the oldest is of this age.
fn tell((dead, read): (u64, u64), age: u64, new: Option<String>, limits: &Limits, about: &mut About) {
    if u128::from(age) >= limits.dead.as_millis() {
        let at_least = if read < dead { "at least " } else { "" };
        let messages = if dead == 1 { "message" } else { "messages" };
        let dead = new.unwrap_or_else(|| format!("{dead} dead {messages}"));
        let what = format!("it has {dead}, the oldest for {at_least}{}", span(age));
        let advice = format!(
            "redrive or cancel them, or drop old ones with dqctl alter QUEUE --deadttl {}; look with dqctl dead QUEUE --by-error",
            exact(millis(limits.dead))
        );
        about.warning("dead", what, "nobody looks at them, and they take memory", &advice);
    } else if let Some(new) = new {
        let advice = "redrive or cancel them; look with dqctl dead QUEUE --by-error";
        about.warning("dead", format!("it has {new}"), "they are not delivered again", advice);
    } else if read < dead {
        let what = format!("it has {dead} dead messages; only the newest {read} were read");
        about.note(
            "dead",
            what,
            "older ones may have been forgotten",
            &format!("drop old ones with dqctl alter QUEUE --deadttl {}", exact(millis(limits.dead))),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::{Findings, Severity, Subject};
    use super::super::queues::Limits;
    use super::tell;
    use crate::cli::doctor::DoctorArgs;

    #[test]
    fn dead_messages_are_found_on_the_next_day_and_when_they_are_old() {
        let (hour, day) = (3_600_000, 24 * 3_600_000);
        let new = || Some("30 dead, the newest 6h ago".to_owned());
        for (read, age, new, expected) in [
            (30, 9 * hour, new(), Some(Severity::Warning)),
            (30, 2 * day, None, None),
            (30, 7 * day, None, Some(Severity::Warning)),
            (20, 2 * day, None, Some(Severity::Note)),
        ] {
            let mut findings = Findings::default();
            let about = &mut findings.about(Subject::Queue(b"q".to_vec()));
            tell((30, read), age, new, &Limits::of(&DoctorArgs::default()), about);
            assert_eq!(findings.names(), Vec::from_iter(expected.map(|severity| (severity, "dead"))), "{age}");
        }
    }
}
