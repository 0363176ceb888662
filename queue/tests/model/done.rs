//! Completed messages in the reference model: a list of what is kept of them.

use crate::batches::Left;
use crate::reference::{after, Message, Model, Name};
use dq_queue::id::Sequence;
use dq_queue::Spans;

/// A completed message. One whose time has ended stays in the list until a trim drops it, but is gone for clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    pub sequence: u64,
    pub name: Option<Vec<u8>>,
    pub due: u64,
    pub attempts: u32,
    pub done: u64,
    pub until: u64,
    pub result: Option<Vec<u8>>,
    pub accepted: u64,
}

impl Model {
    /// A message was completed: it is kept as done, or only its id is remembered.
    pub fn leave(&mut self, message: &Message, attempts: u32, retain: Option<u64>, result: Option<&[u8]>) {
        self.leave_batch(message.sequence, Left::Acked);
        let retain = retain.or(message.retain).unwrap_or(self.settings.retain.as_ms());
        if retain == 0 || self.settings.donelen == Some(0) {
            return self.remember(message);
        }
        self.done.push(Finished {
            sequence: message.sequence,
            name: message.name.clone(),
            due: message.due,
            attempts,
            done: self.now,
            until: after(self.now, retain),
            result: result.map(<[u8]>::to_vec),
            accepted: message.accepted,
        });
    }

    fn is_kept(&self, finished: &Finished) -> bool {
        self.now < finished.until
    }

    /// The done messages that clients see, newest first.
    pub fn kept(&self) -> Vec<&Finished> {
        let mut kept: Vec<_> = self.done.iter().filter(|finished| self.is_kept(finished)).collect();
        kept.sort_by_key(|finished| std::cmp::Reverse((finished.done, finished.sequence)));
        kept
    }

    pub fn find_done(&self, name: &Name) -> Option<usize> {
        self.done.iter().position(|finished| {
            self.is_kept(finished)
                && match name {
                    Name::Sequence(sequence) => finished.name.is_none() && finished.sequence == *sequence,
                    Name::Text(text) => finished.name.as_ref() == Some(text),
                }
        })
    }

    pub fn is_done(&self, name: &[u8]) -> bool {
        self.find_done(&Name::Text(name.to_vec())).is_some()
    }

    /// When the id of a done message was accepted whose time has ended.
    pub fn accepted_of_ended(&self, name: &[u8]) -> Option<u64> {
        let named = |finished: &&Finished| finished.name.as_deref() == Some(name) && !self.is_kept(finished);
        self.done.iter().find(named).map(|finished| finished.accepted)
    }

    /// Removes the done message of this name. Returns whether clients saw it.
    pub fn drop_done_named(&mut self, name: &[u8]) -> bool {
        let was_kept = self.is_done(name);
        self.done.retain(|finished| finished.name.as_deref() != Some(name));
        was_kept
    }

    /// Purges all done messages, or the newest ones. Returns those that clients saw.
    pub fn purge_done(&mut self, count: Option<usize>, older: Option<u64>) -> Vec<u64> {
        let mut kept = self.kept();
        kept.retain(|finished| self.now.saturating_sub(finished.done) >= older.unwrap_or(0));
        let kept: Vec<u64> = kept.iter().map(|finished| finished.sequence).collect();
        let Some(count) = count else {
            if !kept.is_empty() {
                let all = std::mem::take(&mut self.done);
                let ended = all.into_iter().filter(|finished| !kept.contains(&finished.sequence));
                self.known.extend(ended.filter_map(|finished| Some((finished.name?, finished.accepted))));
            }
            return kept;
        };
        let chosen = kept[..count.min(kept.len())].to_vec();
        self.done.retain(|finished| !chosen.contains(&finished.sequence));
        chosen
    }

    /// The done messages that a trim drops, in its order: those whose time has ended, then the oldest above the limit.
    pub fn excess_done(&self) -> Vec<u64> {
        let (mut ended, mut kept): (Vec<_>, Vec<_>) = self.done.iter().partition(|finished| !self.is_kept(finished));
        ended.sort_by_key(|finished| (finished.until, finished.sequence));
        kept.sort_by_key(|finished| (finished.done, finished.sequence));
        let most = self.settings.donelen.map_or(usize::MAX, |most| most as usize);
        kept.truncate(kept.len().saturating_sub(most));
        ended.into_iter().chain(kept).map(|finished| finished.sequence).collect()
    }

    /// Drops the messages that a trim named, which must be the first to go. Returns their number.
    pub fn drop_done_in(&mut self, spans: &Spans) -> usize {
        let named = |sequence: u64| spans.contain(Sequence(sequence));
        let excess = self.excess_done();
        let doomed: Vec<Finished> = self.done.iter().filter(|finished| named(finished.sequence)).cloned().collect();
        assert!(excess.iter().take(doomed.len()).all(|sequence| named(*sequence)), "another one goes first");
        assert!(doomed.len() <= excess.len());
        self.done.retain(|finished| !named(finished.sequence));
        self.known.extend(doomed.iter().filter_map(|finished| Some((finished.name.clone()?, finished.accepted))));
        doomed.len()
    }
}
