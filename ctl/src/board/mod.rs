//! One reading of the queues: which there are, what `DQ.INFO` says of each, rates, history and conditions.
//!
//! A [`Board`] has a [`Row`] for each queue, which commands, `top` and the page share. [`Board::refresh`] reads what
//! somebody sees and a part of the others, so that each queue has its turn; [`Board::start`] does so in the background,
//! and [`Board::sweep`] reads all at once.

pub mod batches;
pub mod condition;
pub mod consumers;
pub mod dead;
pub mod groups;
pub mod history;
pub mod latency;
pub mod message;
pub mod names;
mod refusals;
pub mod row;
pub mod scan;
pub mod sort;
pub mod table;
pub mod trouble;

pub use condition::{begins_with_letter, Condition, Level, POLLED};
pub use consumers::Holder;
pub use dead::{
    as_it_died, cause_of, each_page, error_of, frequent_cause, is_letter, is_older, older_than, pages, since, target,
    target_in_words, target_queue, Among, Cause, Causes, Filter,
};
pub use groups::{Group, HeldGroup, Holding};
pub use history::Sample;
pub use latency::{at_most, PERCENTILES};
pub use message::{rule, setting, shown_fields};
pub use row::{Row, Status};
pub use sort::{Named, Sort};
pub use trouble::Trouble;

use crate::server::{Failure, QueueInfo};
use crate::text::now_ms;
use condition::{may_be_letters, waits_for_pops};
use dq_client::{blocking::Client, cmd, Error, Raw, Resend};
use history::{History, APART, FEW, HOUR};
use refusals::Refusals;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often queues are searched for.
const FIND: Duration = Duration::from_secs(10);
/// The same while a server of a cluster is missing, in times of how long a search takes: a server that does not answer
/// is waited for.
const MISSING: u32 = 4;
/// The most queues of a board.
const QUEUES: usize = 100_000;
/// How many off-screen queues a refresh reads.
const SWEEP: usize = 250;
/// How often the background refreshes, and samples all queues together.
const EVERY: Duration = Duration::from_secs(1);
const ALL_EVERY: Duration = Duration::from_secs(10);
/// How long a reader waits for the first search.
const WAIT: Duration = Duration::from_millis(1500);
/// The most queues with a history of an hour: those that somebody has looked at last.
const RINGS: usize = 500;

/// The rows by the names of their queues.
pub type Rows = BTreeMap<Vec<u8>, Row>;

/// How much a board remembers of each queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// `DQ.INFO` with all fields for printing, and what rates need.
    Fields,
    /// The same without fields for printing, since there may be thousands of queues.
    Rates,
    /// The same, and an hour, with how late deliveries were.
    Hour,
}

pub struct Board {
    client: Client,
    /// Only queues that match it are read.
    pattern: Option<String>,
    memory: Memory,
    state: Mutex<State>,
    refusals: Refusals,
    /// The state of the board has changed.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    rows: Rows,
    /// When queues are searched for again; `None`: now.
    search: Option<Instant>,
    about: About,
    /// All queues together, and when a server could not be read, in Unix ms.
    all: History,
    interruptions: VecDeque<i64>,
}

/// The state of the board as a whole.
#[derive(Clone, Default)]
pub struct About {
    /// Whether queues have been searched for.
    pub is_known: bool,
    /// Whether all queues that were found then have been read.
    pub is_read: bool,
    /// Why the queues of some servers of a cluster are missing or out of date.
    pub missing: Option<String>,
    /// How many there are, if that is too many for a board.
    pub unlisted: Option<String>,
    /// Why some queues cannot be read, if the user may not.
    pub denied: Option<String>,
    /// Why nothing can be read, and when something was read last, in Unix ms.
    pub lost: Option<String>,
    pub read: Option<i64>,
}

impl Board {
    pub fn new(client: Client, pattern: Option<String>, memory: Memory) -> Board {
        let (state, refusals) = (Mutex::default(), Refusals::default());
        Board { client, pattern, memory, state, refusals, changed: Condvar::new() }
    }

    /// Refreshes it in the background for as long as the process runs.
    pub fn start(self: &Arc<Board>) -> Result<(), Failure> {
        let (board, mut next) = (Arc::clone(self), Instant::now());
        thread::Builder::new().name("dq-board".to_owned()).spawn(move || loop {
            let is_lost = board.refresh(&[]).is_err();
            if Instant::now() >= next {
                board.sample();
                next = Instant::now() + ALL_EVERY;
            }
            if is_lost || !board.is_behind() {
                thread::sleep(EVERY);
            }
        })?;
        Ok(())
    }

    /// Reads these queues, and some of the others that are due. One server of a cluster that answers is enough.
    pub fn refresh(&self, seen: &[Vec<u8>]) -> Result<(), Failure> {
        let is_due = self.lock().search.is_none_or(|at| Instant::now() >= at);
        // A connection that the server has closed meanwhile: the second attempt opens another one.
        let found = if is_due { self.find().or_else(|_| self.find()) } else { Ok(()) };
        self.noted(found.and_then(|()| {
            let mut names: Vec<Vec<u8>> = seen.to_vec();
            names.extend(self.take_turn(seen));
            if names.is_empty() {
                // So that a server without queues that is lost is noticed.
                return names::check_any(&self.client);
            }
            self.read_these(&names)
        }))
    }

    /// Searches for queues and reads all of them.
    pub fn sweep(&self) -> Result<(), Failure> {
        self.noted(self.find().and_then(|()| {
            let names: Vec<Vec<u8>> = self.lock().rows.keys().cloned().collect();
            self.read_these(&names)
        }))
    }

    /// Reads a queue for somebody who looks at it, with all fields of `DQ.INFO`. `None` if it does not exist.
    pub fn look(&self, name: &[u8]) -> Result<Option<Row>, Error> {
        let Some(info) = self.read(name)? else { return Ok(None) };
        let mut state = self.lock();
        let row = state.rows.entry(name.to_vec()).or_default();
        row.looked = Some(Instant::now());
        Ok(Some(Row { info, ..row.clone() }))
    }

    /// Waits a moment for the first search. Returns what is known of all rows; a failure if nothing can be read.
    pub fn wait(&self) -> Result<About, Failure> {
        let is_unknown = |state: &mut State| !state.about.is_known && state.about.lost.is_none();
        let waited = self.changed.wait_timeout_while(self.lock(), WAIT, is_unknown);
        let about = waited.unwrap_or_else(PoisonError::into_inner).0.about.clone();
        match &about.lost {
            Some(lost) => Err(Failure::failed(lost)),
            None => Ok(about),
        }
    }

    pub fn about(&self) -> About {
        self.lock().about.clone()
    }

    pub fn rows<T>(&self, read: impl FnOnce(&Rows) -> T) -> T {
        read(&self.lock().rows)
    }

    /// The history of a queue, or of all together, and when a server could not be read.
    pub fn history<T>(&self, queue: Option<&[u8]>, read: impl FnOnce(&History, &VecDeque<i64>) -> T) -> Option<T> {
        let state = self.lock();
        let history = queue.map_or(Some(&state.all), |queue| Some(&state.rows.get(queue)?.history))?;
        Some(read(history, &state.interruptions))
    }

    /// Notes the counts of all queues together, or that some could not be read, because a server is down or loading.
    fn sample(&self) {
        let mut state = self.lock();
        if state.about.lost.is_some() || state.about.missing.is_some() {
            state.interruptions.push_back(now_ms());
            let excess = state.interruptions.len().saturating_sub(HOUR);
            state.interruptions.drain(..excess);
        } else if state.about.is_read {
            let sum = Sample::sum(state.rows.values().filter_map(|row| row.history.latest()));
            state.all.add(sum, HOUR);
        }
    }

    /// Whether some queues have not been read yet.
    pub fn is_behind(&self) -> bool {
        self.lock().rows.values().any(|row| row.status == Status::Unread)
    }

    /// Searches for queues. Those of servers of a cluster that do not answer stay, but are not read.
    fn find(&self) -> Result<(), Failure> {
        let began = Instant::now();
        let (names, missing) = names::find_reachable(&self.client, self.pattern.as_deref())?;
        let mut state = self.lock();
        let state = &mut *state;
        state.about.unlisted = (names.len() > QUEUES)
            .then(|| format!("only {QUEUES} of {} queues are read: a pattern selects fewer", names.len()));
        let names: HashSet<&Vec<u8>> = names.iter().take(QUEUES).collect();
        state.rows.retain(|name, row| {
            let is_found = names.contains(name);
            match (is_found, row.status) {
                (false, _) => row.status = Status::Lost,
                (true, Status::Lost) => row.status = Status::Unread,
                (true, _) => {}
            }
            is_found || missing.is_some()
        });
        names.into_iter().for_each(|name| _ = state.rows.entry(name.clone()).or_default());
        if state.rows.len() > RINGS {
            let mut rows: Vec<&mut Row> = state.rows.values_mut().collect();
            rows.sort_by_key(|row| Reverse(row.looked));
            rows.into_iter().skip(RINGS).for_each(|row| row.history.keep(FEW));
        }
        let took = if missing.is_some() { began.elapsed() * MISSING } else { Duration::ZERO };
        state.search = Some(Instant::now() + FIND.max(took));
        (state.about.is_known, state.about.missing) = (true, missing.map(|why| why.to_string()));
        Ok(())
    }

    /// Off-screen queues that are due for a read, stalest first.
    fn take_turn(&self, seen: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let (state, age) = (self.lock(), Duration::from_millis(APART.unsigned_abs()));
        let is_due = |row: &Row| row.status == Status::Unread || row.read.is_none_or(|at| at.elapsed() >= age);
        let mut due: Vec<_> = state.rows.iter().filter(|(name, row)| is_due(row) && !seen.contains(name)).collect();
        due.retain(|(_, row)| row.status != Status::Lost);
        due.sort_by_key(|(_, row)| row.read);
        due.into_iter().take(SWEEP).map(|(name, _)| name.clone()).collect()
    }

    fn read_these(&self, names: &[Vec<u8>]) -> Result<(), Failure> {
        let is_lost = |name: &Vec<u8>| self.lock().rows.get(name).is_none_or(|row| row.status == Status::Lost);
        let mut has_searched = false;
        for name in names {
            if is_lost(name) {
                continue;
            }
            match self.read(name) {
                Ok(_) | Err(Error::NoPermission(_) | Error::WrongType(_)) => {}
                // The queues of the other servers are read.
                Err(error) if self.client.is_cluster() && error.is_transient() && !has_searched => {
                    self.find()?;
                    has_searched = true;
                }
                Err(error) => return Err(Failure::read(error)),
            }
        }
        Ok(())
    }

    /// Reads a queue. `None` if it does not exist.
    fn read(&self, name: &[u8]) -> Result<Option<QueueInfo>, Error> {
        let reply = self.client.call(cmd("DQ.INFO").arg(name), Resend::Harmless);
        let info = match reply {
            Err(error) => {
                let mut state = self.lock();
                match &error {
                    // It was replaced by another key.
                    Error::WrongType(_) => drop(state.rows.remove(name)),
                    Error::NoPermission(why) => {
                        let denied = Row { status: Status::Denied, read: Some(Instant::now()), ..Row::default() };
                        state.rows.insert(name.to_vec(), denied);
                        state.about.denied = Some(Failure::from(Error::NoPermission(why.clone())).to_string());
                    }
                    _ => {}
                }
                return Err(error);
            }
            Ok(reply) => QueueInfo::read(reply).ok().flatten(),
        };
        let Some(info) = info else {
            self.lock().rows.remove(name);
            return Ok(None);
        };
        self.update(name, &info);
        Ok(Some(info))
    }

    /// Brings the row of a queue up to date. It is changed in place, under the lock, since several threads read the
    /// same queue; the server is asked before and after.
    fn update(&self, name: &[u8], info: &QueueInfo) {
        let is_refused = waits_for_pops(info) && self.refusals.concern(&self.client, name);
        let letters = may_be_letters(info).then(|| self.has_letters(name));
        let is_measured = {
            let mut state = self.lock();
            let has_room = state.rows.len() <= RINGS;
            let row = state.rows.entry(name.to_vec()).or_default();
            let has_hour = self.memory == Memory::Hour && (row.looked.is_some() || has_room);
            let is_sample = row.update(info, letters, is_refused, if has_hour { HOUR } else { FEW });
            row.info = if self.memory == Memory::Fields { info.clone() } else { info.without_fields() };
            has_hour && is_sample
        };
        if !is_measured {
            return;
        }
        if let Ok(Some(stats)) = self.client.queue::<Raw>(name).stats() {
            if let Some(row) = self.lock().rows.get_mut(name) {
                row.history.measure(stats);
            }
        }
    }

    /// Whether the first message of a queue died in another one. It is read once.
    fn has_letters(&self, name: &[u8]) -> bool {
        let known = self.lock().rows.get(name).and_then(|row| row.letters);
        known.unwrap_or_else(|| begins_with_letter(&self.client, name))
    }

    fn noted(&self, outcome: Result<(), Failure>) -> Result<(), Failure> {
        let mut state = self.lock();
        let has = |status| state.rows.values().any(|row| row.status == status);
        let (is_behind, is_denied) = (has(Status::Unread), has(Status::Denied));
        state.about.is_read |= state.about.is_known && !is_behind;
        state.about.denied = state.about.denied.take().filter(|_| is_denied);
        match &outcome {
            Ok(()) => (state.about.lost, state.about.read) = (None, Some(now_ms())),
            // All may have changed when it is back.
            Err(failure) => (state.about.lost, state.search) = (Some(failure.to_string()), None),
        }
        drop(state);
        self.changed.notify_all();
        outcome
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
pub mod tests {
    use super::{Board, Memory, Row, Rows, SWEEP};
    use crate::server::QueueInfo;
    use dq_client::blocking::Client;
    use std::time::Instant;

    /// A board of a server that is not there.
    pub fn board(rows: Rows) -> Board {
        let board = Board::new(Client::open("redis://127.0.0.1:1").unwrap(), None, Memory::Rates);
        let mut state = board.lock();
        state.rows = rows;
        state.about.is_known = true;
        drop(state);
        board
    }

    #[test]
    fn no_update_is_lost_if_two_threads_read_a_queue() {
        let board = board(Rows::default());
        let update = |field: &str| board.update(b"q", &QueueInfo::with_numbers(&[(field, 1)]));
        update("ready");
        std::thread::scope(|threads| {
            threads.spawn(|| (0..10_000).for_each(|_| update("dead")));
            let mut last = None;
            for _ in 0..10_000 {
                let now = Some(Instant::now());
                let mut state = board.lock();
                let row = state.rows.get_mut(b"q".as_slice()).unwrap();
                assert_eq!(std::mem::replace(&mut row.looked, now), last, "nobody else sets it");
                last = now;
            }
        });
    }

    #[test]
    fn each_queue_that_nobody_sees_has_its_turn() {
        let names: Vec<Vec<u8>> = (0..SWEEP + 10).map(|number| format!("q{number:04}").into_bytes()).collect();
        let board = board(names.iter().map(|name| (name.clone(), Row::default())).collect());
        let seen = [names[0].clone()];
        assert_eq!(board.take_turn(&seen), names[1..=SWEEP], "one is on the screen");
        names[1..=SWEEP].iter().for_each(|name| _ = board.lock().rows.insert(name.clone(), Row::with_numbers(&[])));
        assert_eq!(board.take_turn(&seen), names[SWEEP + 1..], "the others were read meanwhile");
        board.lock().rows.values_mut().for_each(|row| *row = Row::with_numbers(&[]));
        assert!(board.take_turn(&[]).is_empty() && !board.is_behind(), "they were just read");
    }
}
