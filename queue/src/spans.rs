//! Spans of sequences: a compact way to name many messages of one queue.
//!
//! A span names every message that the queue holds between its two ends. Messages that were pushed one after another
//! are often chosen together (by a purge, a redrive, a promotion), and then a few spans name thousands of them. All
//! servers hold the same messages when they apply an effect, so the same spans name the same messages everywhere,
//! although each server has brought its view to another instant.

use super::id::Sequence;

/// All messages from the first sequence to the last, inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The sequence of the first message.
    pub first: Sequence,
    /// The sequence of the last message.
    pub last: Sequence,
}

/// Spans in ascending order; no two of them have a sequence in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans(Vec<Span>);

impl Spans {
    /// Returns the spans if they are in ascending order and disjoint, and `None` if they are not.
    pub fn new(spans: Vec<Span>) -> Option<Spans> {
        let ascending = spans.iter().all(|span| span.first <= span.last)
            && spans.iter().zip(spans.iter().skip(1)).all(|(one, next)| one.last < next.first);
        ascending.then_some(Spans(spans))
    }

    /// The span of all sequences up to `last`.
    pub fn up_to(last: Sequence) -> Spans {
        Spans(vec![Span { first: Sequence::ZERO, last }])
    }

    /// Adds the next message. `joins` says that the queue holds no message between it and the message that was added
    /// before. Messages must be added in ascending order.
    pub fn add(&mut self, sequence: Sequence, joins: bool) {
        match self.0.last_mut() {
            Some(span) if joins => span.last = sequence,
            _ => self.0.push(Span { first: sequence, last: sequence }),
        }
    }

    /// The spans, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Span> + '_ {
        self.0.iter().copied()
    }

    /// Whether no message is named.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of the spans contains `sequence`. O(log m), where m is the number of spans.
    pub fn contain(&self, sequence: Sequence) -> bool {
        let at = self.0.partition_point(|span| span.last < sequence);
        self.0.get(at).is_some_and(|span| span.first <= sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(first: u64, last: u64) -> Span {
        Span { first: Sequence(first), last: Sequence(last) }
    }

    #[test]
    fn messages_that_follow_each_other_become_one_span() {
        let mut spans = Spans::default();
        for (sequence, joins) in [(3, false), (7, true), (8, true), (20, false)] {
            spans.add(Sequence(sequence), joins);
        }
        assert_eq!(spans.iter().collect::<Vec<_>>(), [span(3, 8), span(20, 20)]);
        let named = (0..30).filter(|sequence| spans.contain(Sequence(*sequence)));
        assert!(named.eq([3, 4, 5, 6, 7, 8, 20]));
    }

    #[test]
    fn spans_that_overlap_or_run_backwards_are_refused() {
        assert!(Spans::new(vec![span(1, 3), span(4, 4)]).is_some());
        assert!(Spans::new(vec![span(1, 3), span(3, 4)]).is_none());
        assert!(Spans::new(vec![span(5, 6), span(1, 2)]).is_none());
        assert!(Spans::new(vec![span(2, 1)]).is_none());
    }
}
