//! The consumers of a checker run. They ack, alone or with the next pop, nack, extend or let a lease end.

use super::history::{Act, Delivery, Due, Op, Outcome, Span};
use super::producer::outcome;
use super::stage::{Link, QUEUE};
use crate::support::{eventually, Message, Reply};
use std::collections::VecDeque;

/// The leases, in ms. The last one is longer than the run, so only the drain ends it.
pub const LEASES: &[i64] = &[200, 250, 350, 500, 600_000];

/// The leases where messages have groups, which wait for each lease that nobody ends.
pub const SHORT_LEASES: &[i64] = &[30, 60, 100, 200];

/// The first backoff of the queue, in ms.
pub const BACKOFF: i64 = 40;

/// How many receipts a consumer keeps, to ack the oldest of them late.
const KEPT: usize = 30;

pub struct Consumer<'a> {
    link: Link<'a>,
    leases: &'static [i64],
    /// The receipts of deliveries that this consumer did not finish in time. Their leases may have ended, and other
    /// consumers may hold the messages.
    late: VecDeque<String>,
    /// The receipts that the next pop acks.
    next: Vec<String>,
}

impl<'a> Consumer<'a> {
    pub fn new(link: Link<'a>, leases: &'static [i64]) -> Consumer<'a> {
        Consumer { link, leases, late: VecDeque::new(), next: Vec::new() }
    }

    /// Consumes until the run is over. Returns the calls that it made.
    pub fn work(mut self) -> Vec<Op> {
        while !self.link.stage.over() {
            let count = 1 + self.link.chance.below(5);
            let lease = *self.link.chance.one_of(self.leases);
            for delivery in self.pop(count, lease) {
                self.finish(delivery);
            }
            if self.late.len() > KEPT {
                self.late.pop_front().into_iter().for_each(|receipt| self.ack(&[receipt]));
            }
        }
        let left = std::mem::take(&mut self.next);
        left.into_iter().for_each(|receipt| self.ack(&[receipt]));
        self.link.ops
    }

    fn finish(&mut self, delivery: Delivery) {
        let receipt = delivery.receipt;
        match self.link.chance.below(20) {
            0..6 => self.ack(&[receipt]),
            6..11 => self.next.push(receipt),
            11..14 => self.nack(receipt),
            14 => self.extend(receipt, 300),
            15 => {
                self.extend(receipt.clone(), 200);
                self.ack(&[receipt]);
            }
            16 | 17 => self.late.push_back(receipt),
            _ => {}
        }
    }

    /// Pops messages, after the acks that wait for this pop, and reads the deadline of each message, from which the
    /// instant of the delivery follows.
    fn pop(&mut self, count: usize, lease: i64) -> Vec<Delivery> {
        let block = 1 + self.link.chance.below(50);
        let acks = std::mem::take(&mut self.next);
        let of_several = acks.is_empty() && self.link.chance.below(4) == 0;
        let command = match acks.len() {
            0 if of_several => format!("DQ.MPOP 1 {QUEUE}"),
            0 => format!("DQ.POP {QUEUE}"),
            n => format!("DQ.ACKPOP {QUEUE} {n} {}", acks.join(" ")),
        };
        let gathering = if count > 1 { format!(" MIN {count} LINGER 5") } else { String::new() };
        let more = *self.link.chance.one_of(&["", "", "", " AS w", &gathering]);
        let pop = format!("{command} COUNT {count} LEASE {lease} BLOCK {block}{more}");
        let (span, replies) = self.link.say(&["TIME", &pop, "TIME"]);
        let popped = match replies.get(1) {
            Some(Reply::Array(parts)) if !acks.is_empty() => {
                self.note_acks(span, &acks, acks_outcome(&acks, Some(&parts[0])));
                parts.get(1)
            }
            Some(Reply::Array(parts)) if of_several => parts.get(1),
            // The acks of a client that was blocked hold.
            Some(Reply::Error(text))
                if ["UNBLOCKED ", "MOVED ", "ASK "].iter().any(|start| text.starts_with(start)) =>
            {
                self.note_acks(span, &acks, Outcome::Unknown);
                replies.get(1)
            }
            reply => {
                self.note_acks(span, &acks, outcome(reply));
                reply
            }
        };
        let outcome = match popped {
            Some(reply) if reply.is_null() => Outcome::Done,
            reply => outcome(reply),
        };
        let mut deliveries = Vec::new();
        if let Some(reply @ Reply::Array(_)) = popped {
            let (earliest, latest) = self.link.stage.between(&span, &replies);
            let (earliest, latest) = (earliest.expect("it was answered before"), latest.unwrap_or(i64::MAX));
            let delivery = |message: Message| Delivery {
                receipt: message.receipt().to_owned(),
                id: message.id,
                payload: String::from_utf8(message.payload).expect("text"),
                attempt: message.attempt,
                earliest,
                latest,
                lease,
            };
            deliveries = Message::all(reply).into_iter().map(delivery).collect();
            self.look_up(&mut deliveries);
        }
        self.note(span, outcome, Act::Pop { deliveries: deliveries.clone() });
        deliveries
    }

    fn look_up(&mut self, deliveries: &mut [Delivery]) {
        let lines: Vec<String> = deliveries.iter().map(|delivery| format!("DQ.GET {QUEUE} {}", delivery.id)).collect();
        let (_, replies) = self.link.say(&lines);
        for (delivery, reply) in deliveries.iter_mut().zip(&replies) {
            if reply.is_null() || reply.is_error() {
                continue;
            }
            let known = reply.fields();
            if known.has("receipt") && known.text("receipt") == delivery.receipt {
                let at = known.int("deadline") - delivery.lease;
                let (from, to) = (delivery.earliest, delivery.latest);
                assert!(from <= at && at <= to, "the lease is not as long as was asked: {delivery:?}, {known:?}");
                (delivery.earliest, delivery.latest) = (at, at);
            }
        }
    }

    fn ack(&mut self, receipts: &[String]) {
        let line = match receipts {
            [receipt] if self.link.chance.below(3) == 0 => format!("DQ.COMPLETE {QUEUE} {receipt} RESULT r RETAIN 0"),
            _ => format!("DQ.ACK {QUEUE} {}", receipts.join(" ")),
        };
        let (span, replies) = self.link.say(&[line]);
        self.note_acks(span, receipts, acks_outcome(receipts, replies.first()));
    }

    fn note_acks(&mut self, span: Span, receipts: &[String], outcome: Outcome) {
        for receipt in receipts {
            self.note(span, outcome, Act::Ack { receipt: receipt.clone() });
        }
    }

    fn nack(&mut self, receipt: String) {
        let counts = self.link.chance.below(3) > 0;
        let delay = *self.link.chance.one_of(&[None, Some(0), Some(10), Some(100), Some(400)]);
        let mut line = format!("DQ.NACK {QUEUE} {receipt}");
        line += &delay.map_or(String::new(), |delay| format!(" DELAY {delay}"));
        line += if counts { "" } else { " NOCOUNT" };
        line += *self.link.chance.one_of(&["", " ERROR bad", " CHECKPOINT half"]);
        let (span, replies) = self.link.say(&["TIME", &line, "TIME"]);
        let (earliest, latest) = self.link.stage.between(&span, &replies);
        let due = match delay {
            Some(delay) => Some(Due::after(delay, earliest, latest)),
            None if counts => Some(Due::after(BACKOFF, earliest, None)),
            None => None,
        };
        self.note(span, outcome(replies.get(1)), Act::Nack { receipt, due, counts });
    }

    fn extend(&mut self, receipt: String, lease: i64) {
        let line = match self.link.chance.below(3) {
            0 => format!("DQ.MEXTEND {QUEUE} 1 {receipt} LEASE {lease}"),
            1 => format!("DQ.EXTEND {QUEUE} {receipt} LEASE {lease} CHECKPOINT half"),
            _ => format!("DQ.EXTEND {QUEUE} {receipt} LEASE {lease}"),
        };
        let (span, replies) = self.link.say(&[line]);
        let reply = replies.first().map(|reply| match reply {
            Reply::Array(ends) => &ends[0],
            end => end,
        });
        let deadline = match reply {
            Some(Reply::Int(deadline)) => *deadline,
            _ => 0,
        };
        self.note(span, outcome(reply), Act::Extend { receipt, lease, deadline });
    }

    fn note(&mut self, span: Span, outcome: Outcome, act: Act) {
        self.link.ops.push(Op { span, outcome, act });
    }

    /// Empties the queue after all other clients have stopped, for as long as it delivers: a rate may make that long.
    /// Returns the calls that it made.
    pub fn drain(mut self) -> Vec<Op> {
        let mut is_empty = false;
        while !is_empty {
            eventually("the queue delivers what is left, or is empty", || {
                self.end_leases();
                let deliveries = self.pop(200, 600_000).into_iter();
                let receipts: Vec<String> = deliveries.map(|delivery| delivery.receipt).collect();
                if !receipts.is_empty() {
                    self.ack(&receipts);
                }
                is_empty = self.link.say(&[format!("DQ.LEN {QUEUE}")]).1[0].int() == 0;
                is_empty || !receipts.is_empty()
            });
        }
        assert_eq!(self.link.say(&[format!("DQ.LEN {QUEUE} dead")]).1[0].int(), 0, "retries are without limit");
        self.link.ops
    }

    /// Ends the leases of consumers that have stopped.
    fn end_leases(&mut self) {
        let (_, replies) = self.link.say(&[format!("DQ.PEEK {QUEUE} inflight COUNT 1000000")]);
        let held: Vec<String> = replies[0].items().iter().map(|message| message.fields().text("receipt")).collect();
        for receipt in held {
            self.extend(receipt, 1);
        }
    }
}

/// What is known of acks by how many counted. If only some did, the number does not tell which.
fn acks_outcome(receipts: &[String], counted: Option<&Reply>) -> Outcome {
    match counted {
        Some(Reply::Int(n)) if (1..receipts.len() as i64).contains(n) => Outcome::Unknown,
        reply => outcome(reply),
    }
}
