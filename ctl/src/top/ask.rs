//! Which change a key asks for, and why there is none.

use super::action::{Action, End, Kind};
use super::app::App;
use super::details::DetailsPage;
use super::listing::{Listing, ListingPage};
use super::prompt::Prompt;

/// The keys that need a queue.
const HINTED: &str = "pPRNXcrntbweoi";

impl App {
    /// Asks before something is done.
    pub fn ask(&mut self, letter: char) {
        self.queues.hold();
        let queue = self.queue.as_ref().map(|page| page.name.clone()).or_else(|| self.queues.selected().cloned());
        let Some(queue) = queue else {
            if HINTED.contains(letter) {
                self.say("there is no queue here");
            }
            return;
        };
        let number = |field: &str| {
            let number = self.queues.row(&queue).map_or(0, |row| row.number(field));
            u64::try_from(number).unwrap_or(0)
        };
        let id = self.selected_id();
        let kind = match (letter, id) {
            ('r', _) if self.listing.as_ref().is_some_and(|page| page.listing == Listing::Letters) => {
                return self.say("they are not dead in this queue: only dead messages are redriven")
            }
            _ if self.listing.as_ref().is_some_and(|page| page.listing.key() == letter) => match self.of_entry() {
                Some(kind) => kind,
                None => return self.say("there is nothing here"),
            },
            ('p' | 'P' | 'c' | 'n' | 'r' | 't' | 'b', _) if self.listing.is_some() => return,
            ('p', _) if number("paused") == 1 || number("closed") == 1 => Kind::Resume,
            ('p', _) => Kind::Pause,
            ('P', _) => {
                self.prompt = Prompt::Pause(queue, String::new());
                return;
            }
            ('R' | 'N' | 'X', _) if self.is_partial() => {
                return self.say("this key is for all, and only some are shown: Esc, or e and r for one cause")
            }
            ('R', _) => Kind::RedriveAll(number("dead")),
            ('N', _) => Kind::PromoteAll(number("delayed")),
            ('w' | 'e' | 'o', _) => return self.list(letter),
            ('i', _) if self.queue.is_none() => return self.say("open the queue first, with Enter"),
            ('i', _) => {
                self.details = Some(DetailsPage::default());
                return;
            }
            ('X', _) => match &self.queue {
                Some(page) if self.is_listing_messages() => {
                    Kind::Purge(page.state.as_str(), number(page.state.as_str()))
                }
                _ => return,
            },
            ('c', _) if !self.marked().is_empty() => Kind::RemoveMarked(self.removal(), self.marked()),
            ('r', _) if !self.marked().is_empty() && self.state() == "dead" => Kind::RedriveMarked(self.marked()),
            ('n' | 't' | 'b', _) if !self.marked().is_empty() => {
                return self.say("only c and r are for marked messages: Esc forgets the marks")
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
            ('t' | 'b', Some(_)) => {
                return self.say("it is not in flight: only what a consumer holds is nacked or buried")
            }
            ('c', Some(id)) => Kind::Remove(self.removal(), id),
            ('r', Some(id)) if self.state() == "dead" => Kind::Redrive(id),
            ('n', Some(id)) if self.state() == "delayed" => Kind::RunNow(id),
            ('c' | 'r' | 'n' | 't' | 'b', None) if self.queue.is_some() => return self.say("there is no message here"),
            ('c' | 'r' | 'n' | 't' | 'b', None) => {
                return self.say("open the queue first, with Enter: this key is for one message")
            }
            ('r', Some(_)) => return self.say("it is not dead: only dead messages are redriven"),
            ('n', Some(_)) => return self.say("it is not delayed: only delayed messages are run now"),
            _ => return,
        };
        if let Kind::RedriveAll(0) | Kind::PromoteAll(0) | Kind::Purge(_, 0) = kind {
            return self.say("there are no such messages");
        }
        self.prompt = Prompt::Question(Action { queue, kind });
    }

    /// Marks the message under the cursor, or forgets its mark, and goes on.
    pub fn mark(&mut self) {
        if let (Some(id), Some(page)) = (self.selected_id(), &mut self.queue) {
            if !page.marked.remove(&id) {
                page.marked.insert(id);
            }
            page.place += 1;
            page.clamp(self.height);
        }
    }

    /// The ids of the messages that are marked, in the list that shows them.
    fn marked(&self) -> Vec<Vec<u8>> {
        let page = self.queue.as_ref().filter(|_| self.is_listing_messages());
        page.map_or(Vec::new(), |page| page.marked.iter().cloned().collect())
    }

    /// Opens a list of the queue.
    fn list(&mut self, letter: char) {
        let listing = match letter {
            'w' => Listing::Consumers,
            'o' => Listing::Groups,
            _ if self.has_letters() => Listing::Letters,
            _ => Listing::Causes,
        };
        if self.queue.is_none() {
            self.say("open the queue first, with Enter");
        } else if self.message.is_none() && self.details.is_none() {
            self.listing = Some(ListingPage::new(listing));
        }
    }

    /// What is done with the consumer, the group or the cause under the cursor.
    fn of_entry(&self) -> Option<Kind> {
        let page = self.listing.as_ref()?;
        let entry = page.selected()?;
        Some(match page.listing {
            Listing::Consumers => Kind::Release(entry.name.clone(), entry.messages),
            Listing::Groups if entry.is_paused() => Kind::ResumeGroup(entry.name.clone()),
            Listing::Groups => Kind::PauseGroup(entry.name.clone()),
            Listing::Causes => Kind::RedriveCause(entry.text(), entry.messages),
            Listing::Letters => return None,
        })
    }
}
