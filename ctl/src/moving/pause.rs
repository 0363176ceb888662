//! The pauses of a queue in its line of a dump: of its deliveries, of what it accepts, and of its groups.

use super::field::{bytes, number};
use crate::server::{Failure, Fields, QueueInfo};
use crate::text::unix_ms;
use dq_client::{blocking::Client, cmd, Cmd, GroupPause, Raw, Value};
use serde_json::{Map, Value as Json};
use std::time::SystemTime;

/// What is suspended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Suspended {
    Out,
    In,
    Group(Vec<u8>),
}

/// A pause until an instant in Unix ms, or until it is resumed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pause {
    what: Suspended,
    until: Option<i64>,
}

impl Pause {
    /// The pauses of a queue that is dumped, from its `DQ.INFO` and `DQ.GROUPS`.
    pub fn read_all(client: &Client, queue: &[u8], info: &QueueInfo) -> Result<Vec<Pause>, Failure> {
        let flow =
            |what, is_set: bool, until: Option<SystemTime>| is_set.then(|| Pause { what, until: until.map(unix_ms) });
        let out = flow(Suspended::Out, info.paused, info.paused_until);
        let into = flow(Suspended::In, info.closed, info.closed_until);
        let mut pauses: Vec<Pause> = out.into_iter().chain(into).collect();
        if info.paused_groups == 0 {
            return Ok(pauses);
        }
        for group in client.queue::<Raw>(queue).groups() {
            let group = group?;
            let until = match group.pause {
                GroupPause::Off => continue,
                GroupPause::Until(at) => Some(unix_ms(at)),
                GroupPause::Endless => None,
            };
            pauses.push(Pause { what: Suspended::Group(group.name), until });
        }
        Ok(pauses)
    }

    /// The fields of a line.
    pub fn fields(pauses: Vec<Pause>) -> Vec<(&'static str, Json)> {
        let (mut fields, mut groups) = (Vec::new(), Vec::new());
        for Pause { what, until } in pauses {
            let until = until.map(Json::from);
            match what {
                Suspended::Out => {
                    fields.push(("paused", true.into()));
                    fields.extend(until.map(|until| ("paused-until", until)));
                }
                Suspended::In => {
                    fields.push(("closed", true.into()));
                    fields.extend(until.map(|until| ("closed-until", until)));
                }
                Suspended::Group(name) => {
                    let mut group = Fields(vec![("group".to_owned(), Value::BulkString(name))]).json();
                    group.extend(until.map(|until| ("paused-until".to_owned(), until)));
                    groups.push(Json::Object(group));
                }
            }
        }
        if !groups.is_empty() {
            fields.push(("paused-groups", groups.into()));
        }
        fields
    }

    /// Reads the fields that [`Pause::fields`] wrote.
    pub fn read(line: &Map<String, Json>) -> Result<Vec<Pause>, String> {
        let mut pauses = Vec::new();
        for (what, name, until) in
            [(Suspended::Out, "paused", "paused-until"), (Suspended::In, "closed", "closed-until")]
        {
            if line.get(name) == Some(&Json::from(true)) {
                pauses.push(Pause { what, until: number(line, until)? });
            }
        }
        let groups = match line.get("paused-groups") {
            None | Some(Json::Null) => return Ok(pauses),
            Some(Json::Array(groups)) => groups,
            Some(_) => return Err("its paused-groups are no list".to_owned()),
        };
        for group in groups {
            let group = group.as_object().ok_or("one of its paused-groups is no object")?;
            let name = bytes(group, "group")?.ok_or("one of its paused-groups has no name")?;
            pauses.push(Pause { what: Suspended::Group(name), until: number(group, "paused-until")? });
        }
        Ok(pauses)
    }

    /// Whether it would refuse the messages that are loaded.
    pub fn closes(&self) -> bool {
        self.what == Suspended::In
    }

    /// The command that makes the same pause on another server; `None` if it is over.
    pub fn command(&self, queue: &[u8], now: i64) -> Option<Cmd> {
        let mut command = cmd("DQ.PAUSE");
        command.arg(queue);
        match &self.what {
            Suspended::Out => command.arg("OUT"),
            Suspended::In => command.arg("IN"),
            Suspended::Group(name) => command.arg("GROUP").arg(name),
        };
        match self.until {
            None => Some(command),
            Some(until) if until > now => Some(command.arg("FOR").arg(until - now).clone()),
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Pause, Suspended};
    use serde_json::{json, Map};

    #[test]
    fn pauses_are_read_as_they_were_written() {
        let pauses = vec![
            Pause { what: Suspended::Out, until: None },
            Pause { what: Suspended::In, until: Some(5) },
            Pause { what: Suspended::Group(b"acme".to_vec()), until: Some(7) },
            Pause { what: Suspended::Group(vec![0xff]), until: None },
        ];
        let line: Map<_, _> =
            Pause::fields(pauses.clone()).into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        assert_eq!(line["paused-groups"], json!([{ "group": "acme", "paused-until": 7 }, { "group-base64": "/w==" }]));
        assert_eq!(Pause::read(&line), Ok(pauses));
    }

    #[test]
    fn a_pause_that_is_over_is_not_made_again() {
        let until = |until| Pause { what: Suspended::Out, until: Some(until) }.command(b"q", 7).is_some();
        assert_eq!((until(6), until(7), until(8)), (false, false, true));
    }
}
