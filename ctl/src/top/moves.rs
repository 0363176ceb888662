//! Where the keys lead: into a queue, its lists and its messages, and back.

use super::app::App;
use super::entries::Only;
use super::listing::{Listing, ListingPage};
use super::message::MessagePage;
use super::queue::{QueuePage, STATES};
use crate::condition::{Condition, Level, HELD};
use crate::row::Row;
use crossterm::event::KeyCode;
use dq_client::State;

/// The page that is on the screen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    Queues,
    Findings,
    /// Messages that were found by their ids.
    Found,
    /// The messages of a queue.
    Messages,
    Listing(Listing),
    Message,
    Details,
}

/// Whether consumers have held a message for long while others wait for that.
pub fn are_held(row: &Row) -> bool {
    row.hangs() || row.has(Condition::Occupied) && row.number("oldest-inflight") >= HELD
}

/// The line that is so many lines from another one.
pub fn moved(from: usize, by: isize) -> usize {
    match by {
        isize::MIN => 0,
        isize::MAX => usize::MAX,
        by => from.saturating_add_signed(by),
    }
}

impl App {
    pub fn place(&self) -> Place {
        match (&self.queue, &self.listing) {
            (None, _) if self.found.is_some() => Place::Found,
            (None, _) if self.findings.is_open => Place::Findings,
            (None, Some(page)) => Place::Listing(page.listing),
            (None, None) => Place::Queues,
            _ if self.details.is_some() => Place::Details,
            _ if self.message.is_some() => Place::Message,
            (_, Some(page)) => Place::Listing(page.listing),
            _ => Place::Messages,
        }
    }

    pub fn back(&mut self) {
        self.said = None;
        // A message of the list of those that were found leads back to it.
        if self.found.is_some() && self.message.is_some() {
            return self.leave_queue();
        }
        if self.details.is_none() && self.message.is_none() {
            if let Some(page) = self.listing.as_mut().filter(|page| !page.filter.is_empty()) {
                return page.filter(String::clear);
            }
        }
        if self.details.take().is_some() || self.message.take().is_some() || self.listing.take().is_some() {
            return;
        }
        match &mut self.queue {
            Some(page) if !page.marked.is_empty() => page.marked.clear(),
            Some(page) if !page.filter.is_empty() => self.filter(String::clear),
            // What a consumer holds leads back to the consumers of all queues, if it was opened there.
            Some(page) if self.holders.is_some() && matches!(page.only, Some(Only::Consumer(_))) => self.leave_queue(),
            Some(page) if page.only.is_some() => page.show(page.state, None),
            Some(_) => self.leave_queue(),
            None if self.found.is_some() => self.found = None,
            None if self.findings.is_open => self.findings.is_open = false,
            None if !self.queues.marked.is_empty() => self.queues.marked.clear(),
            None if self.queues.filter.is_empty() => self.say("this is the first page: q leaves"),
            None => self.filter(String::clear),
        }
    }

    pub fn enter(&mut self) {
        // What was said of one page must not hide the keys of the next one.
        self.said = None;
        match self.place() {
            Place::Queues => {
                self.queues.hold();
                match self.queues.selected().cloned() {
                    Some(name) => self.open(name),
                    None => self.say("there is no queue here"),
                }
            }
            Place::Found => self.enter_found(),
            Place::Findings => self.enter_finding(),
            Place::Listing(_) => self.enter_listing(),
            Place::Messages => match self.selected_message().cloned() {
                Some(message) => {
                    let id = message.bytes("id").to_vec();
                    self.message = Some(MessagePage { id, message: Some(Some(message)), scroll: 0 });
                }
                None => self.say("there is no message here"),
            },
            Place::Message | Place::Details => drop(self.refuse()),
        }
    }

    /// Opens a queue at the state that its trouble is about.
    pub fn open(&mut self, name: Vec<u8>) {
        let row = self.queues.row(&name);
        let number = |field: &str| row.map_or(0, |row| row.number(field));
        let full = [State::Ready, State::Dead, State::Inflight, State::Delayed, State::Done];
        let first = match row {
            Some(row) if row.has(Condition::Dying) => State::Dead,
            Some(row) if row.conditions.first() == Some(&(Condition::Dead, Level::Warning)) => State::Dead,
            Some(row) if are_held(row) => State::Inflight,
            _ => State::Ready,
        };
        let mut all = [first].into_iter().chain(full);
        let state = all.find(|state| number(state.as_str()) > 0).unwrap_or(State::Ready);
        if self.queue.is_none() {
            self.holders = self.listing.take();
        }
        self.queue = Some(QueuePage::new(name, state));
    }

    /// Shows the dead messages of a cause, those of a group or of a batch, what a consumer holds, or a schedule.
    fn enter_listing(&mut self) {
        if self.queue.is_none() {
            return self.enter_holder();
        }
        let (Some(listing), Some(page)) = (&self.listing, &mut self.queue) else { return };
        if let Some(target) = self.queues.row(&page.name).and_then(|row| listing.leads_to(row)) {
            self.open(target);
            self.listing = Some(ListingPage::new(Listing::Letters));
            return;
        }
        match (listing.listing, listing.selected()) {
            (Listing::Consumers | Listing::Holders, entry) => {
                page.show(State::Inflight, entry.map(|entry| Only::Consumer(entry.name.clone())));
            }
            (_, None) => return self.say("there is nothing here"),
            (Listing::Groups, Some(entry)) if entry.messages == 0 => {
                page.show(State::Inflight, Some(Only::Group(entry.name.clone())));
            }
            (Listing::Groups, Some(entry)) => page.show(State::Ready, Some(Only::Group(entry.name.clone()))),
            (Listing::Causes, Some(entry)) => page.show(State::Dead, Some(Only::Cause(entry.text()))),
            (Listing::Letters, Some(entry)) => page.show(State::Ready, Some(Only::Cause(entry.text()))),
            (Listing::Batches, Some(entry)) => page.show(State::Ready, Some(Only::Batch(entry.name.clone()))),
            (Listing::Schedules, Some(entry)) => {
                self.message = Some(MessagePage { id: entry.name.clone(), message: None, scroll: 0 });
                return;
            }
        }
        self.listing = None;
    }

    /// Opens the queue in which the consumer under the cursor holds messages, at these.
    fn enter_holder(&mut self) {
        let holder = self.listing.as_ref().and_then(ListingPage::selected);
        let Some((queue, consumer)) = holder.and_then(|entry| Some((entry.queue()?.clone(), entry.name.clone())))
        else {
            return self.say("there is nothing here");
        };
        self.open(queue);
        if let Some(page) = &mut self.queue {
            page.show(State::Inflight, (!consumer.is_empty()).then_some(Only::Consumer(consumer)));
        }
    }

    /// How far a key moves, in lines; `isize::MIN` and `isize::MAX` are the first and the last one.
    pub fn step(&self, code: KeyCode) -> Option<isize> {
        let page = isize::try_from(self.height).unwrap_or(20);
        match code {
            KeyCode::Down | KeyCode::Char('j') => Some(1),
            KeyCode::Up | KeyCode::Char('k') => Some(-1),
            KeyCode::PageDown | KeyCode::Char(' ') => Some(page),
            KeyCode::PageUp => Some(-page),
            KeyCode::Home | KeyCode::Char('g') => Some(isize::MIN),
            KeyCode::End | KeyCode::Char('G') => Some(isize::MAX),
            _ => None,
        }
    }

    pub fn go(&mut self, by: isize) {
        let moved = |from: usize| moved(from, by);
        let last = self.lines.saturating_sub(self.height);
        if let Some(details) = &mut self.details {
            details.scroll = moved(details.scroll).min(last);
        } else if let Some(message) = &mut self.message {
            message.scroll = moved(message.scroll).min(last);
        } else if let Some(page) = &mut self.listing {
            page.place = moved(page.place);
            page.clamp(self.height);
        } else if let Some(page) = &mut self.queue {
            page.place = moved(page.place);
            page.clamp(self.height);
        } else if let Some(page) = &mut self.found {
            page.place = moved(page.place);
        } else if self.findings.is_open {
            self.findings.go_to(moved(self.findings.place()));
        } else {
            let place = moved(self.queues.place());
            self.queues.go_to(place);
        }
    }

    /// Switches to another state of the queue, or of the group or batch that is shown.
    pub fn turn(&mut self, by: usize) {
        let place = self.place();
        match &mut self.queue {
            Some(page) if place == Place::Messages => {
                let at = STATES.iter().position(|state| *state == page.state).unwrap_or(0);
                if let Some(state) = STATES.get((at + by) % STATES.len()) {
                    let only = page.only.take().filter(|only| matches!(only, Only::Group(_) | Only::Batch(_)));
                    page.show(*state, only);
                }
            }
            _ => drop(self.refuse()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::condition::Recent;
    use crate::reply::Fields;
    use crate::row::Snapshot;
    use crate::top::exchange::Update;
    use crate::top::view::tests::app;
    use dq_client::{State, Value};
    use std::time::Instant;

    #[test]
    fn a_queue_opens_at_its_dead_messages_if_some_died_today_and_nothing_else_is_wrong() {
        let opens_at = |newest_death: i64, is_paused: i64| {
            let mut app = app(&["mail"]);
            let numbers = [("ready", 4), ("dead", 2), ("paused", is_paused)];
            let info = Fields(numbers.map(|(name, number)| (name.to_owned(), Value::Int(number))).into());
            let recent = Recent { newest_death: Some(newest_death), ..Recent::default() };
            let snapshot = Snapshot { at: Instant::now(), info, late: None, recent };
            app.update(Update::Queues(vec![(b"mail".to_vec(), Some(snapshot))]));
            app.open(b"mail".to_vec());
            app.queue.map(|page| page.state)
        };
        const HOUR: i64 = 3_600_000;
        assert_eq!(opens_at(HOUR, 0), Some(State::Dead));
        assert_eq!(opens_at(HOUR, 1), Some(State::Ready));
        assert_eq!(opens_at(25 * HOUR, 0), Some(State::Ready));
    }
}
