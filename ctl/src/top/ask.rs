//! Which change a key asks for, and why there is none.

use super::action::{Action, End, Kind};
use super::app::App;
use super::details::DetailsPage;
use super::entries::{About, Only};
use super::listing::{Listing, ListingPage};
use super::marked::Change;
use super::moves::Place;
use super::prompt::Prompt;
use super::queue::{QueuePage, STATES};
use super::sources::Sources;
use crate::dead::{is_letter, Among};
use crate::message::recurs;
use crate::output::text::grouped;
use dq_client::State;

/// The keys that need a queue.
pub const HINTED: &str = "pPCRNDXcrntbauweosBiA";

impl App {
    /// Asks before something is done.
    pub fn ask(&mut self, letter: char) {
        self.queues.hold();
        let holder = self.listing.as_ref().and_then(|page| page.selected()?.queue().cloned());
        let of_page = self.queue.as_ref().map(|page| page.name.clone());
        let queue = match of_page.or(holder).or_else(|| self.queues.selected().cloned()) {
            _ if self.place() == Place::Findings => return self.say("open the queue of the finding first, with Enter"),
            _ if self.place() == Place::Listing(Listing::Holders) && !Listing::Holders.keys().contains(letter) => {
                return self.say("open the queue of the consumer first, with Enter")
            }
            _ if self.place() == Place::Found => return self.say("open the message first, with Enter"),
            None => return self.say("there is no queue here"),
            Some(queue) => queue,
        };
        let number = |field: &str| {
            let number = self.queues.row(&queue).map_or(0, |row| row.number(field));
            u64::try_from(number).unwrap_or(0)
        };
        let (id, place) = (self.selected_id(), self.place());
        let kind = match (letter, id) {
            _ if matches!(place, Place::Listing(listing) if listing.keys().contains(letter)) => {
                match self.of_entry(letter) {
                    Ok(kind) => kind,
                    Err(why) => return self.say(why),
                }
            }
            ('p' | 'P' | 'C' | 'R' | 'N' | 'D' | 'X' | 'c' | 'n' | 'r' | 't' | 'b' | 'a', _)
                if matches!(place, Place::Listing(_)) =>
            {
                return self.say("this key is for the queue or its messages: Esc goes back to them")
            }
            ('a', _) if place == Place::Queues => return self.mark_all_queues(),
            ('w', _) if place == Place::Queues => return self.list(letter),
            (letter, _) if place == Place::Queues && !self.queues.marked.is_empty() => {
                let Some(change) = Change::of(letter, &self.queues) else {
                    return self.say("only p, C, R and N are for marked queues: Esc forgets the marks");
                };
                Kind::Marked(change, change.of_marked(&self.queues))
            }
            ('p', _) if number("paused") == 1 => Kind::Resume,
            ('p', _) => Kind::Pause,
            ('D', _) => Kind::Delete(STATES.map(|state| number(state.as_str())).iter().sum()),
            ('C', _) if number("closed") == 1 => Kind::Open,
            ('C', _) => Kind::Close,
            ('P', _) => {
                self.said = None;
                self.prompt = Prompt::Pause(queue, String::new());
                return;
            }
            ('R' | 'N' | 'X', _) if self.is_partial() => return self.say(&self.instead_of_all()),
            ('R', _) => Kind::RedriveAll(number("dead")),
            ('N', _) => Kind::PromoteAll(number("delayed")),
            _ if place == Place::Queues => return self.say("open the queue first, with Enter"),
            ('w' | 'e' | 'o' | 's' | 'B', _) => return self.list(letter),
            ('i', _) => {
                self.details = Some(DetailsPage::default());
                return;
            }
            ('A', _) => return self.ask_for_settings(queue),
            ('X', _) => match &self.queue {
                Some(page) if place == Place::Messages => Kind::Purge(page.state.as_str(), number(page.state.as_str())),
                _ => return self.say("this key is for the list of messages: Esc goes back to it"),
            },
            ('a', _) if place == Place::Messages => return self.mark_all(),
            ('u', _) => return self.say("this key is for the consumers: w lists them"),
            ('a', _) => return self.say("this key is for the list of messages: Esc goes back to it"),
            ('c', _) if !self.marked().is_empty() => Kind::RemoveMarked(self.removal(), self.marked()),
            ('r', _) if !self.marked().is_empty() && self.state() == "dead" => Kind::RedriveMarked(self.marked()),
            ('r', _) if !self.marked().is_empty() && self.has_letters() => self.send_back(self.marked()),
            ('b', _) if !self.marked().is_empty() && self.can_bury().is_some() => {
                Kind::Bury(self.can_bury().unwrap_or_default(), self.marked())
            }
            ('n' | 't' | 'b', _) if !self.marked().is_empty() => {
                return self.say(&format!("only {} for marked messages: Esc forgets the marks", self.for_marked()))
            }
            ('c' | 't' | 'b', Some(id)) if self.state() == "inflight" => {
                let consumer = self.selected_message().map_or(Vec::new(), |message| message.bytes("consumer").to_vec());
                let end = match letter {
                    't' => End::Nack,
                    'b' => End::Bury,
                    _ => End::Cancel,
                };
                Kind::End(end, id, consumer)
            }
            ('b', Some(_)) if self.selected_message().is_some_and(recurs) => {
                return self.say("it is a schedule, which is not buried: c cancels it")
            }
            ('b', Some(id)) if self.can_bury().is_some() => Kind::Bury(self.can_bury().unwrap_or_default(), vec![id]),
            ('b', Some(_)) => return self.say("it has ended: only a message that can still be delivered is buried"),
            ('t', Some(_)) => return self.say("it is not in flight: only what a consumer holds is nacked"),
            ('c', Some(id)) => Kind::Remove(self.removal(), id),
            ('r', Some(id)) if self.state() == "dead" => Kind::Redrive(id),
            ('n', Some(id)) if self.state() == "delayed" => Kind::RunNow(id),
            ('r', Some(id)) if self.selected_message().is_some_and(is_letter) => self.send_back(vec![id]),
            ('r', Some(_)) => return self.say("it is not dead: only dead messages are redriven"),
            ('n', Some(_)) => return self.say("it is not delayed: only delayed messages are run now"),
            (_, None) => return self.say("there is no message here"),
            _ => return drop(self.refuse()),
        };
        match kind {
            Kind::RedriveAll(0) => return self.say("the queue has no dead messages"),
            Kind::PromoteAll(0) => return self.say("the queue has no delayed messages"),
            Kind::Marked(change, queues) if queues.is_empty() => {
                let state = change.state().unwrap_or_default();
                return self.say(&format!("the marked queues have no {state} messages"));
            }
            Kind::Purge(state, 0) => return self.say(&format!("the queue has no {state} messages")),
            _ => {}
        }
        self.recurring = None;
        self.prompt = Prompt::Question(Action { queue, kind });
    }

    /// Marks the queue or the message under the cursor, or forgets its mark, and goes on.
    pub fn mark(&mut self) {
        if self.place() == Place::Queues {
            if !self.queues.mark() {
                self.say("there is no queue here");
            }
            return;
        }
        let selected = self.selected_id();
        if selected.is_none() {
            self.say("there is no message here");
        }
        if let (Some(id), Some(page)) = (selected, &mut self.queue) {
            if !page.marked.remove(&id) {
                page.marked.insert(id);
            }
            page.place += 1;
            page.clamp(self.height);
        }
    }

    /// Marks all messages that are shown and were read, also beyond the screen.
    fn mark_all(&mut self) {
        let Some(page) = &mut self.queue else { return };
        let shown: Vec<Vec<u8>> = page.rows().map(|message| message.bytes("id").to_vec()).collect();
        page.marked.extend(shown);
        let said = match page.marked.len() {
            0 => "there is no message here".to_owned(),
            all => format!("{} marked: {} now for them, and Esc forgets the marks", grouped(all), self.for_marked()),
        };
        self.say(&said);
    }

    fn mark_all_queues(&mut self) {
        let marked = grouped(self.queues.mark_all());
        self.say(&format!("{marked} marked: p, C, R and N are now for them, and Esc forgets the marks"));
    }

    /// The keys for marked messages.
    fn for_marked(&self) -> &'static str {
        match self.state().as_str() {
            "dead" => "c and r are",
            "done" => "c is",
            _ if self.has_letters() => "c, r and b are",
            _ => "c and b are",
        }
    }

    /// The state of the message under the cursor, if messages in it can be buried.
    pub fn can_bury(&self) -> Option<&'static str> {
        let state = self.state();
        STATES
            .into_iter()
            .map(State::as_str)
            .find(|known| *known == state)
            .filter(|known| !["dead", "done"].contains(known))
    }

    /// What to do if a key for all messages is pressed while only some are shown.
    fn instead_of_all(&self) -> String {
        match self.queue.as_ref().map(|page| (&page.only, page.filter.is_empty())) {
            Some((Some(Only::Cause(_)), true)) => {
                "this key is for all, and only some are shown: e, then c or r, is for a whole cause; Esc shows all"
                    .to_owned()
            }
            _ => {
                let keys = self.for_marked();
                format!(
                    "this key is for all, and only some are shown: a marks these, then {keys} for them; Esc shows all"
                )
            }
        }
    }

    /// The ids of the messages that are marked, in the list that shows them.
    fn marked(&self) -> Vec<Vec<u8>> {
        let page = self.queue.as_ref().filter(|_| self.place() == Place::Messages);
        page.map_or(Vec::new(), |page| page.marked.iter().cloned().collect())
    }

    /// Sends letters back, of which the one under the cursor, or all in the list, are known.
    fn send_back(&self, ids: Vec<Vec<u8>>) -> Kind {
        let listed = self.queue.iter().flat_map(QueuePage::rows).filter(|_| self.message.is_none());
        let letters = listed.chain(self.message.as_ref().and_then(|_| self.selected_message()));
        let sources = Sources::of(letters.filter(|letter| ids.iter().any(|id| id == letter.bytes("id"))));
        Kind::SendBack(ids, sources)
    }

    /// Opens a list of the queue.
    fn list(&mut self, letter: char) {
        let listing = match letter {
            'w' if self.queue.is_none() => Listing::Holders,
            'w' => Listing::Consumers,
            'o' => Listing::Groups,
            's' => Listing::Schedules,
            'B' => Listing::Batches,
            _ if self.has_letters() => Listing::Letters,
            _ => Listing::Causes,
        };
        (self.message, self.details, self.said) = (None, None, None);
        self.listing = Some(ListingPage::new(listing));
    }

    /// What is done with the entry under the cursor, or why nothing is.
    fn of_entry(&self, letter: char) -> Result<Kind, &'static str> {
        let selected = self.listing.as_ref().and_then(|page| Some((page.listing, page.selected()?)));
        let Some((listing, entry)) = selected else { return Err("there is nothing here") };
        Ok(match (listing, &entry.about) {
            (Listing::Holders, _) if entry.name.is_empty() => {
                return Err(
                    "only what a consumer with a name holds is released: Enter shows these messages, and t nacks one",
                )
            }
            (Listing::Consumers | Listing::Holders, _) if letter == 'u' => {
                Kind::ReleaseUncounted(entry.name.clone(), entry.messages)
            }
            (Listing::Consumers | Listing::Holders, _) => Kind::Release(entry.name.clone(), entry.messages),
            (Listing::Groups, _) if entry.is_paused() => Kind::ResumeGroup(entry.name.clone()),
            (Listing::Groups, _) => Kind::PauseGroup(entry.name.clone()),
            (Listing::Causes, _) if letter == 'c' => Kind::DeleteCause(entry.text(), entry.messages, Among::default()),
            (Listing::Letters, _) if letter == 'c' => Kind::DeleteCause(entry.text(), entry.messages, Among::Letters),
            (Listing::Causes, _) => Kind::RedriveCause(entry.text(), entry.messages),
            (Listing::Schedules, About::Schedule(one)) if one.text("state") == "delayed" => {
                Kind::RunNow(entry.name.clone())
            }
            (Listing::Schedules, _) => return Err("its run is due already, and waits for a consumer or has begun"),
            (Listing::Letters, About::Letters(sources)) => {
                Kind::SendCauseBack(entry.text(), entry.messages, sources.clone())
            }
            (Listing::Letters, _) => return Err("nothing is changed here"),
            (Listing::Batches, _) => return Err("nothing is changed here"),
        })
    }
}
