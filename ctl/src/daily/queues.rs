//! `dqctl info` and `stats`.

use crate::board::{at_most, frequent_cause, groups, setting, Condition, Level, PERCENTILES};
use crate::output::Output;
use crate::server::{info, reply, Failure, Fields, Outcome, QueueInfo};
use crate::text::{exact, is_time, meaning, millis, span, QueueName};
use dq_client::{blocking::Client, cmd, Raw, Resend};
use serde_json::{Map, Value as Json};

/// The counts that are always shown.
const STATES: [&str; 4] = ["delayed", "ready", "inflight", "dead"];
/// The first fields of the settings and of the totals of `DQ.INFO`.
const SECTIONS: [(&str, &str); 2] = [("lease", "settings"), ("pushed", "totals")];
/// Fields of `DQ.INFO` that are instants in Unix ms, and ages in ms.
const INSTANTS: [&str; 6] =
    ["next-due", "paused-until", "closed-until", "next-delivery", "forward-failing-since", "deadforward-failing-since"];
const AGES: [&str; 2] = ["oldest-ready", "oldest-inflight"];
/// Ages that a pipe gets in ms, as they always were.
const AGES_FOR_PEOPLE: [&str; 4] = ["oldest-dead", "newest-dead", "last-death", "last-delivery"];

pub fn info(client: &Client, name: &QueueName, output: &Output) -> Result<Outcome, Failure> {
    let info = info::existing(client, name)?;
    let conditions = Condition::read(client, name.as_bytes(), &info);
    if output.json {
        output.object(&object(&info, &conditions))?;
        return Ok(Outcome::Done);
    }
    let mut pairs = vec![("state".to_owned(), Condition::sentence(&conditions, &info))];
    if output.is_for_people && conditions.iter().any(|(condition, _)| *condition == Condition::Dying) {
        let cause = frequent_cause(client, name.as_bytes(), &info);
        pairs.extend(cause.map(|cause| ("died-lately".to_owned(), cause)));
    }
    let mut section = None;
    for (field, _) in &info.fields.0 {
        if let (true, Some((_, heading))) = (output.is_for_people, SECTIONS.iter().find(|(first, _)| first == field)) {
            section = Some(*heading);
            output.pairs(&std::mem::take(&mut pairs))?;
            output.remark(&format!("-- {heading}"))?;
        }
        if !output.is_for_people
            || STATES.contains(&field.as_str())
            || !is_unset(&info.fields, field, section == Some("settings"))
        {
            pairs.push((field.clone(), value(&info.fields, field, output)));
        }
        if field == "blocked" {
            // A user who may not read the groups still sees how many messages they hold.
            let held = groups::held_back(client, name.as_bytes(), &info, groups::MOST_READ).unwrap_or_default();
            let sentences = held.sentences(name.as_bytes());
            pairs.extend(sentences.into_iter().map(|text| ("held".to_owned(), text)));
        }
    }
    output.pairs(&pairs)?;
    Ok(Outcome::Done)
}

/// Whether a field is empty, a count of zero, or a setting without effect, which a terminal does not show. A setting
/// that is zero can have one, such as no retries.
fn is_unset(info: &Fields, name: &str, is_setting: bool) -> bool {
    match info.int(name) {
        Some(number) if is_setting => meaning(name, number).is_some() && name != "retries",
        Some(number) => number == 0,
        None => matches!(info.text(name).as_str(), "" | "NONE"),
    }
}

/// A field as it is printed.
pub fn value(info: &Fields, name: &str, output: &Output) -> String {
    match info.int(name) {
        Some(ms) if INSTANTS.contains(&name) => output.moment(ms),
        Some(_) if AGES.contains(&name) => span(info.number(name)),
        Some(_) if AGES_FOR_PEOPLE.contains(&name) && output.is_for_people => {
            format!("{} ago", span(info.number(name)))
        }
        Some(number) if !output.is_for_people && !is_time(name) => number.to_string(),
        Some(_) if !output.is_for_people => exact(info.number(name)),
        _ => setting(info, name),
    }
}

/// The fields of the server, and their forms on a terminal and on the page.
pub fn object(info: &QueueInfo, conditions: &[(Condition, Level)]) -> Map<String, Json> {
    let mut object = info.fields.json();
    object.insert("state".to_owned(), Condition::sentence(conditions, info).into());
    object.insert("conditions".to_owned(), Condition::json(conditions));
    object
}

pub fn stats(client: &Client, queue: &QueueName, output: &Output) -> Result<Outcome, Failure> {
    let none = || Failure::nothing(reply::no_such_queue(queue));
    if output.json {
        let reply = client.call(cmd("DQ.STATS").arg(queue.as_bytes()), Resend::Harmless)?;
        output.object(&Fields::read(reply)?.ok_or_else(none)?.json())?;
        return Ok(Outcome::Done);
    }
    let stats = client.queue::<Raw>(queue).stats()?.ok_or_else(none)?;
    let mut pairs = Vec::new();
    for (name, times) in [("lateness", &stats.lateness), ("runtime", &stats.runtime)] {
        pairs.push((format!("{name}-count"), times.count().to_string()));
        let bound = |bound: Option<u64>| bound.map_or_else(|| "-".to_owned(), |ms| format!("<={}", exact(ms)));
        pairs.extend(PERCENTILES.map(|percent| (format!("{name}-p{percent}"), bound(at_most(times, percent)))));
    }
    let numbers = [("pops-empty", stats.pops_empty), ("waiting-clients", stats.waiting_clients)];
    pairs.extend(numbers.map(|(name, number)| (name.to_owned(), number.to_string())));
    pairs.push(("rate-limited".to_owned(), span(millis(stats.rate_limited))));
    output.pairs(&pairs)?;
    Ok(Outcome::Done)
}
