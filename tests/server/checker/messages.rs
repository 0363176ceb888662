//! A history grouped by message, and what is known about each.

use super::history::{Act, Delivery, History, Op, Outcome, Rewind, Span};
use std::collections::HashMap;

/// One delivery, and the pop that returned it.
pub struct Seen<'a> {
    pub op: &'a Op,
    pub delivery: &'a Delivery,
}

/// A push, and everything that happened to its message.
pub struct Message<'a> {
    pub payload: &'a str,
    pub push: &'a Op,
    /// The id of the message, if it is known: the requested name, the id in the reply, or the id of a delivery.
    pub id: Option<&'a str>,
    /// The deliveries, in the order in which the server made them.
    pub deliveries: Vec<Seen<'a>>,
    /// Whether the message is in the target of its queue at the end.
    pub forwarded: bool,
}

/// The history, by message, by id and by receipt.
pub struct Messages<'a> {
    pub all: Vec<Message<'a>>,
    /// Deliveries of messages that were never pushed.
    pub strangers: Vec<Seen<'a>>,
    of_receipt: HashMap<&'a str, Vec<&'a Op>>,
    of_id: HashMap<&'a str, Vec<&'a Op>>,
    /// For each name, the indexes in `all` of its pushes.
    namesakes: HashMap<&'a str, Vec<usize>>,
    /// Pops whose reply was lost. Each of them may have delivered one or several messages.
    hidden: Vec<Span>,
    /// The instants at which a replica took over, each with the instant up to which the replica certainly had
    /// everything that was answered.
    losses: Vec<(u64, u64)>,
    rewinds: &'a [Rewind],
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
            rewinds: &history.rewinds,
        };
        let mut places = HashMap::new();
        for op in &history.ops {
            if let Act::Push { name, payload, given, .. } = &op.act {
                let id = name.as_deref().or(given.as_deref());
                assert!(places.insert(payload.as_str(), messages.all.len()).is_none(), "{payload} was pushed twice");
                if let Some(name) = name {
                    messages.namesakes.entry(name).or_default().push(messages.all.len());
                }
                messages.all.push(Message { payload, push: op, id, deliveries: Vec::new(), forwarded: false });
            }
        }
        for op in &history.ops {
            messages.sort_in(op, &places);
        }
        for entry in history.looks.last().iter().flat_map(|look| &look.target) {
            if let Some(place) = places.get(entry.payload.as_str()) {
                messages.all[*place].forwarded = true;
            }
        }
        for message in &mut messages.all {
            message.deliveries.sort_by_key(|seen| (history.takeovers(&seen.op.span), seen.delivery.number()));
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

    /// All deliveries.
    pub fn deliveries(&self) -> impl Iterator<Item = &Seen<'a>> {
        self.all.iter().flat_map(|message| &message.deliveries).chain(&self.strangers)
    }

    /// The calls that named a receipt.
    pub fn with_receipt(&self, receipt: &str) -> &[&'a Op] {
        self.of_receipt.get(receipt).map_or(&[], Vec::as_slice)
    }

    /// The calls that named an id, including pushes with this name.
    pub fn with_id(&self, id: Option<&str>) -> &[&'a Op] {
        id.and_then(|id| self.of_id.get(id)).map_or(&[], Vec::as_slice)
    }

    /// The calls other than acks that may have removed a message: a cancellation, or a push that replaced it.
    pub fn removals<'m>(&'m self, message: &'m Message<'a>) -> impl Iterator<Item = &'a Op> + 'm {
        self.with_id(message.id).iter().copied().filter(|op| {
            let removes = matches!(op.act, Act::Cancel { .. } | Act::Push { replace: true, .. });
            removes && op.possible() && !op.span.before(&message.push.span) && !std::ptr::eq(*op, message.push)
        })
    }

    /// The calls that may have completed a message.
    pub fn acks<'m>(&'m self, message: &'m Message<'a>) -> impl Iterator<Item = &'a Op> + 'm {
        let receipts = message.deliveries.iter().flat_map(|seen| self.with_receipt(&seen.delivery.receipt));
        receipts.copied().filter(|op| matches!(op.act, Act::Ack { .. }) && op.possible())
    }

    /// All other pushes of the id of a message.
    pub fn all_with_id<'m>(&'m self, message: &'m Message<'a>) -> impl Iterator<Item = &'m Message<'a>> + 'm {
        let places = message.id.and_then(|id| self.namesakes.get(id)).map_or(&[][..], Vec::as_slice);
        let others = places.iter().map(|place| &self.all[*place]);
        others.filter(|other| !std::ptr::eq(other.push, message.push))
    }

    /// Whether the message may have been removed.
    pub fn may_be_gone(&self, message: &Message<'a>) -> bool {
        message.forwarded || self.acks(message).next().is_some() || self.removals(message).next().is_some()
    }

    /// Whether no other push of this id was ever accepted, so that the id can only mean this message.
    pub fn alone(&self, message: &Message<'a>) -> bool {
        let pushes = self.with_id(message.id).iter().filter(|op| matches!(op.act, Act::Push { .. }) && op.possible());
        pushes.count() <= 1
    }

    /// Whether a call may have been lost by the instant `by`, because a replica took over that had not received it.
    pub fn may_be_forgotten(&self, op: &Op, by: u64) -> bool {
        self.span_may_be_forgotten(&op.span, by)
    }

    /// Whether what was done in a span may have been lost by the instant `by`.
    pub fn span_may_be_forgotten(&self, span: &Span, by: u64) -> bool {
        self.losses.iter().any(|(at, held)| span.called < *at && *at < by && span.answered >= *held)
    }

    /// Whether a takeover may have lost anything between two instants.
    pub fn anything_forgotten(&self, after: u64, by: u64) -> bool {
        self.losses.iter().any(|(at, _)| after < *at && *at < by)
    }

    /// Whether a server whose clock is behind may have begun to decide between two calls.
    pub fn rewound_between(&self, one: &Span, other: &Span) -> bool {
        self.rewinds.iter().any(|rewind| rewind.separates(one, other))
    }

    /// Whether a server whose clock was ahead may have had the queue between two calls, and may have ended all leases.
    /// It takes a change to this server and one back.
    pub fn leases_may_have_ended_between(&self, one: &Span, other: &Span) -> bool {
        self.rewinds.iter().filter(|rewind| rewind.apart && rewind.separates(one, other)).count() > 1
    }

    /// The largest number of deliveries of one message that no client may have seen between two instants. Each pop
    /// delivers it at most once.
    pub fn hidden_between(&self, after: u64, by: u64) -> usize {
        self.hidden.iter().filter(|span| span.called < by && after < span.answered).count()
    }

    /// All calls that concern a message, in the order in which they were made, as evidence for a report.
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

/// A call without the other messages that its pop returned.
fn one_line(op: &Op, message: &Message<'_>) -> String {
    let mut op = op.clone();
    if let Act::Pop { deliveries } = &mut op.act {
        deliveries.retain(|delivery| delivery.payload == message.payload);
    }
    let us = |ns: u64| ns / 1000;
    format!("{:>9}..{:>9} us  {:?}  {:?}", us(op.span.called), us(op.span.answered), op.outcome, op.act)
}

/// For each takeover, the latest instant before it up to which the replica is known to have everything that was
/// answered.
fn losses(history: &History) -> Vec<(u64, u64)> {
    let confirms = history.ops.iter().filter(|op| matches!(op.act, Act::Confirm) && op.done());
    let calls: Vec<u64> = confirms.map(|op| op.span.called).collect();
    let held = |at: u64| calls.iter().copied().filter(|call| *call < at).max().unwrap_or(0);
    history.losses.iter().map(|at| (*at, held(*at))).collect()
}
