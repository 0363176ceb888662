//! When the deliveries began that stand among the leases; and which of them each consumer holds, by their receipts:
//! how many these are, and which of them began first. Each delivery is counted once: for its consumer, or among those
//! without a name.

use super::View;
use crate::delivery_starts::DeliveryStarts;
use crate::id::{ConsumerId, Receipt, Sequence};
use crate::memory::vec_bytes;
use crate::messages::Messages;
use crate::record::State;
use crate::sorted_set::{key_set_bytes, word, Key, OrderedKeys};
use crate::store::At;
use crate::time::UnixMs;
use std::collections::BTreeMap;

word!(Receipt);

/// The deliveries of a consumer, by (receipt, sequence).
type ConsumerDeliveries = OrderedKeys<Receipt, Sequence>;

/// The deliveries that stand among the leases and bear the name of a consumer, by the number of that.
#[derive(Debug, Default)]
pub(super) struct Holders {
    by_number: Vec<ConsumerDeliveries>,
    /// The number of all deliveries.
    all: usize,
    /// The number of consumers that have one.
    holding: usize,
}

/// The leases that have ended since the last advance, by the consumers whose deliveries they were; those of deliveries
/// without a name stand under `None`.
pub(in super::super) type Ended = BTreeMap<Option<ConsumerId>, Vec<Receipt>>;

impl Holders {
    fn begin(&mut self, ConsumerId(number): ConsumerId, receipt: Receipt, sequence: Sequence) {
        let number = number as usize;
        if self.by_number.len() <= number {
            self.by_number.resize_with(number + 1, ConsumerDeliveries::default);
        }
        if let Some(held) = self.by_number.get_mut(number) {
            self.holding += usize::from(held.is_empty());
            held.insert(Key::new(receipt, sequence));
            self.all += 1;
        }
    }

    fn end(&mut self, ConsumerId(number): ConsumerId, receipt: Receipt, sequence: Sequence) {
        let Some(held) = self.by_number.get_mut(number as usize) else { return };
        if !held.remove(Key::new(receipt, sequence)) {
            return;
        }
        self.all -= 1;
        if held.is_empty() {
            *held = ConsumerDeliveries::default();
            self.holding -= 1;
        }
    }

    pub fn heap_bytes(&self) -> usize {
        let overhead = |number: usize| self.by_number.get(number).map_or(0, ConsumerDeliveries::overhead_bytes);
        vec_bytes::<ConsumerDeliveries>(self.by_number.capacity())
            + key_set_bytes(self.all, self.by_number.len(), overhead)
    }
}

impl View {
    /// Counts a delivery that stands among the leases, for its consumer if it bears the name of one.
    #[inline]
    pub(super) fn begin_delivery(&mut self, messages: &Messages, at: At, receipt: Receipt) {
        match messages.consumer(at) {
            None => self.starts.begin(receipt),
            Some(consumer) => self.begin_hold(consumer, receipt, messages.sequence(at)),
        }
    }

    /// Stops counting a delivery that [`View::begin_delivery`] counted.
    #[inline]
    pub(super) fn end_delivery(&mut self, messages: &Messages, at: At, receipt: Receipt) {
        match messages.consumer(at) {
            None => self.starts.end(receipt),
            Some(consumer) => self.end_hold(consumer, receipt, messages.sequence(at)),
        }
    }

    /// Counts a delivery for its consumer that stands among the leases and was given the name of that after it began.
    pub fn name_delivery(&mut self, messages: &Messages, at: At, receipt: Receipt) {
        self.starts.end(receipt);
        self.begin_delivery(messages, at, receipt);
    }

    #[cold]
    fn begin_hold(&mut self, consumer: ConsumerId, receipt: Receipt, sequence: Sequence) {
        self.uncommon.get_or_insert_default().holders.get_or_insert_default().begin(consumer, receipt, sequence);
    }

    #[cold]
    fn end_hold(&mut self, consumer: ConsumerId, receipt: Receipt, sequence: Sequence) {
        let Some(uncommon) = &mut self.uncommon else { return };
        if let Some(holders) = &mut uncommon.holders {
            holders.end(consumer, receipt, sequence);
            uncommon.holders.take_if(|holders| holders.all == 0);
            self.free_uncommon();
        }
    }

    /// Counts all deliveries again that stand among the leases. O(n log n).
    pub(super) fn recount_deliveries(&mut self, messages: &Messages) {
        let (starts, holders) = self.counted(messages);
        self.starts = starts;
        if holders.all > 0 {
            self.uncommon.get_or_insert_default().holders = Some(Box::new(holders));
        } else if let Some(uncommon) = &mut self.uncommon {
            uncommon.holders = None;
            self.free_uncommon();
        }
    }

    /// The deliveries that stand among the leases: those without a name, and those of consumers.
    fn counted(&self, messages: &Messages) -> (DeliveryStarts, Holders) {
        let (mut unnamed, mut named) = (Vec::new(), Vec::new());
        for lease in self.inflight.iter_after(None) {
            let Some(at) = messages.locate(lease.sequence()) else { continue };
            let Some(receipt) = messages.record(at).receipt() else { continue };
            match messages.consumer(at) {
                None => unnamed.push(receipt),
                Some(consumer) => named.push((receipt, lease.sequence(), consumer)),
            }
        }
        // Entries are added at the end.
        named.sort_unstable();
        let mut holders = Holders::default();
        named.into_iter().for_each(|(receipt, sequence, consumer)| holders.begin(consumer, receipt, sequence));
        (DeliveryStarts::from_receipts(unnamed), holders)
    }

    /// The leases that have ended by `now` since the last advance, at most `most` of them.
    pub fn ended_of_consumers(&self, messages: &Messages, now: UnixMs, most: usize) -> Ended {
        let mut ended = Ended::new();
        let end = Key::end_of(now);
        for lease in self.inflight.iter_after(None).take(most).take_while(|lease| *lease <= end) {
            let Some(at) = messages.locate(lease.sequence()) else { continue };
            if let Some(receipt) = messages.record(at).receipt() {
                ended.entry(messages.consumer(at)).or_default().push(receipt);
            }
        }
        ended
    }

    /// Whether no message is held by a named consumer, without a look at them.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.uncommon.is_none()
    }

    /// How many consumers hold messages, as of the last advance. O(1).
    #[inline]
    pub fn holding(&self) -> usize {
        self.uncommon.as_ref().and_then(|uncommon| uncommon.holders.as_ref()).map_or(0, |holders| holders.holding)
    }

    /// The deliveries of a consumer, by their receipts.
    fn held(&self, consumer: ConsumerId) -> Option<&ConsumerDeliveries> {
        self.uncommon.as_ref()?.holders.as_ref()?.by_number.get(consumer.0 as usize)
    }

    /// How many messages a consumer holds, and when the oldest of these deliveries began; `None` if it holds none.
    pub fn held_by(&self, consumer: ConsumerId, ended: &Ended) -> Option<(usize, UnixMs)> {
        let held = self.held(consumer)?;
        let mut ended = ended.get(&Some(consumer)).cloned().unwrap_or_default();
        ended.sort_unstable();
        let inflight = held.len().checked_sub(ended.len()).filter(|inflight| *inflight > 0)?;
        // All that have ended are held, so the first that runs is the first that differs.
        let ended = ended.into_iter().map(Some).chain(std::iter::repeat(None));
        let first = held.iter_after(None).zip(ended).find(|(key, ended)| Some(key.major()) != *ended)?;
        Some((inflight, first.0.major().began()))
    }

    /// The first `count` messages that a consumer holds at `now`, in the order in which they were delivered. O(log n)
    /// for each, and for each lease that has ended since the last advance.
    pub fn first_held(&self, messages: &Messages, consumer: ConsumerId, now: UnixMs, count: usize) -> Vec<Sequence> {
        let runs = |sequence: &Sequence| {
            messages.locate(*sequence).is_some_and(|at| messages.record(at).state_at(now) == State::InFlight)
        };
        let held = self.held(consumer).into_iter().flat_map(|held| held.iter_after(None));
        held.map(Key::minor).filter(runs).take(count).collect()
    }

    /// The instant at which the oldest delivery began that is still running at `now`; `None` if none is. At most
    /// `ended_max` leases that have expired since the last advance are recognised as expired. O(consumers).
    pub fn oldest_begun(&self, messages: &Messages, now: UnixMs, ended_max: usize) -> Option<UnixMs> {
        let mut ended = self.ended_of_consumers(messages, now, ended_max);
        let unnamed = self.starts.earliest_but(ended.remove(&None).unwrap_or_default());
        let holders = self.uncommon.as_ref().and_then(|uncommon| uncommon.holders.as_ref());
        let consumers = (0..).zip(holders.iter().flat_map(|holders| &holders.by_number));
        let named = consumers.filter_map(|(number, _)| Some(self.held_by(ConsumerId(number), &ended)?.1));
        named.chain(unnamed).min()
    }

    /// Checks that the deliveries are counted, those of each consumer apart.
    pub(super) fn check_deliveries(&self, messages: &Messages) -> Result<(), &'static str> {
        let (starts, counted) = self.counted(messages);
        if self.starts.earliest_but(Vec::new()) != starts.earliest_but(Vec::new()) {
            return Err("the earliest running delivery is wrong");
        }
        let holders = self.uncommon.as_ref().and_then(|uncommon| uncommon.holders.as_deref());
        let numbers = |holders: &Holders| (holders.all, holders.holding);
        if numbers(&counted) != holders.map_or((0, 0), numbers) {
            return Err("the deliveries of consumers are miscounted");
        }
        for (number, counted) in (0..).zip(&counted.by_number) {
            let held = self.held(ConsumerId(number)).into_iter().flat_map(|held| held.iter_after(None));
            if !held.eq(counted.iter_after(None)) {
                return Err("the deliveries of a consumer are wrong");
            }
        }
        Ok(())
    }
}
