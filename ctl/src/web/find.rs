//! Which queues there are, and their order.
//!
//! Both are cached and read again only when somebody looks at the list, seldom enough that it costs the server little. What
//! a page shows of a queue is read for the queues on that page alone.

use super::refreshed::Refreshed;
use crate::failure::Failure;
use crate::queues;
use crate::reply::Fields;
use dq_client::{cmd, Client, Error, Resend};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// The most queues that are listed.
const QUEUES: usize = 100_000;

/// The names of the queues.
pub struct Names {
    /// Sorted.
    pub names: Vec<Vec<u8>>,
    /// Whether there are more.
    pub is_limited: bool,
    /// Why the names of some servers of a cluster may be out of date.
    pub failed: Vec<String>,
}

/// The counts of all queues, for an order by them.
type Survey = HashMap<Vec<u8>, Fields>;

/// How a list of queues is sorted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Name,
    /// The greatest first, by a number of `DQ.INFO`.
    Most(&'static str),
}

impl Order {
    /// The order that a request names.
    pub fn of(word: &str) -> Option<Order> {
        const NUMBERS: [&str; 5] = ["ready", "delayed", "inflight", "dead", "oldest-ready"];
        if word == "name" {
            return Some(Order::Name);
        }
        NUMBERS.iter().find(|number| **number == word).map(|number| Order::Most(number))
    }
}

pub struct Find {
    names: Arc<Refreshed<Names>>,
    survey: Refreshed<Survey>,
}

impl Find {
    pub fn new(client: &Client) -> Find {
        let (finder, surveyor) = (client.clone(), client.clone());
        let names = Arc::new(Refreshed::new(move |last| find(&finder, last)));
        let known = Arc::clone(&names);
        let survey = Refreshed::new(move |_| survey(&surveyor, &known));
        Find { names, survey }
    }

    /// The names of the queues; `None` while they are being read for the first time.
    pub fn names(&self) -> Result<Option<Arc<Names>>, Failure> {
        self.names.get()
    }

    /// Sorts names. `false` if the numbers are not known yet, and they stay sorted by name.
    pub fn sort(&self, names: &mut [&Vec<u8>], order: Order) -> Result<bool, Failure> {
        let Order::Most(number) = order else { return Ok(true) };
        let Some(survey) = self.survey.get()? else { return Ok(false) };
        let value = |name: &Vec<u8>| survey.get(name).and_then(|info| info.int(number)).unwrap_or(-1);
        names.sort_by_cached_key(|name| std::cmp::Reverse(value(name)));
        Ok(true)
    }

    /// Notes that a queue was just created, or no longer exists.
    pub fn learn(&self, name: &[u8], exists: bool) {
        self.names.change(|known| {
            let position = known.names.binary_search_by(|known| known.as_slice().cmp(name));
            let mut names = known.names.clone();
            match (position, exists) {
                (Err(position), true) => names.insert(position, name.to_vec()),
                (Ok(position), false) => drop(names.remove(position)),
                (Ok(_), true) | (Err(_), false) => return None,
            }
            Some(Names { names, is_limited: known.is_limited, failed: known.failed.clone() })
        });
    }
}

fn find(client: &Client, last: Option<&Names>) -> Result<Names, Failure> {
    let servers = client.servers()?;
    let (mut names, mut failed) = (BTreeSet::new(), Vec::new());
    for server in &servers {
        if let Err(failure) = queues::find_on(client, server, None, QUEUES + 1, &mut names) {
            // A connection that the server has closed meanwhile: the second attempt opens another one.
            if queues::find_on(client, server, None, QUEUES + 1, &mut names).is_err() {
                if servers.len() == 1 {
                    return Err(failure);
                }
                failed.push(format!("{server}: {failure}"));
            }
        }
    }
    if let Some(last) = last.filter(|_| !failed.is_empty()) {
        names.extend(last.names.iter().cloned());
    }
    let is_limited = names.len() > QUEUES;
    Ok(Names { names: names.into_iter().take(QUEUES).collect(), is_limited, failed })
}

fn survey(client: &Client, names: &Refreshed<Names>) -> Result<Survey, Failure> {
    let mut survey = HashMap::new();
    let Some(known) = names.get()? else { return Ok(survey) };
    for name in &known.names {
        match read(client, name) {
            Ok(Some(info)) => drop(survey.insert(name.clone(), info)),
            Ok(None) | Err(Error::WrongType(_) | Error::NoPermission(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(survey)
}

/// The fields of `DQ.INFO`; `None` if there is no such queue.
pub fn read(client: &Client, name: &[u8]) -> Result<Option<Fields>, Error> {
    let reply = client.call(cmd("DQ.INFO").arg(name), Resend::Harmless)?;
    Ok(Fields::read(reply).ok().flatten())
}
