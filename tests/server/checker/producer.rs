//! The producers of a checker run. They push, push again if a reply was lost, cancel and reschedule.

use super::history::{Act, Due, Op, Outcome, Span};
use super::stage::{Link, CONFIRM, QUEUE};
use crate::support::{sequence, Reply};
use std::time::{SystemTime, UNIX_EPOCH};

/// The longest delay, in ms.
const DELAY: usize = 1_500;

/// How often a producer tries to push one id.
const TRIES: usize = 5;

/// How long a producer waits for a replica, in ms.
const WAIT: usize = 100;

/// The groups of messages.
const GROUPS: [&str; 8] = ["g0", "g1", "g2", "g3", "g4", "g5", "g6", "g7"];

/// The distance of the due times that messages of groups share, in ms.
const TICK: i64 = 50;

/// What a producer waits for after a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirms {
    Nothing,
    /// So many replicas have it.
    Wait(i64),
    /// It is on the disks of the master and of so many replicas.
    WaitAof(i64),
}

/// What a producer does besides pushing.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// What it waits for after each push.
    pub confirms: Confirms,
    /// It pushes ids again that it has pushed before, because the queue has a deduplication window.
    pub repeats: bool,
    /// It gives most messages a group.
    pub groups: bool,
}

pub struct Producer<'a> {
    link: Link<'a>,
    number: usize,
    habits: Habits,
    /// The number of payloads made so far.
    made: usize,
    /// The ids of the messages of this producer.
    own: Vec<String>,
}

impl<'a> Producer<'a> {
    pub fn new(link: Link<'a>, number: usize, habits: Habits) -> Producer<'a> {
        Producer { link, number, habits, made: 0, own: Vec::new() }
    }

    /// Produces until the run is over. Returns the calls that it made.
    pub fn work(mut self) -> Vec<Op> {
        while !self.link.stage.over() {
            match self.link.chance.below(100) {
                0..45 => self.push_unnamed(),
                45..75 => self.push_named(),
                choice => match self.any_of_its_own() {
                    // Only a message that was named by its producer can be replaced.
                    Some(id) if choice < 81 && sequence(&id).is_none() => drop(self.push(Some(&id), true)),
                    Some(id) if choice < 89 => self.cancel(id),
                    Some(_) if self.habits.repeats && choice < 97 => self.repeat(),
                    Some(id) => self.reschedule(id),
                    None => {}
                },
            }
        }
        self.link.ops
    }

    fn any_of_its_own(&mut self) -> Option<String> {
        // Recent messages are the most likely to exist still.
        let recent = self.own.len().min(30);
        let from_the_end = 1 + self.link.chance.below(recent.max(1));
        self.own.len().checked_sub(from_the_end).map(|place| self.own[place].clone())
    }

    /// Pushes a message again that this producer has named before. Most of these messages are gone.
    fn repeat(&mut self) {
        let id = self.link.chance.one_of(&self.own).clone();
        if sequence(&id).is_none() {
            self.push(Some(&id), false);
        }
    }

    fn push_unnamed(&mut self) {
        if let Some(id) = self.push(None, false).1 {
            self.own.push(id);
        }
    }

    /// Pushes until the server confirms that it has the message and, if there are replicas, until one of them has it
    /// too.
    fn push_named(&mut self) {
        let id = format!("p{}:{}", self.number, self.made);
        self.own.push(id.clone());
        for _ in 0..TRIES {
            let (outcome, _, safe) = self.push(Some(&id), false);
            if matches!(outcome, Outcome::Done | Outcome::Nothing) && safe {
                break;
            }
        }
    }

    /// Pushes once. Returns the outcome, the id, and whether the reply is safe from a takeover.
    fn push(&mut self, name: Option<&str>, replace: bool) -> (Outcome, Option<String>, bool) {
        let payload = format!("payload-{}-{}", self.number, self.made);
        self.made += 1;
        let when = self.any_due_time();
        let mut line = format!("DQ.PUSH {QUEUE} {payload}{}", when.option());
        if self.link.chance.below(3) == 0 {
            line += &format!(" PRIORITY {}", *self.link.chance.one_of(&[-128, -1, 1, 127]));
        }
        let group = (self.habits.groups && self.link.chance.below(5) > 0).then(|| *self.link.chance.one_of(&GROUPS));
        line += &group.map_or(String::new(), |group| format!(" GROUP {group}"));
        line += &name.map_or(String::new(), |id| format!(" ID {id}"));
        line += if replace { " REPLACE" } else { "" };
        // None of these changes what happens to the message in a run.
        line +=
            *self.link.chance.one_of(&["", "", "", " RETRIES -1", " LEASE 300", " TTL 600000000", " HEADERS 1 a b"]);
        line += if replace && self.link.chance.below(3) == 0 { " MAXWAIT 600000000" } else { "" };
        let (span, due, reply) = self.say_due(when, line);
        let outcome = outcome(reply.as_ref());
        let given = reply.filter(|_| outcome == Outcome::Done).map(|reply| reply.text());
        let (name, group) = (name.map(str::to_owned), group.map(str::to_owned));
        self.note(span, outcome, Act::Push { name, payload, due, group, replace, given: given.clone() });
        (outcome, given, self.is_safe())
    }

    fn any_due_time(&mut self) -> DueTime {
        let ms = self.link.chance.below(DELAY) as i64;
        match self.link.chance.below(4) {
            0 => DueTime::Now,
            1 => DueTime::After(ms),
            // Many messages of a group share a due time, which may be past.
            2 if self.habits.groups => DueTime::At((local_time() + ms / 4) / TICK * TICK),
            // The message must wait until this instant on the server's clock, whatever that clock shows now.
            2 => DueTime::At(local_time() + ms),
            _ => DueTime::After(ms / 10),
        }
    }

    /// Sends a command that sets a due time. Returns that time and the reply.
    fn say_due(&mut self, when: DueTime, line: String) -> (Span, Due, Option<Reply>) {
        let (span, mut replies) = self.link.say(&["TIME".to_owned(), line, "TIME".to_owned()]);
        let (earliest, latest) = self.link.stage.between(&span, &replies);
        let due = match when {
            DueTime::Now => Due::after(0, earliest, latest),
            DueTime::After(delay) => Due::after(delay, earliest, latest),
            DueTime::At(at) => Due::at(at),
        };
        (span, due, (replies.len() > 1).then(|| replies.swap_remove(1)))
    }

    /// Waits until replicas have what was pushed. Returns whether they have it.
    fn is_safe(&mut self) -> bool {
        let (wait, wanted) = match self.habits.confirms {
            Confirms::Nothing => return true,
            Confirms::Wait(replicas) => (format!("WAIT {replicas} {WAIT}"), replicas),
            Confirms::WaitAof(replicas) => (format!("WAITAOF 1 {replicas} {WAIT}"), replicas),
        };
        // WAIT waits for what this client wrote; servers older than Redis 7.2 include what others wrote. The SET comes
        // after all that any client was answered before.
        let (span, replies) = self.link.say(&[format!("SET {CONFIRM} x"), wait]);
        let safe = match replies.get(1) {
            Some(Reply::Int(replicas)) => *replicas >= wanted,
            Some(Reply::Array(numbers)) => numbers[0].int() == 1 && numbers[1].int() >= wanted,
            _ => false,
        };
        if safe {
            self.note(span, Outcome::Done, Act::Confirm);
        }
        safe
    }

    fn cancel(&mut self, id: String) {
        let (span, replies) = self.link.say(&[format!("DQ.CANCEL {QUEUE} {id}")]);
        let states = replies.first().map(|reply| match reply {
            Reply::Array(states) => states[0].clone(),
            other => other.clone(),
        });
        self.note(span, outcome(states.as_ref()), Act::Cancel { id });
    }

    fn reschedule(&mut self, id: String) {
        let when = match self.any_due_time() {
            DueTime::Now => DueTime::After(self.link.chance.below(DELAY) as i64),
            later => later,
        };
        let priority = *self.link.chance.one_of(&["", "", " PRIORITY 1"]);
        let (span, due, reply) = self.say_due(when, format!("DQ.RESCHEDULE {QUEUE} {id}{}{priority}", when.option()));
        self.note(span, outcome(reply.as_ref()), Act::Reschedule { id, due });
    }

    fn note(&mut self, span: Span, outcome: Outcome, act: Act) {
        self.link.ops.push(Op { span, outcome, act });
    }
}

#[derive(Clone, Copy, Debug)]
enum DueTime {
    Now,
    After(i64),
    At(i64),
}

impl DueTime {
    /// The option that asks for it.
    fn option(self) -> String {
        match self {
            DueTime::Now => String::new(),
            DueTime::After(delay) => format!(" DELAY {delay}"),
            DueTime::At(at) => format!(" AT {at}"),
        }
    }
}

/// The time of this machine, in Unix ms.
pub fn local_time() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    i64::try_from(now.as_millis()).expect("before the year 2527")
}

/// What a reply says about the effect of a call. `None` stands for a lost reply.
pub fn outcome(reply: Option<&Reply>) -> Outcome {
    match reply {
        None => Outcome::Unknown,
        Some(Reply::Error(_)) => Outcome::Refused,
        Some(Reply::Int(0)) => Outcome::Nothing,
        Some(reply) if reply.is_null() => Outcome::Nothing,
        Some(_) => Outcome::Done,
    }
}
