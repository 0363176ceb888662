//! Reads the lists of a queue: its messages, and what it has besides them; and the consumers of all queues.

use super::{granted, Part, Source};
use crate::condition::HELD;
use crate::dead::{as_it_died, cause_of};
use crate::failure::Failure;
use crate::first::{self, Most};
use crate::groups;
use crate::output::text::grouped;
use crate::reply::Fields;
use crate::top::entries::{self, Entries, Only};
use crate::top::exchange::Update;
use crate::top::listing::Listing;
use dq_client::{cmd, Error, Resend};
use std::time::{Duration, Instant};

/// The most messages in a list, and the most bytes of payloads that are read for it.
const MESSAGES: i64 = 500;
const BYTES: i64 = 4 * 1024 * 1024;
/// A list for which messages are read is read again after this many times as long as reading took, and only after a change if
/// that was longer than this.
const PAUSE: u32 = 20;
const SLOW: Duration = Duration::from_millis(500);
/// How long it is read who holds messages in all queues.
const HOLDERS: Duration = Duration::from_secs(1);

impl Source {
    /// Reads a list when it is opened and after a change, and otherwise as often as its cost allows.
    pub(super) fn list(&mut self, queue: Vec<u8>, listing: Listing, part: Part) {
        let sought = self.wanted.sought.clone();
        let is_early = |(at, took): (Instant, Duration)| took > SLOW || at.elapsed() < took * PAUSE;
        if (listing.is_costly() || !sought.is_empty()) && part == Part::Refresh && self.listed.is_some_and(is_early) {
            return;
        }
        let began = Instant::now();
        let read = match listing {
            Listing::Holders => self.holders(),
            Listing::Consumers
            | Listing::Groups
            | Listing::Causes
            | Listing::Letters
            | Listing::Schedules
            | Listing::Batches => entries::read(&self.client, &queue, listing, &sought, || self.tell(Update::Answered)),
        };
        let read = read.map_err(|failure| failure.to_string());
        self.listed = read.is_ok().then(|| (Instant::now(), began.elapsed()));
        self.tell(Update::Listing(queue, listing, read));
    }

    /// Reads who holds messages, the one that has held one for longest first. Only queues that had some in flight are read, as
    /// far as the time allows it.
    fn holders(&mut self) -> Result<Entries, Failure> {
        let (mut rows, mut read, mut remark) = (Vec::new(), Vec::new(), None);
        let mut held: Vec<_> = self.held.clone().into_iter().collect();
        held.sort_by_key(|(_, since)| *since);
        let end = Instant::now() + HOLDERS;
        for (name, _) in &held {
            if Instant::now() >= end {
                let (some, all) = (grouped(read.len()), grouped(held.len()));
                remark = Some(format!("{some} of {all} queues were read, those with the oldest messages in flight."));
                break;
            }
            self.tell(Update::Answered);
            let snapshot = self.queue(name, false)?;
            let holders = snapshot.as_ref().map(|snapshot| entries::holders(&self.client, name, &snapshot.info));
            match holders.transpose() {
                Ok(holders) => rows.extend(holders.into_iter().flatten()),
                // The user may be allowed to read the others.
                Err(failure) if failure.is_denied() => remark = Some(format!("Some are left out: {failure}.")),
                Err(failure) => return Err(failure),
            }
            read.push((name.clone(), snapshot));
        }
        self.tell(Update::Queues(read));
        rows.sort_by_key(|entry| entry.at);
        Ok(Entries { rows, remark, ..Entries::default() })
    }

    pub(super) fn messages(&self, queue: Vec<u8>, state: &'static str, count: usize) -> Result<(), Error> {
        let info = granted(self.client.call(cmd("DQ.INFO").arg(&queue), Resend::Harmless))?;
        let info = info.and_then(|reply| Fields::read(reply).ok().flatten()).unwrap_or_default();
        let number = |name: &str| info.int(name).unwrap_or(0);
        if number("oldest-inflight") >= HELD {
            // Who may not read the consumers sees the messages.
            let consumers = entries::read(&self.client, &queue, Listing::Consumers, "", || {}).unwrap_or_default();
            let longest = consumers.rows.into_iter().next().filter(|consumer| consumer.age() >= HELD);
            self.tell(Update::Holder(queue.clone(), longest));
        }
        // Who may not read the groups sees the messages.
        let paused = groups::paused(&self.client, &queue).unwrap_or(0);
        self.tell(Update::PausedGroups(queue.clone(), paused));
        // These may be far apart.
        let count = match self.wanted.only {
            Some(Only::Cause(_) | Only::Batch(_) | Only::Consumer(_)) => usize::MAX,
            Some(Only::Group(_)) | None => count,
        };
        let count = i64::try_from(count).unwrap_or(MESSAGES).clamp(1, MESSAGES);
        let mut command = cmd("DQ.PEEK").arg(&queue).arg(state).clone();
        if let Some(Only::Group(group)) = &self.wanted.only {
            command.arg("GROUP").arg(group);
        }
        let most = Most { messages: count, bytes: BYTES };
        let Some(messages) = granted(first::read(&self.client, &command, &info, most))? else {
            self.tell(Update::Said(Ok("the messages cannot be read: the user needs +dq.peek".to_owned())));
            return Ok(());
        };
        let is_meant = |message: &Fields| match &self.wanted.only {
            Some(Only::Cause(cause)) => {
                let letter = as_it_died(message.clone());
                cause_of(letter.as_ref().unwrap_or(message)) == *cause
            }
            Some(Only::Batch(batch)) => message.bytes("batch") == batch,
            Some(Only::Consumer(consumer)) => message.bytes("consumer") == consumer,
            Some(Only::Group(_)) | None => true,
        };
        let messages = messages.into_iter().filter(is_meant).collect();
        self.tell(Update::Messages(queue, state, messages));
        Ok(())
    }
}
