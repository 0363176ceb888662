//! Reads what the screen shows, in a thread of its own: a server that does not answer must not stop the keys.
//!
//! Each second, or as often as was asked, it reads the queues that are visible, and a part of the others, so that they can be sorted. The screen
//! sends over a channel what it shows and which actions to execute.

mod lists;

use super::action::{self, Kind};
use super::check;
use super::details::details;
use super::exchange::{Ask, Update, Wanted};
use super::findings;
use super::found;
use super::recurring::Recurring;
use crate::condition::{Looks, RECENT};
use crate::dead::Newest;
use crate::failure::Failure;
use crate::latency::Latency;
use crate::queues;
use crate::reply::Fields;
use crate::row::Snapshot;
use crate::time::now_ms;
use dq_client::{cmd, Client, Error, Resend};
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// How soon a server that cannot be read is asked again.
const RETRY: Duration = Duration::from_secs(1);
/// How often queues are searched for.
const FIND: Duration = Duration::from_secs(10);
/// The same while a server of a cluster is missing, in times of how long a search takes.
const MISSING: u32 = 4;
/// How often the causes of deaths are read.
const DEATHS: Duration = Duration::from_secs(5);
/// How many queues that are not visible are read in a refresh; the others have their turn later.
const SWEEP: usize = 250;
/// How many queues are read at a time, without a pause, until all have been read once.
const FIRST_SWEEP: usize = 100;
/// The fields of `DQ.INFO` that are shown. The others are dropped, because there may be thousands of queues.
const FIELDS: [&str; 33] = [
    "ready",
    "delayed",
    "inflight",
    "dead",
    "oldest-ready",
    "oldest-inflight",
    "paused",
    "closed",
    "forward-failing-since",
    "deadforward-failing-since",
    "deadforward",
    "deadforward-error",
    "waiting-clients",
    "pushed",
    "delivered",
    "acked",
    "forwarded",
    "done",
    "payload-bytes",
    "forward-error",
    "maxlen",
    "blocked",
    "next-delivery",
    "forward",
    "died",
    "deadforwarded",
    "next-due",
    "retain",
    "paused-until",
    "groups",
    "groupinflight",
    "maxinflight",
    "batches",
];

/// What is read in a turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// What is on the screen.
    Screen,
    /// The same, and some of the other queues.
    Refresh,
    /// Queues that have not been read yet.
    Sweep,
}

pub struct Source {
    client: Client,
    pattern: Option<String>,
    /// How often what is visible is read.
    every: Duration,
    updates: Sender<Update>,
    wanted: Wanted,
    /// All queues, the one that was not read for longest first.
    turn: VecDeque<Vec<u8>>,
    unread: usize,
    /// When queues are searched for again; `None`: now.
    search: Option<Instant>,
    /// What was seen of each queue so far.
    looks: HashMap<Vec<u8>, Looks>,
    /// Of the queues on the screen, how late deliveries were.
    latency: HashMap<Vec<u8>, Latency>,
    /// When the causes of deaths were read last, of the queues on the screen.
    died: HashMap<Vec<u8>, Instant>,
    /// The queues that had messages in flight at the last look, and since when the oldest of these is held, in Unix ms.
    held: HashMap<Vec<u8>, i64>,
    /// The queues that the user may not read.
    denied: BTreeSet<Vec<u8>>,
    /// When the list on the screen was read last, and how long that took.
    listed: Option<(Instant, Duration)>,
}

impl Source {
    pub fn new(client: Client, pattern: Option<String>, every: Duration, updates: Sender<Update>) -> Source {
        let wanted = Wanted::default();
        Source {
            client,
            pattern,
            every,
            updates,
            wanted,
            turn: VecDeque::new(),
            unread: 0,
            search: None,
            looks: HashMap::new(),
            latency: HashMap::new(),
            died: HashMap::new(),
            held: HashMap::new(),
            denied: BTreeSet::new(),
            listed: None,
        }
    }

    /// Runs until the screen has gone.
    pub fn run(mut self, asks: &Receiver<Ask>) {
        let mut refresh = Instant::now();
        loop {
            let wait = if self.unread > 0 { Duration::ZERO } else { refresh.saturating_duration_since(Instant::now()) };
            let part = match asks.recv_timeout(wait) {
                Ok(Ask::Show(wanted)) => {
                    self.wanted = wanted;
                    Part::Screen
                }
                Ok(Ask::Do(action)) => {
                    let progress = |text| {
                        self.tell(Update::Answered);
                        self.tell(Update::Said(Ok(text)));
                    };
                    let done = |queue: &[u8]| self.tell(Update::Changed(queue.to_vec()));
                    let said = action::execute(&self.client, &action, progress, done);
                    self.tell(Update::Said(said));
                    if let Kind::Marked(_, queues) = &action.kind {
                        self.read_first(queues.iter().map(|(name, _)| name));
                    }
                    Part::Screen
                }
                Ok(Ask::Find(search)) => {
                    match found::look(&self.client, self.pattern.as_deref(), search, || self.tell(Update::Answered)) {
                        Ok(found) => self.tell(Update::Found(found)),
                        Err(failure) => self.tell(Update::Said(Err(failure.to_string()))),
                    }
                    Part::Screen
                }
                Ok(Ask::Examine) => {
                    self.examine();
                    continue;
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() >= refresh => Part::Refresh,
                Err(RecvTimeoutError::Timeout) => Part::Sweep,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if let Err(text) = self.read(part) {
                // All may have changed when it is back.
                (self.search, self.unread) = (None, 0);
                self.tell(Update::Lost(text));
                refresh = Instant::now() + RETRY;
            } else if part == Part::Refresh {
                refresh = Instant::now() + self.every;
            }
        }
    }

    /// These queues have their turn now, since they were just changed.
    fn read_first<'a>(&mut self, names: impl Iterator<Item = &'a Vec<u8>>) {
        let names: HashSet<&Vec<u8>> = names.collect();
        self.turn.retain(|name| !names.contains(name));
        self.unread += names.len();
        names.into_iter().for_each(|name| self.turn.push_front(name.clone()));
    }

    fn tell(&self, update: Update) {
        // The screen has gone: the next request reports that.
        let _ = self.updates.send(update);
    }

    fn read(&mut self, part: Part) -> Result<(), String> {
        let failed = |error: Error| Failure::of_read(error).to_string();
        let mut names = Vec::new();
        if part != Part::Sweep {
            if let Some((queue, id)) = self.wanted.message.clone() {
                let reply = self.client.call(cmd("DQ.GET").arg(&queue).arg(&id), Resend::Harmless);
                let message = granted(reply).map_err(failed)?.and_then(|reply| Fields::read(reply).ok().flatten());
                self.tell(Update::Message(queue, id, message));
            }
            if let Some(queue) = self.wanted.details.clone() {
                let fields = |command| {
                    let reply =
                        granted(self.client.call(cmd(command).arg(&queue), Resend::Harmless)).map_err(failed)?;
                    Ok::<_, String>(reply.and_then(|reply| Fields::read(reply).ok().flatten()).unwrap_or_default())
                };
                let lines = details(&fields("DQ.INFO")?, &fields("DQ.STATS")?);
                self.tell(Update::Details(queue, lines));
            }
            if let Some((queue, state, count)) = self.wanted.messages.clone() {
                self.messages(queue, state, count).map_err(failed)?;
            }
            if let Some((queue, listing)) = self.wanted.listing.clone() {
                self.list(queue, listing, part);
            }
            if let Some(about) = self.wanted.recurring.clone().filter(|_| part == Part::Screen) {
                // Who may not scan the queue is asked without a number.
                let counted = Recurring::count(&self.client, &about, || self.tell(Update::Answered));
                self.tell(Update::Recurring(about, counted.unwrap_or_default()));
            }
            names.extend(self.wanted.queues.iter().cloned().map(|name| (name, true)));
            self.latency.retain(|name, _| self.wanted.queues.contains(name));
            self.died.retain(|name, _| self.wanted.queues.contains(name));
        }
        if part == Part::Refresh && self.search.is_none_or(|at| Instant::now() >= at) {
            self.find()?;
        }
        if part != Part::Screen {
            let share = if self.unread > 0 { FIRST_SWEEP } else { SWEEP };
            let turn: Vec<Vec<u8>> = self.turn.drain(..self.turn.len().min(share)).collect();
            self.turn.extend(turn.iter().cloned());
            self.unread = self.unread.saturating_sub(turn.len());
            names.extend(turn.into_iter().filter(|name| !self.wanted.queues.contains(name)).map(|name| (name, false)));
        }
        let mut read = Vec::with_capacity(names.len());
        match part {
            // So that a server without queues that is lost is noticed.
            Part::Refresh if names.is_empty() => {
                self.client.servers().and_then(|servers| check(&self.client, &servers)).map_err(failed)?;
            }
            // Nothing was read, so nothing is known anew.
            Part::Screen | Part::Sweep if names.is_empty() => return Ok(()),
            Part::Screen | Part::Refresh | Part::Sweep => {}
        }
        let mut is_partial = false;
        for (name, is_visible) in names {
            if is_partial && !self.turn.contains(&name) {
                continue;
            }
            match self.queue(&name, is_visible) {
                Ok(snapshot) => read.push((name, snapshot)),
                // The queues of the other servers are shown. Those that cannot be read are no longer known.
                Err(error) if self.client.is_cluster() && error.is_transient() && !is_partial => {
                    self.find()?;
                    is_partial = true;
                }
                Err(error) => return Err(failed(error)),
            }
        }
        self.tell(Update::Queues(read));
        self.tell(Update::Denied(self.denied.len()));
        Ok(())
    }

    fn find(&mut self) -> Result<(), String> {
        let began = Instant::now();
        let found = queues::find_reachable(&self.client, self.pattern.as_deref());
        let (names, missing) = found.map_err(|failure| failure.to_string())?;
        // New ones have their turn first.
        let known: HashSet<&Vec<u8>> = self.turn.iter().collect();
        let fresh: Vec<Vec<u8>> = names.iter().filter(|name| !known.contains(name)).cloned().collect();
        let all: HashSet<&Vec<u8>> = names.iter().collect();
        self.turn.retain(|name| all.contains(name));
        self.looks.retain(|name, _| all.contains(name));
        self.held.retain(|name, _| all.contains(name));
        self.denied.retain(|name| all.contains(name));
        self.unread = fresh.len();
        fresh.into_iter().rev().for_each(|name| self.turn.push_front(name));
        // A server that does not answer is waited for, so it is not asked too often.
        let took = if missing.is_some() { began.elapsed() * MISSING } else { Duration::ZERO };
        self.search = Some(Instant::now() + FIND.max(took));
        self.tell(Update::Names(names, missing.map(|why| why.to_string())));
        Ok(())
    }

    /// Takes seconds, so it happens in a thread of its own.
    fn examine(&self) {
        let (client, updates) = (self.client.clone(), self.updates.clone());
        let look = move || drop(updates.send(Update::Findings(findings::look(&client))));
        if let Err(error) = thread::Builder::new().name("dq-doctor".to_owned()).spawn(look) {
            self.tell(Update::Findings(Err(error.to_string())));
        }
    }

    fn queue(&mut self, name: &[u8], is_visible: bool) -> Result<Option<Snapshot>, Error> {
        let reply = self.client.call(cmd("DQ.INFO").arg(name), Resend::Harmless);
        match reply {
            Err(Error::NoPermission(_)) => drop(self.denied.insert(name.to_vec())),
            _ => drop(self.denied.remove(name)),
        }
        let Some(mut info) = granted(reply)?.and_then(|reply| Fields::read(reply).ok().flatten()) else {
            return Ok(None);
        };
        let place = |name: &str| FIELDS.iter().position(|field| *field == name);
        info.0.retain(|(name, _)| place(name).is_some());
        // In this order, because fields are searched from the first.
        info.0.sort_by_key(|(name, _)| place(name));
        match (info.int("inflight"), info.int("oldest-inflight")) {
            (Some(1..), age) => drop(self.held.insert(name.to_vec(), now_ms() - age.unwrap_or(0))),
            _ => drop(self.held.remove(name)),
        }
        let late = if is_visible { self.late(name, &info)? } else { None };
        let looks = self.looks.entry(name.to_vec()).or_default();
        let peeked = looks.peek(&self.client, name, &info);
        let recent = looks.note(now_ms(), &info, peeked);
        if is_visible && recent.has_death(RECENT) && info.int("dead").is_some_and(|dead| dead > 0) {
            self.read_deaths(name, &info);
        }
        Ok(Some(Snapshot { at: Instant::now(), info, late, recent }))
    }

    /// Reads of what the newest dead messages died, unless that is known.
    fn read_deaths(&mut self, name: &[u8], info: &Fields) {
        if self.died.get(name).is_none_or(|at| at.elapsed() >= DEATHS) {
            self.tell(Update::Died(name.to_vec(), Newest::read(&self.client, name, info)));
            self.died.insert(name.to_vec(), Instant::now());
        }
    }

    fn late(&mut self, name: &[u8], info: &Fields) -> Result<Option<Duration>, Error> {
        let stats = granted(self.client.call(cmd("DQ.STATS").arg(name), Resend::Harmless))?;
        let Some(stats) = stats.and_then(|stats| Fields::read(stats).ok().flatten()) else { return Ok(None) };
        let late = self.latency.entry(name.to_vec()).or_default().since(info, &stats, now_ms()).lateness;
        Ok(late.and_then(|[_, late]| u64::try_from(late).ok()).map(Duration::from_millis))
    }
}

/// `None` if the user may not read it, or if the key is no longer a queue.
pub fn granted<T>(reply: Result<T, Error>) -> Result<Option<T>, Error> {
    match reply {
        Ok(reply) => Ok(Some(reply)),
        Err(Error::NoPermission(_) | Error::WrongType(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
