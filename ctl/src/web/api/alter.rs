//! Changes settings of a queue, which a request names as `DQ.INFO` does.

use super::writes::{command, send};
use super::{Answer, Api, Params, Problem};
use serde_json::json;

/// The settings by their names in `DQ.INFO`: those that are one number, those that are two, the one that can follow the first
/// of these, and those that are words.
const NUMBERS: [&str; 15] = [
    "lease",
    "maxlease",
    "delay",
    "retries",
    "ttl",
    "maxlen",
    "maxinflight",
    "maxpayload",
    "deadlen",
    "deadttl",
    "retain",
    "donelen",
    "groupinflight",
    "errors",
    "dedupe",
];
const PAIRS: [(&str, [&str; 2]); 3] = [
    ("BACKOFF", ["backoff-base", "backoff-max"]),
    ("RATE", ["rate", "rate-period"]),
    ("GROUPRATE", ["grouprate", "grouprate-period"]),
];
const JITTER: &str = "backoff-jitter";
const WORDS: [&str; 3] = ["grouporder", "forward", "deadforward"];

/// Changes settings.
pub fn alter(api: &Api, params: &Params) -> Answer {
    params.only(&["queue", "settings"])?;
    let settings = params.object("settings")?;
    let number = settings.len();
    if number == 0 {
        return Err(Problem::wrong("settings is missing: {\"retries\": 3}"));
    }
    if let Some((name, _)) = settings.iter().find(|(_, value)| value.is_null()) {
        return Err(Problem::wrong(format!("{name} is null: leave out what is not to be changed")));
    }
    let settings = Params::Body(settings);
    settings.only(&[&NUMBERS[..], &PAIRS.map(|(_, pair)| pair).concat(), &[JITTER], &WORDS].concat())?;
    let value = |name: &str| settings.int(name, -1, i64::MAX);
    let mut command = command("DQ.ALTER", params)?;
    for name in NUMBERS {
        if let Some(number) = value(name)? {
            command.arg(name.to_ascii_uppercase()).arg(number);
        }
    }
    for (option, [first, second]) in PAIRS {
        match (value(first)?, value(second)?) {
            (None, None) => continue,
            (Some(first), Some(second)) => command.arg(option).arg(first).arg(second),
            (Some(_), None) | (None, Some(_)) => {
                return Err(Problem::wrong(format!("give both {first} and {second}")));
            }
        };
        if let (Some(jitter), "BACKOFF") = (value(JITTER)?, option) {
            command.arg("JITTER").arg(jitter);
        }
    }
    if value(JITTER)?.is_some() && value("backoff-base")?.is_none() {
        return Err(Problem::wrong(format!("give backoff-base and backoff-max with {JITTER}")));
    }
    for name in WORDS {
        if let Some(words) = settings.text(name)? {
            command.arg(name.to_ascii_uppercase()).arg(words.split_whitespace().collect::<Vec<_>>());
        }
    }
    send(api, &command)?;
    Ok(json!({ "altered": number }))
}
