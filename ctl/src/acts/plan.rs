//! Which queues an act would change, and how many messages of each.

use crate::board::names;
use crate::cli::Act;
use crate::server::{info, reply, Failure};
use crate::text::QueueName;
use dq_client::blocking::Client;

/// What an act would change.
#[derive(Default)]
pub struct Plan {
    /// The queues, and the most messages that may be changed in each.
    pub queues: Vec<(QueueName, u64)>,
    /// Whether a pattern or a list named them.
    pub is_of_several: bool,
    /// How many messages that is; `None` if they were not counted.
    pub number: Option<u64>,
    /// Why some queues are not among them, and why those of some servers of a cluster are missing.
    pub refused: Vec<Failure>,
    pub missing: Option<Failure>,
}

impl Act {
    /// What it would change: in the queue that it names, or in all that match it.
    /// Messages are counted only if somebody is to know their number.
    pub fn plan(&self, client: &Client, counts: bool) -> Result<Plan, Failure> {
        let mut plan = Plan { number: Some(0), ..Plan::default() };
        let mut names = vec![self.queue().clone()];
        if let Some(pattern) = self.pattern(client)? {
            let (found, missing) = names::find_reachable(client, Some(pattern))?;
            names = found.iter().map(|name| QueueName::from_bytes(name)).collect();
            (plan.is_of_several, plan.missing) = (true, missing);
        }
        let counts = counts && (self.is_of_many() || self.is_dry());
        for name in names {
            let counted = if counts { self.count(client, &name) } else { Ok(Some(u64::MAX)) };
            let number = match counted {
                // A user may be allowed the change alone.
                Err(failure) if failure.is_denied() && !self.is_dry() => None,
                Err(failure) if failure.is_of_any_queue() || !plan.is_of_several => return Err(failure),
                Err(failure) => {
                    plan.refused.push(failure.about(Some(&name.to_string())).in_context(&name));
                    continue;
                }
                Ok(None | Some(0)) if plan.is_of_several => continue,
                Ok(None) => return Err(Failure::nothing(reply::no_such_queue(&name))),
                Ok(number) => number,
            };
            plan.number = plan.number.zip(number).map(|(sum, number)| sum.saturating_add(number));
            plan.queues.push((name, number.unwrap_or(u64::MAX)));
        }
        if !counts {
            plan.number = None;
        }
        Ok(plan)
    }

    /// The pattern that was given; `None` if it is the name of one queue. A queue whose name looks like a pattern comes
    /// first.
    fn pattern(&self, client: &Client) -> Result<Option<&str>, Failure> {
        let typed = self.queue();
        if !self.change().takes_pattern() || !is_pattern(typed) {
            return Ok(None);
        }
        match info::read(client, typed.as_bytes()) {
            Ok(Some(_)) => return Ok(None),
            Err(failure) if !failure.is_denied() => return Err(failure),
            // A user may be allowed the change alone.
            Ok(None) | Err(_) => {}
        }
        let text = std::str::from_utf8(typed.as_bytes());
        text.map(Some).map_err(|_| Failure::usage(format!("{typed} is no pattern, because it is not UTF-8")))
    }
}

/// Whether a name has characters that mean others in a pattern.
pub fn is_pattern(name: &QueueName) -> bool {
    name.as_bytes().iter().any(|byte| b"*?[".contains(byte))
}
