//! The producers of a checker run. They push, push again if a reply was lost, cancel and reschedule.

use super::history::{Act, Op, Outcome, Span};
use super::stage::{instant, Link, QUEUE};
use crate::support::{sequence, Reply};
use std::time::{SystemTime, UNIX_EPOCH};

/// The longest delay, in ms.
const DELAY: usize = 1_500;

/// How often a producer tries to push one id.
const TRIES: usize = 5;

/// How long a producer waits for a replica, in ms.
const WAIT: usize = 100;

pub struct Producer<'a> {
    link: Link<'a>,
    number: usize,
    /// Whether the producer waits for a replica after each push.
    confirms: bool,
    /// Whether the producer pushes ids again that it has pushed before, because the queue has a deduplication window.
    repeats: bool,
    /// The number of payloads made so far.
    made: usize,
    /// The ids of the messages of this producer.
    own: Vec<String>,
}

impl<'a> Producer<'a> {
    pub fn new(link: Link<'a>, number: usize, confirms: bool, repeats: bool) -> Producer<'a> {
        Producer { link, number, confirms, repeats, made: 0, own: Vec::new() }
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
                    Some(_) if self.repeats && choice < 97 => self.repeat(),
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

    /// Pushes again what this producer named at any time before. Most of these messages are gone.
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
        let (mut line, mut due) = (format!("DQ.PUSH {QUEUE} {payload}"), DueTime::Now);
        let ms = self.link.chance.below(DELAY);
        match self.link.chance.below(4) {
            0 => {}
            1 => due = DueTime::After(ms as i64),
            // The message must wait until this instant on the server's clock, whatever that clock shows now.
            2 => due = DueTime::At(local_time() + ms as i64),
            _ => due = DueTime::After(ms as i64 / 10),
        }
        line += &match due {
            DueTime::Now => String::new(),
            DueTime::After(delay) => format!(" DELAY {delay}"),
            DueTime::At(at) => format!(" AT {at}"),
        };
        if self.link.chance.below(3) == 0 {
            line += &format!(" PRIORITY {}", *self.link.chance.one_of(&[-128, -1, 1, 127]));
        }
        line += &name.map_or(String::new(), |id| format!(" ID {id}"));
        line += if replace { " REPLACE" } else { "" };
        let (span, replies) = self.link.say(&["TIME".to_owned(), line]);
        let due = match due {
            DueTime::Now => i64::MIN,
            DueTime::After(delay) => instant(replies.first()).map_or(i64::MIN, |now| now + delay),
            DueTime::At(at) => at,
        };
        let outcome = outcome(replies.get(1));
        let given = replies.get(1).filter(|_| outcome == Outcome::Done).map(Reply::text);
        let name = name.map(str::to_owned);
        self.note(span, outcome, Act::Push { name, payload, due, replace, given: given.clone() });
        (outcome, given, self.is_safe())
    }

    /// Waits until a replica has what was pushed. Returns whether one has it.
    fn is_safe(&mut self) -> bool {
        if !self.confirms {
            return true;
        }
        // WAIT waits for what was written when this client sent its last command. The PING makes that include what
        // other clients were answered before.
        let (span, replies) = self.link.say(&["PING".to_owned(), format!("WAIT 1 {WAIT}")]);
        let safe = matches!(replies.get(1), Some(Reply::Int(1..)));
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
        let delay = self.link.chance.below(DELAY) as i64;
        let (span, replies) = self.link.say(&["TIME".to_owned(), format!("DQ.RESCHEDULE {QUEUE} {id} DELAY {delay}")]);
        let due = instant(replies.first()).map_or(i64::MIN, |now| now + delay);
        self.note(span, outcome(replies.get(1)), Act::Reschedule { id, due });
    }

    fn note(&mut self, span: Span, outcome: Outcome, act: Act) {
        self.link.ops.push(Op { span, outcome, act });
    }
}

enum DueTime {
    Now,
    After(i64),
    At(i64),
}

fn local_time() -> i64 {
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
