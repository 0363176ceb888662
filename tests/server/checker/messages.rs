//! A history grouped by message, and what is known about each.

use super::history::{Act, Delivery, History, Op, Outcome, Span};
use std::collections::HashMap;

/// One delivery, and the pop that brought it.
pub struct Seen<'a> {
    pub op: &'a Op,
    pub delivery: &'a Delivery,
}

/// A push, and all that became of it.
pub struct Message<'a> {
    pub payload: &'a str,
    pub push: &'a Op,
    /// The name that was asked for, the id of the answer, or the one it was delivered with: any of them that is known.
    pub id: Option<&'a str>,
    /// In the order in which the server made them.
    pub deliveries: Vec<Seen<'a>>,
}

/// The history, by message, by id and by receipt.
pub struct Messages<'a> {
    pub all: Vec<Message<'a>>,
    /// What was delivered and never pushed.
    pub strangers: Vec<Seen<'a>>,
    of_receipt: HashMap<&'a str, Vec<&'a Op>>,
    of_id: HashMap<&'a str, Vec<&'a Op>>,
    /// The places in `all` of the pushes of one name.
    namesakes: HashMap<&'a str, Vec<usize>>,
    /// Pops that nobody saw the answer of: each may have delivered a message, or several.
    hidden: Vec<Span>,
    /// When a replica took over, and up to when all that was answered is certain to be on it.
    losses: Vec<(u64, u64)>,
}

impl<'a> Messages<'a> {
    pub fn of(history: &'a History) -> Messages<'a> {
        let mut messages = Messages {
            all: Vec::new(),
            strangers: Vec::new(),
            of_receipt: HashMap::new(),
            of_id: HashMap::new(),
            namesakes: HashMap::new(),
            hidden: Vec::new(),
            losses: losses(history),
        };
        let mut places = HashMap::new();
        for op in &history.ops {
            if let Act::Push { name, payload, given, .. } = &op.act {
                let id = name.as_deref().or(given.as_deref());
                assert!(places.insert(payload.as_str(), messages.all.len()).is_none(), "{payload} was pushed twice");
                if let Some(name) = name {
                    messages.namesakes.entry(name).or_default().push(messages.all.len());
                }
                messages.all.push(Message { payload, push: op, id, deliveries: Vec::new() });
            }
        }
        for op in &history.ops {
            messages.sort_in(op, &places);
        }
        for message in &mut messages.all {
            message.deliveries.sort_by_key(|seen| seen.delivery.number());
            message.id = message.id.or(message.deliveries.first().map(|seen| seen.delivery.id.as_str()));
        }
        messages
    }

    fn sort_in(&mut self, op: &'a Op, places: &HashMap<&str, usize>) {
        match &op.act {
            Act::Push { name: Some(id), .. } | Act::Cancel { id } | Act::Reschedule { id, .. } => {
                self.of_id.entry(id).or_default().push(op);
            }
            Act::Ack { receipt } | Act::Nack { receipt, .. } | Act::Extend { receipt, .. } => {
                self.of_receipt.entry(receipt).or_default().push(op);
            }
            Act::Pop { .. } if op.outcome == Outcome::Unknown => self.hidden.push(op.span),
            Act::Pop { deliveries } => {
                for delivery in deliveries {
                    let seen = Seen { op, delivery };
                    match places.get(delivery.payload.as_str()) {
                        Some(place) => self.all[*place].deliveries.push(seen),
                        None => self.strangers.push(seen),
                    }
                }
            }
            Act::Push { name: None, .. } | Act::Confirm => {}
        }
    }

    /// What was asked with a receipt.
    pub fn with_receipt(&self, receipt: &str) -> &[&'a Op] {
        self.of_receipt.get(receipt).map_or(&[], Vec::as_slice)
    }

    /// What was asked with an id, pushes with that name among it.
    pub fn with_id(&self, id: Option<&str>) -> &[&'a Op] {
        id.and_then(|id| self.of_id.get(id)).map_or(&[], Vec::as_slice)
    }

    /// What may have removed a message other than an ack: a cancellation, or a push that replaced it.
    pub fn removals<'m>(&'m self, message: &'m Message<'a>) -> impl Iterator<Item = &'a Op> + 'm {
        self.with_id(message.id).iter().copied().filter(|op| {
            let removes = matches!(op.act, Act::Cancel { .. } | Act::Push { replace: true, .. });
            removes && op.possible() && !op.span.before(&message.push.span) && !std::ptr::eq(*op, message.push)
        })
    }

    /// What may have completed a message.
    pub fn acks<'m>(&'m self, message: &'m Message<'a>) -> impl Iterator<Item = &'a Op> + 'm {
        let receipts = message.deliveries.iter().flat_map(|seen| self.with_receipt(&seen.delivery.receipt));
        receipts.copied().filter(|op| matches!(op.act, Act::Ack { .. }) && op.possible())
    }

    /// All pushes of the id of a message, but for its own.
    pub fn all_with_id<'m>(&'m self, message: &'m Message<'a>) -> impl Iterator<Item = &'m Message<'a>> + 'm {
        let places = message.id.and_then(|id| self.namesakes.get(id)).map_or(&[][..], Vec::as_slice);
        let others = places.iter().map(|place| &self.all[*place]);
        others.filter(|other| !std::ptr::eq(other.push, message.push))
    }

    /// Whether anything may have ended the life of a message.
    pub fn may_be_gone(&self, message: &Message<'a>) -> bool {
        self.acks(message).next().is_some() || self.removals(message).next().is_some()
    }

    /// Whether no other push of the same id was ever taken, so that the id can only mean this message.
    pub fn alone(&self, message: &Message<'a>) -> bool {
        let pushes = self.with_id(message.id).iter().filter(|op| matches!(op.act, Act::Push { .. }) && op.possible());
        pushes.count() <= 1
    }

    /// Whether what was done may be undone by an instant: a replica took over that had not heard of it.
    pub fn may_be_forgotten(&self, op: &Op, by: u64) -> bool {
        self.losses.iter().any(|(at, held)| op.span.called < *at && *at < by && op.span.answered >= *held)
    }

    /// Whether anything at all may have been forgotten between two instants.
    pub fn anything_forgotten(&self, after: u64, by: u64) -> bool {
        self.losses.iter().any(|(at, _)| after < *at && *at < by)
    }

    /// How many deliveries of one message nobody may have seen between two instants: each pop delivers it once.
    pub fn hidden_between(&self, after: u64, by: u64) -> usize {
        self.hidden.iter().filter(|span| span.called < by && after < span.answered).count()
    }

    /// All that was asked for that has to do with a message, in the order of the calls: evidence.
    pub fn story(&self, message: &Message<'a>) -> String {
        let mut ops: Vec<&Op> = vec![message.push];
        ops.extend(self.with_id(message.id));
        for seen in &message.deliveries {
            ops.push(seen.op);
            ops.extend(self.with_receipt(&seen.delivery.receipt));
        }
        ops.sort_by_key(|op| (op.span.called, op.span.answered));
        ops.dedup_by(|left, right| std::ptr::eq(*left, *right));
        ops.iter().map(|op| format!("\n    {}", one_line(op, message))).collect()
    }
}

/// An op, without what else its pop brought.
fn one_line(op: &Op, message: &Message<'_>) -> String {
    let mut op = op.clone();
    if let Act::Pop { deliveries } = &mut op.act {
        deliveries.retain(|delivery| delivery.payload == message.payload);
    }
    let us = |ns: u64| ns / 1000;
    format!("{:>9}..{:>9} us  {:?}  {:?}", us(op.span.called), us(op.span.answered), op.outcome, op.act)
}

/// For each takeover the last instant before it up to which the replica is known to hold all that was answered.
fn losses(history: &History) -> Vec<(u64, u64)> {
    let confirms = history.ops.iter().filter(|op| matches!(op.act, Act::Confirm) && op.done());
    let calls: Vec<u64> = confirms.map(|op| op.span.called).collect();
    let held = |at: u64| calls.iter().copied().filter(|call| *call < at).max().unwrap_or(0);
    history.losses.iter().map(|at| (*at, held(*at))).collect()
}
