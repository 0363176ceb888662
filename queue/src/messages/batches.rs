//! The batches that messages are members of.

use super::Messages;
use crate::id::{BatchId, Sequence};
use crate::spans::Spans;
use crate::store::At;

impl Messages {
    /// Ends the membership of a message, and returns the batch that it was a member of.
    #[inline]
    pub fn leave_batch(&mut self, at: At) -> Option<BatchId> {
        let batch = self.store.batch(at)?;
        self.store.end_batch(at);
        Some(batch)
    }

    /// The members of any batch among the messages from `first` to `last`, in push order. O(messages in between).
    fn members_between(&self, first: Sequence, last: Sequence) -> impl Iterator<Item = (At, BatchId)> + '_ {
        let all = std::iter::successors(self.store.first_from(first), |at| self.store.next(*at));
        let between = all.take_while(move |at| self.store.sequence(*at) <= last);
        between.filter_map(|at| Some((at, self.store.batch(at)?)))
    }

    /// The members in `spans`, in push order, each with its batch. O(messages in `spans`).
    pub fn members_in(&self, spans: &Spans) -> Vec<(Sequence, BatchId)> {
        let members = spans.iter().flat_map(|span| self.members_between(span.first, span.last));
        members.map(|(at, batch)| (self.store.sequence(at), batch)).collect()
    }

    /// Ends the membership of all members of a batch, which are between `first` and `last`. Returns them in push order.
    /// O(messages in between).
    pub fn dissolve(&mut self, batch: BatchId, first: Sequence, last: Sequence) -> Vec<Sequence> {
        let members = self.members_between(first, last).filter(|(_, its)| *its == batch).map(|(at, _)| at);
        let members: Vec<At> = members.collect();
        members.iter().for_each(|at| self.store.end_batch(*at));
        members.into_iter().map(|at| self.store.sequence(at)).collect()
    }
}
