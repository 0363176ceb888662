//! Batches in the reference model: each membership is listed, and each end of one is counted where the contract says
//! so.

use crate::history::{other_headers, Act, Aim, Due, FollowUp, History, Push, Step, Who};
use crate::reference::{after, Message, Model, Name, State, NEVER};
use dq_queue::settings::{Retries, Settings};
use dq_queue::time::DurationMs;
use dq_queue::HeaderBlock;

/// How a membership ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    Acked,
    Dead,
    Cancelled,
}

/// What follows a batch.
#[derive(Clone, Debug)]
pub struct Then {
    pub payload: Vec<u8>,
    pub name: Option<Vec<u8>>,
    pub delay: u64,
    pub priority: i8,
    pub retries: Option<i32>,
    pub lease: Option<u64>,
    pub group: Option<Vec<u8>>,
    pub headers: Option<usize>,
}

#[derive(Clone, Debug)]
pub struct Batch {
    pub name: Vec<u8>,
    pub created: u64,
    pub acked: u64,
    pub dead: u64,
    pub cancelled: u64,
    pub then: Option<Then>,
    /// When it lost its last member, if it has none and was not closed.
    pub idle: Option<u64>,
}

/// How long a batch is remembered that has no member and was not closed.
const REMEMBERED: u64 = 86_400_000;

impl Model {
    /// The batches that clients see.
    pub fn shown_batches(&self) -> Vec<&Batch> {
        self.batches.iter().filter(|batch| !self.is_over(batch)).collect()
    }

    fn is_over(&self, batch: &Batch) -> bool {
        batch.idle.is_some_and(|idle| idle + REMEMBERED <= self.now)
    }

    /// The batches are forgotten whose time is over: an effect is complete.
    pub fn forget_batches(&mut self) {
        let mut batches = std::mem::take(&mut self.batches);
        batches.retain(|batch| !self.is_over(batch));
        self.batches = batches;
    }

    fn batch_mut(&mut self, name: &[u8]) -> &mut Batch {
        let at = self.batches.iter().position(|batch| batch.name == name).unwrap_or_else(|| {
            let name = name.to_vec();
            self.batches.push(Batch {
                name,
                created: self.now,
                acked: 0,
                dead: 0,
                cancelled: 0,
                then: None,
                idle: None,
            });
            self.batches.len() - 1
        });
        &mut self.batches[at]
    }

    pub fn join_batch(&mut self, name: Option<&[u8]>, sequence: u64) {
        if let Some(name) = name {
            self.begin_batch(name).idle = None;
            self.members.push((sequence, name.to_vec()));
        }
    }

    /// The batch of this name; one whose time is over begins anew.
    fn begin_batch(&mut self, name: &[u8]) -> &mut Batch {
        let over: Vec<Vec<u8>> =
            self.batches.iter().filter(|batch| self.is_over(batch)).map(|of| of.name.clone()).collect();
        self.batches.retain(|batch| batch.name != name || !over.contains(&batch.name));
        self.batch_mut(name)
    }

    pub fn leave_batch(&mut self, sequence: u64, how: Left) {
        let Some(at) = self.members.iter().position(|(member, _)| *member == sequence) else { return };
        let (_, name) = self.members.remove(at);
        let batch = self.batch_mut(&name);
        match how {
            Left::Acked => batch.acked += 1,
            Left::Dead => batch.dead += 1,
            Left::Cancelled => batch.cancelled += 1,
        }
    }

    /// A message is removed, but not completed.
    pub fn leave_as_removed(&mut self, message: &Message) {
        let is_dead = matches!(message.state, State::Dead { .. });
        self.leave_batch(message.sequence, if is_dead { Left::Dead } else { Left::Cancelled });
    }

    pub fn leave_as_purged(&mut self, chosen: &[u64]) {
        let doomed = self.messages.iter().filter(|message| chosen.contains(&message.sequence));
        for message in doomed.cloned().collect::<Vec<_>>() {
            self.leave_as_removed(&message);
        }
    }

    /// The members that time has made dead and whose membership nobody has ended.
    pub fn dead_members(&self) -> Vec<u64> {
        let dead = self.messages.iter().filter(|message| message.is_dead()).map(|message| message.sequence);
        dead.filter(|sequence| self.members.iter().any(|(member, _)| member == sequence)).collect()
    }

    pub fn members_of(&self, name: &[u8]) -> Vec<u64> {
        self.members.iter().filter(|(_, of)| of == name).map(|(sequence, _)| *sequence).collect()
    }

    /// The batch that clients see of a message.
    pub fn batch_of(&self, message: &Message) -> Option<&[u8]> {
        let is_shown = message.next.is_none() && !matches!(message.state, State::Dead { .. });
        let member = self.members.iter().find(|(member, _)| *member == message.sequence && is_shown);
        member.map(|(_, name)| &name[..])
    }

    pub fn close_batch(&mut self, name: &[u8], then: Then) -> u64 {
        let batch = self.begin_batch(name);
        (batch.then, batch.idle) = (Some(then), None);
        self.members_of(name).len() as u64
    }

    pub fn cancel_batch(&mut self, name: &[u8]) -> Option<usize> {
        let at = self.batches.iter().position(|batch| batch.name == name && !self.is_over(batch))?;
        self.batches.remove(at);
        let members = self.members_of(name);
        self.members.retain(|(_, of)| of != name);
        let is_live =
            |message: &&Message| members.contains(&message.sequence) && !matches!(message.state, State::Dead { .. });
        let doomed: Vec<u64> = self.messages.iter().filter(is_live).map(|message| message.sequence).collect();
        self.keep_turns(&doomed);
        self.messages.retain(|message| !doomed.contains(&message.sequence));
        self.totals.cancelled += doomed.len() as u64;
        Some(doomed.len())
    }

    /// Pushes what follows the batches that have ended, in the order of their names.
    pub fn settle_batches(&mut self) {
        self.batches.sort_by(|one, other| one.name.cmp(&other.name));
        let is_over = |batch: &Batch| batch.then.is_some() && self.members_of(&batch.name).is_empty();
        let over: Vec<Batch> = self.batches.iter().filter(|batch| is_over(batch)).cloned().collect();
        self.batches.retain(|batch| !over.iter().any(|over| over.name == batch.name));
        let empty: Vec<Vec<u8>> = self
            .batches
            .iter()
            .map(|batch| batch.name.clone())
            .filter(|name| self.members_of(name).is_empty())
            .collect();
        for name in empty {
            let now = self.now;
            self.batch_mut(&name).idle.get_or_insert(now);
        }
        if !over.is_empty() {
            self.forget_groups();
        }
        for batch in over {
            self.follow(&batch, batch.then.clone().unwrap());
        }
    }

    fn follow(&mut self, batch: &Batch, then: Then) {
        self.given = (self.now << 20).max(self.given + 1);
        let total = batch.acked + batch.dead + batch.cancelled;
        let counts = [total, batch.acked, batch.dead, batch.cancelled].map(|count| count.to_string().into_bytes());
        let names = ["dq-batch-total", "dq-batch-acked", "dq-batch-dead", "dq-batch-cancelled"];
        let mut added: Vec<(&[u8], &[u8])> = vec![(b"dq-batch", &batch.name)];
        added.extend(names.iter().map(|name| name.as_bytes()).zip(counts.iter().map(|count| &count[..])));
        let block = HeaderBlock::with_added(then.headers.map(crate::history::headers), &added);
        let is_free = |name: &Vec<u8>| self.find(&Name::Text(name.clone())).is_none() && !self.is_taken(name);
        let name = then.name.filter(is_free);
        if let Some(name) = &name {
            self.drop_done_named(name);
            self.known.retain(|(known, _)| known != name);
        }
        self.enter_group(then.group.as_deref());
        let (due, ttl) = (after(self.now, then.delay), self.settings.ttl.as_ms());
        self.messages.push(Message {
            sequence: self.given,
            accepted: if name.is_some() { self.now } else { self.given >> 20 },
            name,
            payload: then.payload,
            error: None,
            errors: Vec::new(),
            checkpoint: Vec::new(),
            priority: then.priority,
            due,
            retries: then.retries.unwrap_or(self.settings.retries.count()),
            lease: then.lease,
            ttl,
            expires: if ttl == 0 { NEVER } else { after(due, ttl) },
            attempts: 0,
            chain: Some(self.now),
            receipt: None,
            given_back: None,
            state: State::Delayed,
            retain: None,
            recurs: None,
            group: then.group,
            headers: Some(other_headers(block)),
            next: None,
            own: None,
            consumer: None,
        });
        self.totals.pushed += 1;
        self.advance(self.now);
    }
}

fn pushed(name: Option<usize>, ttl: Option<u64>, batch: Option<usize>) -> Act {
    let (priority, retain, group, headers, due) = (0, None, None, None, Due::Now);
    let (retries, lease, replace, maxwait, later) = (None, None, false, None, false);
    let (copies, size) = (1, 0);
    Act::Push(Push {
        copies,
        size,
        name,
        due,
        priority,
        retries,
        lease,
        ttl,
        replace,
        maxwait,
        later,
        retain,
        group,
        headers,
        batch,
        past: None,
    })
}

/// Closes a batch; what follows it has the id `NAMES[2]`.
fn closed(batch: usize) -> Act {
    let (delay, retries, lease, group, headers) = (None, None, None, None, None);
    let then = FollowUp { name: Some(2), size: 0, delay, priority: 0, retries, lease, group, headers };
    Act::CloseBatch { batch, then }
}

fn run(settings: Settings, steps: impl IntoIterator<Item = (i64, Act)>) {
    let settings = Settings { lease: DurationMs::new(1), retries: Retries::new(0).expect("in range"), ..settings };
    let steps = steps.into_iter().map(|(passed, act)| Step { passed, act }).collect();
    crate::world::run(&History { settings, start: 1_760_000_000_000, skew: 0, steps });
}

/// A dead message is dropped with the last member of a batch, and what follows the batch gets its id.
#[test]
fn who_waits_for_an_id_hears_of_what_follows_a_batch() {
    let ms = DurationMs::new;
    let steps = [
        (0, pushed(None, None, Some(1))),
        (0, pushed(None, Some(0), None)),
        (0, closed(1)),
        (0, Act::AckPop { aims: vec![Aim::Id(0)], count: 1, lease: None }),
        (0, closed(2)),
        (25, Act::Trim { budget: 2, by: Who::Eager }),
        (0, Act::Forward { count: 2, taken: 2 }),
    ];
    run(Settings { ttl: ms(20), deadttl: ms(5), ..Settings::default() }, steps);
}

/// A master that drops dead and done messages at once does it as those that apply the two effects.
#[test]
fn what_follows_a_batch_takes_the_id_of_a_done_message_that_is_dropped() {
    let ms = DurationMs::new;
    let retained = Settings { retain: ms(50_000), ..Settings::default() };
    for completed in 0..3 {
        let steps = [
            (0, pushed(Some(2), None, None)),
            (0, pushed(None, None, Some(0))),
            (0, closed(0)),
            (0, Act::AckPop { aims: vec![Aim::Id(0)], count: 2, lease: None }),
            (0, Act::Complete { aim: Aim::Id(completed), result: None, retain: None }),
            (6, Act::Alter { settings: dropping(), by: Who::Eager }),
        ];
        run(retained, steps);
    }
}

/// Settings that keep no done message, and no dead one for longer than 5 ms.
fn dropping() -> Settings {
    let (lease, retries) = (DurationMs::new(1), Retries::new(0).expect("in range"));
    Settings { lease, retries, deadttl: DurationMs::new(5), donelen: Some(0), ..Settings::default() }
}
