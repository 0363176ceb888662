//! Which consumers hold messages: how many deliveries of each stand among the leases, and when the oldest of them
//! began.

use super::super::delivery_starts::DeliveryStarts;
use super::super::id::{ConsumerId, Receipt};
use super::super::messages::Messages;
use super::super::order::Key;
use super::super::store::{At, Placement};
use super::super::time::UnixMs;
use super::View;
use std::collections::BTreeMap;

/// The deliveries that stand among the leases and bear the name of a consumer, by the number of that.
#[derive(Debug, Default)]
pub(super) struct Holders {
    by_number: Vec<Holder>,
    /// The number of all deliveries.
    all: usize,
}

/// The deliveries of one consumer.
#[derive(Debug, Default)]
struct Holder {
    inflight: usize,
    starts: DeliveryStarts,
}

/// The leases that have ended since the last advance, by the consumers whose deliveries they were.
pub(in super::super) type Ended = BTreeMap<ConsumerId, Vec<Receipt>>;

impl Holders {
    fn begin(&mut self, ConsumerId(number): ConsumerId, receipt: Receipt) {
        let number = number as usize;
        if self.by_number.len() <= number {
            self.by_number.resize_with(number + 1, Holder::default);
        }
        if let Some(holder) = self.by_number.get_mut(number) {
            holder.inflight += 1;
            holder.starts.begin(receipt);
            self.all += 1;
        }
    }

    fn end(&mut self, ConsumerId(number): ConsumerId, receipt: Receipt) {
        let holder = self.by_number.get_mut(number as usize).filter(|holder| holder.inflight > 0);
        let Some(holder) = holder else { return };
        self.all -= 1;
        holder.inflight -= 1;
        holder.starts.end(receipt);
        if holder.inflight == 0 {
            holder.starts = DeliveryStarts::default();
        }
    }

    pub fn heap_bytes(&self) -> usize {
        let starts: usize = self.by_number.iter().map(|holder| holder.starts.heap_bytes()).sum();
        self.by_number.capacity() * size_of::<Holder>() + starts
    }
}

impl View {
    /// Counts a delivery for the consumer whose name it bears, if it bears one. It stands among the leases.
    #[cold]
    pub fn begin_hold(&mut self, messages: &Messages, at: At, receipt: Receipt) {
        if let Some(consumer) = messages.consumer(at) {
            self.uncommon.get_or_insert_default().holders.get_or_insert_default().begin(consumer, receipt);
        }
    }

    /// Stops counting a delivery for its consumer.
    #[cold]
    pub(super) fn end_hold(&mut self, messages: &Messages, at: At, receipt: Receipt) {
        let Some(uncommon) = &mut self.uncommon else { return };
        if let (Some(holders), Some(consumer)) = (&mut uncommon.holders, messages.consumer(at)) {
            holders.end(consumer, receipt);
            uncommon.holders.take_if(|holders| holders.all == 0);
            self.free_uncommon();
        }
    }

    /// Counts the deliveries of all consumers again. O(n log n) if there are consumers.
    pub(super) fn recount_holders(&mut self, messages: &Messages) {
        if let Some(holders) = holders_of(messages) {
            self.uncommon.get_or_insert_default().holders = Some(Box::new(holders));
        } else if let Some(uncommon) = &mut self.uncommon {
            uncommon.holders = None;
            self.free_uncommon();
        }
    }

    /// The leases that have ended by `now` since the last advance, at most `most` of them.
    pub fn ended_of_consumers(&self, messages: &Messages, now: UnixMs, most: usize) -> Ended {
        let mut ended = Ended::new();
        if messages.has_consumers() {
            let end = Key::end_of(now);
            for lease in self.inflight.iter_after(None).take(most).take_while(|lease| *lease <= end) {
                let Some(at) = messages.locate(lease.sequence()) else { continue };
                if let (Some(consumer), Some(receipt)) = (messages.consumer(at), messages.record(at).receipt()) {
                    ended.entry(consumer).or_default().push(receipt);
                }
            }
        }
        ended
    }

    /// How many messages a consumer holds, and when the oldest of these deliveries began; `None` if it holds none.
    pub fn held_by(&self, consumer: ConsumerId, ended: &Ended) -> Option<(usize, UnixMs)> {
        let holder = self.uncommon.as_ref()?.holders.as_ref()?.by_number.get(consumer.0 as usize)?;
        let ended = ended.get(&consumer).cloned().unwrap_or_default();
        let inflight = holder.inflight.checked_sub(ended.len()).filter(|inflight| *inflight > 0)?;
        Some((inflight, holder.starts.earliest_but(ended)?))
    }

    /// Checks that the deliveries of each consumer are counted.
    pub(super) fn check_holders(&self, messages: &Messages) -> Result<(), &'static str> {
        let nothing = Ended::new();
        let counted = holders_of(messages);
        let all = |holders: Option<&Holders>| holders.map_or(0, |holders| holders.all);
        if all(counted.as_ref()) != all(self.uncommon.as_ref().and_then(|uncommon| uncommon.holders.as_deref())) {
            return Err("the deliveries of consumers are miscounted");
        }
        for (number, holder) in (0..).zip(counted.iter().flat_map(|counted| &counted.by_number)) {
            let counted = holder.starts.earliest_but(Vec::new()).map(|oldest| (holder.inflight, oldest));
            if self.held_by(ConsumerId(number), &nothing) != counted {
                return Err("the oldest delivery of a consumer is wrong");
            }
        }
        Ok(())
    }
}

/// The deliveries of all consumers; `None` if there are none.
fn holders_of(messages: &Messages) -> Option<Holders> {
    let standing = messages.all_with_consumers().filter(|(at, _)| messages.placement(*at) == Placement::InFlight);
    let mut all: Vec<_> =
        standing.filter_map(|(at, consumer)| Some((messages.record(at).receipt()?, consumer))).collect();
    // Entries are added at the end.
    all.sort_unstable();
    let mut holders = Holders::default();
    all.iter().for_each(|(receipt, consumer)| holders.begin(*consumer, *receipt));
    (holders.all > 0).then_some(holders)
}
