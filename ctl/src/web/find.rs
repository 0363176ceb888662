//! Which queues there are, and their order.
//!
//! Both are cached, and read again seldom enough that it costs the server little. What a page shows of a queue is read for
//! the queues on that page alone.

use super::history;
use super::refreshed::Refreshed;
use crate::condition::{Condition, Level, Looks, Recent};
use crate::failure::Failure;
use crate::queues;
use crate::reply::Fields;
use crate::time::now_ms;
use crate::trouble::Trouble;
use dq_client::{cmd, Client, Error, Resend};
use serde_json::{Map, Value as Json};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most queues that are listed.
const QUEUES: usize = 100_000;

/// The names of the queues.
pub struct Names {
    /// Sorted.
    pub names: Vec<Vec<u8>>,
    /// Whether there are more.
    pub is_limited: bool,
    /// Those of the servers of a cluster that do not answer. To try each of them would take long.
    pub lost: BTreeSet<Vec<u8>>,
    /// Why the names of some servers of a cluster may be out of date.
    pub failed: Vec<String>,
}

impl Names {
    /// Those whose servers answer.
    pub fn reachable(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.names.iter().filter(|name| !self.lost.contains(*name))
    }
}

/// What all queues are sorted by.
const NUMBERS: [&str; 5] = ["ready", "delayed", "inflight", "dead", "oldest-ready"];

/// The rates of `in` and `out`.
const RATES: [&str; 2] = ["pushed", "completed"];

/// What an order needs of one queue.
struct Ranked {
    at: i64,
    /// The most severe condition, if there is one that is worth a look.
    level: Option<Level>,
    conditions: Vec<Condition>,
    trouble: Trouble,
    numbers: [i64; NUMBERS.len()],
    pushed: i64,
    completed: i64,
    /// Messages a second since the last survey.
    rates: Option<[i64; 2]>,
}

/// All queues, for an order by what they hold.
type Survey = HashMap<Vec<u8>, Ranked>;

/// How a list of queues is sorted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Name,
    /// What refuses or loses messages first.
    Trouble,
    /// The greatest first, by a number of `DQ.INFO`.
    Most(usize),
    /// The most messages a second first, by their place in `rates`.
    Rate(usize),
}

impl Order {
    /// The words that a request may give.
    pub const WORDS: &'static str = "trouble, name, ready, delayed, inflight, dead, oldest-ready, in, out";

    /// The order that a request names.
    pub fn of(word: &str) -> Option<Order> {
        match word {
            "name" => Some(Order::Name),
            "trouble" => Some(Order::Trouble),
            "in" => Some(Order::Rate(0)),
            "out" => Some(Order::Rate(1)),
            word => NUMBERS.iter().position(|number| *number == word).map(Order::Most),
        }
    }

    /// Sorts the queues of a page by the numbers that it shows. Which queues these are was decided by older ones.
    pub fn of_rows(self, rows: &mut [Map<String, Json>], is_reversed: bool) {
        let number = |row: &Map<String, Json>| {
            let number = match self {
                Order::Name | Order::Trouble => None,
                Order::Most(place) => NUMBERS.get(place).and_then(|name| row.get(*name)),
                Order::Rate(place) => RATES.get(place).and_then(|name| row.get("rates")?.get(name)),
            };
            number.and_then(Json::as_f64).unwrap_or(-1.0)
        };
        rows.sort_by(|a, b| {
            let order = number(b).total_cmp(&number(a));
            if is_reversed {
                order.reverse()
            } else {
                order
            }
        });
    }
}

/// How a list was sorted.
pub struct Sorted {
    /// `false` if the numbers are not known yet, so that it is sorted by name.
    pub is_done: bool,
    /// How many of these queues have a bad condition, and how many only a warning, if all were looked at.
    pub troubled: Option<[usize; 2]>,
}

pub struct Find {
    names: Arc<Refreshed<Names>>,
    survey: Refreshed<Survey>,
    watch: Arc<Watch>,
}

/// What was seen of each queue between two looks.
struct Watch {
    client: Client,
    looks: Mutex<HashMap<Vec<u8>, Looks>>,
}

impl Watch {
    fn note(&self, name: &[u8], info: &Fields) -> Recent {
        let looks = self.lock().get(name).copied().unwrap_or_default();
        let peeked = looks.peek(&self.client, name, info);
        self.lock().entry(name.to_vec()).or_default().note(now_ms(), info, peeked)
    }

    /// Forgets queues that no longer exist. The names are sorted.
    fn keep(&self, names: &[Vec<u8>]) {
        self.lock().retain(|name, _| names.binary_search(name).is_ok());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Looks>> {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Find {
    pub fn new(client: &Client) -> Find {
        let (finder, surveyor) = (client.clone(), client.clone());
        let names = Arc::new(Refreshed::new(move |last| find(&finder, last)));
        let watch = Arc::new(Watch { client: client.clone(), looks: Mutex::default() });
        let (known, noted) = (Arc::clone(&names), Arc::clone(&watch));
        let survey = Refreshed::new(move |last| survey(&surveyor, &known, &noted, last));
        Find { names, survey, watch }
    }

    /// The same names, for a reader that is not in a hurry.
    pub fn shared_names(&self) -> Arc<Refreshed<Names>> {
        Arc::clone(&self.names)
    }

    /// The names of the queues; `None` while they are being read for the first time.
    pub fn names(&self) -> Result<Option<Arc<Names>>, Failure> {
        self.names.get()
    }

    /// Notes what somebody else has read of a queue, and returns its conditions.
    pub fn noter(&self) -> impl Fn(&[u8], &Fields) -> Json + Send + 'static {
        let watch = Arc::clone(&self.watch);
        move |name, info| Condition::json(&Condition::of(info, watch.note(name, info)))
    }

    /// The conditions of a queue that was just read.
    pub fn conditions(&self, name: &[u8], info: &Fields) -> Vec<(Condition, Level)> {
        Condition::of(info, self.watch.note(name, info))
    }

    /// Keeps the names of the queues in a condition, which is given by its name. Returns whether the conditions are known yet.
    pub fn keep(&self, names: &mut Vec<&Vec<u8>>, condition: &str) -> Result<bool, Failure> {
        let survey = self.survey.get()?;
        let conditions = |name: &Vec<u8>| Some(&survey.as_ref()?.get(name)?.conditions);
        names.retain(|name| conditions(name).is_some_and(|all| all.iter().any(|one| one.as_str() == condition)));
        Ok(survey.is_some())
    }

    /// Sorts names, which are sorted by name already. Every other order needs all queues.
    pub fn sort(&self, names: &mut [&Vec<u8>], order: Order) -> Result<Sorted, Failure> {
        if order == Order::Name {
            return Ok(Sorted { is_done: true, troubled: None });
        }
        let Some(survey) = self.survey.get()? else { return Ok(Sorted { is_done: false, troubled: None }) };
        let by = |name: &Vec<u8>| {
            let Some(queue) = survey.get(name) else { return (Trouble::default(), -1) };
            let most = |number: Option<i64>| (Trouble::default(), number.unwrap_or(-1));
            match order {
                Order::Name => most(None),
                Order::Trouble => (queue.trouble, 0),
                Order::Most(number) => most(queue.numbers.get(number).copied()),
                Order::Rate(place) => most(queue.rates.and_then(|rates| rates.get(place).copied())),
            }
        };
        names.sort_by_cached_key(|name| std::cmp::Reverse(by(name)));
        let levels: Vec<_> = names.iter().filter_map(|name| survey.get(*name)?.level).collect();
        let count = |level| levels.iter().filter(|found| **found == level).count();
        Ok(Sorted { is_done: true, troubled: Some([Level::Bad, Level::Warning].map(count)) })
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
            let (lost, failed) = (known.lost.clone(), known.failed.clone());
            Some(Names { names, lost, is_limited: known.is_limited, failed })
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
    let last = last.filter(|_| !failed.is_empty()).map_or(&[][..], |last| &last.names);
    let lost: BTreeSet<Vec<u8>> = last.iter().filter(|name| !names.contains(*name)).cloned().collect();
    names.extend(lost.iter().cloned());
    let is_limited = names.len() > QUEUES;
    Ok(Names { names: names.into_iter().take(QUEUES).collect(), lost, is_limited, failed })
}

fn survey(client: &Client, names: &Refreshed<Names>, watch: &Watch, last: Option<&Survey>) -> Result<Survey, Failure> {
    let mut survey = HashMap::new();
    let Some(known) = names.get()? else { return Ok(survey) };
    for name in known.reachable() {
        match read(client, name) {
            Ok(Some(info)) => {
                let before = last.and_then(|last| last.get(name));
                survey.insert(name.clone(), Ranked::new(&info, watch.note(name, &info), before));
            }
            Ok(None) | Err(Error::WrongType(_) | Error::NoPermission(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    watch.keep(&known.names);
    Ok(survey)
}

impl Ranked {
    fn new(info: &Fields, recent: Recent, before: Option<&Ranked>) -> Ranked {
        let number = |name: &str| info.int(name).unwrap_or(-1);
        let conditions = Condition::of(info, recent);
        let level = conditions.iter().map(|(_, level)| *level).max().filter(|level| *level >= Level::Warning);
        let trouble = Trouble::of(info, &conditions);
        let conditions = conditions.into_iter().map(|(condition, _)| condition).collect();
        let (at, pushed, completed) = (now_ms(), number("pushed"), history::completed(info));
        // In messages per million seconds, which is exact enough for an order.
        let rates = before.filter(|before| before.at < at).map(|before| {
            let rate = |now: i64, then: i64| (now - then).max(0).saturating_mul(1_000_000_000) / (at - before.at);
            [rate(pushed, before.pushed), rate(completed, before.completed)]
        });
        Ranked { at, level, conditions, trouble, numbers: NUMBERS.map(number), pushed, completed, rates }
    }
}

/// The fields of `DQ.INFO`; `None` if there is no such queue.
pub fn read(client: &Client, name: &[u8]) -> Result<Option<Fields>, Error> {
    let reply = client.call(cmd("DQ.INFO").arg(name), Resend::Harmless)?;
    Ok(Fields::read(reply).ok().flatten())
}

/// Whether a name has this part, in upper or lower case.
pub fn contains(name: &[u8], part: &[u8]) -> bool {
    part.is_empty() || name.windows(part.len()).any(|at| at.eq_ignore_ascii_case(part))
}

/// The fields of `DQ.STATS`; `None` if there is no such queue.
pub fn read_stats(client: &Client, name: &[u8]) -> Result<Option<Fields>, Error> {
    let reply = client.call(cmd("DQ.STATS").arg(name), Resend::Harmless)?;
    Ok(Fields::read(reply).ok().flatten())
}
