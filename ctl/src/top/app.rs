//! The state of the screen, and what keys do to it.

use super::action::{Action, Kind, Removal};
use super::ask::HINTED;
use super::details::DetailsPage;
use super::entries::Entry;
use super::exchange::{Update, Wanted};
use super::findings::FindingsPage;
use super::found::{FoundPage, Search};
use super::listing::{Listing, ListingPage};
use super::message::MessagePage;
use super::moves::Place;
use super::prompt::Prompt;
use super::queue::{QueuePage, STATES};
use super::queues::Queues;
use super::recurring::{About, Recurring};
use super::sort::Sort;
use crate::message::recurs;
use crate::output::text::Style;
use crate::reply::Fields;
use crate::time::now_ms;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::time::{Duration, Instant};

/// How long the outcome of an action is shown.
const SAID: Duration = Duration::from_secs(10);

/// What was read before this time is old, and at least after three times the time between two looks.
const SILENT: Duration = Duration::from_secs(3);

pub struct App {
    pub queues: Queues,
    pub findings: FindingsPage,
    pub found: Option<FoundPage>,
    pub queue: Option<QueuePage>,
    /// A list of the queue, or without one that of the consumers of all queues.
    pub listing: Option<ListingPage>,
    /// The latter, while a queue is shown that was opened there.
    pub holders: Option<ListingPage>,
    pub message: Option<MessagePage>,
    pub details: Option<DetailsPage>,
    pub prompt: Prompt,
    /// How many schedules are among the messages of the last question.
    pub recurring: Option<(About, Recurring)>,
    /// The first line of the help on the screen; `None`: the help is not shown.
    pub help: Option<usize>,
    pub said: Option<Said>,
    /// Why the server cannot be read.
    pub lost: Option<String>,
    /// Why the queues of some servers of a cluster are missing.
    pub missing: Option<String>,
    /// When queues were read last, also in Unix ms.
    pub read: Option<(Instant, i64)>,
    /// The number of lines for the list on the current page.
    pub height: usize,
    /// The last line to which a message can be scrolled; computed by the view.
    pub lines: usize,
    pub server: String,
    /// Only queues that match it are read.
    pub pattern: Option<String>,
    /// The time between two looks at the server.
    every: Duration,
}

/// What is said on the last lines.
pub struct Said {
    pub text: String,
    pub style: Style,
    /// When it is removed; `None`: with the next key, because nobody may miss it.
    until: Option<Instant>,
}

/// What a key leads to.
#[derive(PartialEq, Eq, Debug)]
pub enum Next {
    Stay,
    /// The key has no use on this page.
    Refused,
    Do(Action),
    /// Looks for messages in all queues.
    Find(Search),
    /// Looks for what `dqctl doctor` finds.
    Examine,
    Leave,
}

impl App {
    pub fn new(server: String, pattern: Option<String>, every: Duration) -> App {
        App {
            queues: Queues::new(),
            findings: FindingsPage::default(),
            found: None,
            queue: None,
            listing: None,
            holders: None,
            message: None,
            details: None,
            prompt: Prompt::None,
            recurring: None,
            help: None,
            said: None,
            lost: None,
            missing: None,
            read: None,
            height: 20,
            lines: 0,
            server,
            pattern,
            every,
        }
    }

    /// What the source must read for this screen.
    pub fn wanted(&mut self) -> Wanted {
        Wanted { recurring: self.asked_about(), ..self.wanted_of_page() }
    }

    fn wanted_of_page(&mut self) -> Wanted {
        let Some(page) = &self.queue else {
            let queues = if self.place() != Place::Queues { Vec::new() } else { self.queues.visible(self.height) };
            let listing = matches!(self.place(), Place::Listing(_)).then(|| (Vec::new(), Listing::Holders));
            return Wanted { queues, listing, ..Wanted::default() };
        };
        let queues = vec![page.name.clone()];
        if self.details.is_some() {
            return Wanted { details: Some(page.name.clone()), queues, ..Wanted::default() };
        }
        if let Some(message) = &self.message {
            let message = Some((page.name.clone(), message.id.clone()));
            return Wanted { queues, message, ..Wanted::default() };
        }
        if let Some(listing) = &self.listing {
            let sought = listing.sought.clone();
            let listing = Some((page.name.clone(), listing.listing));
            return Wanted { queues, listing, sought, ..Wanted::default() };
        }
        // In steps, so that not every key press reads the list again. What is marked must not be left out when the cursor moves up.
        let all = if page.filter.is_empty() && page.marked.is_empty() { 0 } else { usize::MAX };
        let count = (page.place.max(page.top) + self.height + 1).next_multiple_of(50).max(all);
        let messages = Some((page.name.clone(), page.state.as_str(), count));
        Wanted { queues, messages, only: page.only.clone(), ..Wanted::default() }
    }

    pub fn update(&mut self, update: Update) {
        match update {
            Update::Lost(why) => self.lost = Some(why),
            Update::Denied(queues) => self.queues.denied = queues,
            Update::Changed(queue) => drop(self.queues.marked.remove(&queue)),
            Update::Said(Ok(text)) => self.say(&text),
            Update::Said(Err(text)) => self.keep_saying(text, Style::Bad),
            Update::Listing(queue, listing, entries) => {
                let is_shown = self.queue.as_ref().map_or(&[][..], |page| &page.name) == queue;
                if let Some(page) = self.listing.as_mut().filter(|page| is_shown && page.listing == listing) {
                    let is_fitting = |entry: &Entry| entry.queue().is_none_or(|queue| self.queues.fits(queue));
                    page.take(entries.map(|entries| entries.first_of(is_fitting)));
                    page.clamp(self.height);
                }
            }
            Update::Names(names, missing) => {
                self.missing = missing;
                self.queues.names(names);
            }
            Update::Answered => self.answered(),
            Update::Queues(read) => {
                self.answered();
                self.queues.update(read);
            }
            Update::Messages(queue, state, messages) => {
                if let Some(page) =
                    self.queue.as_mut().filter(|page| page.name == queue && page.state.as_str() == state)
                {
                    page.take(messages);
                    page.clamp(self.height);
                }
            }
            Update::Died(queue, newest) => self.queues.died(queue, newest),
            Update::Recurring(about, counted) => self.recurring = Some((about, counted)),
            Update::Findings(found) => self.findings.take(found),
            Update::Found(found) => self.found(found),
            Update::Details(queue, lines) => {
                let is_shown = self.queue.as_ref().is_some_and(|page| page.name == queue);
                if let Some(page) = self.details.as_mut().filter(|_| is_shown) {
                    page.lines = Some(lines);
                }
            }
            Update::Holder(queue, holder) => {
                if let Some(page) = self.queue.as_mut().filter(|page| page.name == queue) {
                    page.holder = holder;
                }
            }
            Update::PausedGroups(queue, paused) => {
                if let Some(page) = self.queue.as_mut().filter(|page| page.name == queue) {
                    page.paused_groups = paused;
                }
            }
            Update::Message(queue, id, read) => {
                let is_shown = self.queue.as_ref().is_some_and(|page| page.name == queue);
                if let Some(page) = self.message.as_mut().filter(|page| is_shown && page.id == id) {
                    page.message = Some(read);
                }
            }
        }
    }

    fn answered(&mut self) {
        (self.lost, self.read) = (None, Some((Instant::now(), now_ms())));
    }

    /// The age of what is shown, if the server cannot be read, or if its answer takes long.
    pub fn age(&self) -> Option<Duration> {
        let age = self.read?.0.elapsed();
        (self.lost.is_some() || age >= SILENT.max(self.every * 3)).then_some(age)
    }

    /// Removes an old report. Returns true if that changes the screen.
    pub fn tick(&mut self) -> bool {
        let is_old = self.said.as_ref().and_then(|said| said.until).is_some_and(|until| until < Instant::now());
        if is_old {
            self.said = None;
        }
        is_old
    }

    pub fn key(&mut self, key: KeyEvent) -> Next {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            if key.code == KeyCode::Char('c') {
                return Next::Leave;
            }
            return self.refuse();
        }
        match std::mem::replace(&mut self.prompt, Prompt::None) {
            Prompt::Question(action) => {
                self.said = None;
                let action = match self.instead(&action) {
                    _ if key.code == KeyCode::Char('y') => action,
                    Some(instead) if key.code == KeyCode::Char(instead.key) => instead.action,
                    _ => return Next::Stay,
                };
                self.mark_only_changed(&action);
                if matches!(action.kind, Kind::Delete(_)) {
                    self.leave_queue();
                }
                self.keep_saying(format!("{}: no answer yet", action.stem()), Style::Warning);
                return Next::Do(action);
            }
            Prompt::Filter => {
                self.filter_key(key.code);
                return Next::Stay;
            }
            Prompt::Find(id) => return self.find_key(key.code, id),
            Prompt::Pause(queue, time) => {
                self.pause_key(key.code, queue, time);
                return Next::Stay;
            }
            Prompt::Alter(queue, text) => {
                self.alter_key(key.code, queue, text);
                return Next::Stay;
            }
            Prompt::None => {}
        }
        if self.said.as_ref().is_some_and(|said| said.until.is_none()) {
            self.said = None;
        }
        if let Some(scroll) = self.help {
            self.help_key(key.code, scroll);
            return Next::Stay;
        }
        match key.code {
            KeyCode::Char('q') => return Next::Leave,
            KeyCode::Char('?') => self.help = Some(0),
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Left => self.back(),
            KeyCode::Enter | KeyCode::Right => self.enter(),
            KeyCode::Char(' ') if matches!(self.place(), Place::Queues | Place::Messages) => self.mark(),
            code if self.step(code).is_some() => self.step(code).into_iter().for_each(|by| self.go(by)),
            KeyCode::Tab => self.turn(1),
            KeyCode::BackTab => self.turn(STATES.len() - 1),
            KeyCode::Char('/') if matches!(self.place(), Place::Queues | Place::Messages | Place::Listing(_)) => {
                self.filter_anew()
            }
            KeyCode::Char('d') if self.queue.is_none() => return self.examine(),
            // Where nothing is filtered, what is typed after `/` is looked for, and is not taken for other keys.
            KeyCode::Char('f' | '/') => self.prompt = Prompt::Find(String::new()),
            KeyCode::Char('s') if self.place() == Place::Queues => {
                self.queues.sort = self.queues.sort.next();
                self.rearrange();
            }
            KeyCode::Char(digit @ '1'..='9') if self.place() == Place::Queues => {
                self.queues.sort = Sort::of(digit).unwrap_or(self.queues.sort);
                self.rearrange();
            }
            KeyCode::Char('S') if self.place() == Place::Queues => {
                self.queues.reverse = !self.queues.reverse;
                self.rearrange();
            }
            KeyCode::Char(letter) if HINTED.contains(letter) => self.ask(letter),
            _ => return self.refuse(),
        }
        Next::Stay
    }

    /// Sorts by what was chosen, and says what that is.
    fn rearrange(&mut self) {
        self.queues.arrange();
        self.queues.go_first();
        let reversed = if self.queues.reverse { ", reversed" } else { "" };
        self.say(&format!("sorted by {}{reversed}", self.queues.sort.name()));
    }

    pub fn say(&mut self, text: &str) {
        self.said = Some(Said { text: text.to_owned(), style: Style::Good, until: Some(Instant::now() + SAID) });
    }

    /// Says what is wrong with what was typed.
    pub fn say_wrong(&mut self, text: String) {
        self.keep_saying(text, Style::Bad);
    }

    /// Says what nobody may miss.
    fn keep_saying(&mut self, text: String, style: Style) {
        self.said = Some(Said { text, style, until: None });
    }

    /// Says that a key has no use on this page.
    pub fn refuse(&mut self) -> Next {
        self.say("this key does nothing here: ? shows what each key is for");
        Next::Refused
    }

    /// Whether the messages that are shown died in other queues and were moved here.
    pub fn has_letters(&self) -> bool {
        self.queue.as_ref().is_some_and(QueuePage::has_letters)
    }

    /// Whether only some messages of a state are shown.
    pub fn is_partial(&self) -> bool {
        self.queue.as_ref().is_some_and(|page| page.only.is_some() || !page.filter.is_empty())
    }

    /// The state of the message under the cursor.
    pub fn state(&self) -> String {
        let read = self.message.as_ref().and_then(|page| page.message.as_ref()?.as_ref());
        let listed = self.queue.as_ref().map_or("", |page| page.state.as_str());
        read.map_or_else(|| listed.to_owned(), |message| message.text("state"))
    }

    /// What the removal of the message under the cursor is called.
    pub fn removal(&self) -> Removal {
        match Removal::of(&self.state()) {
            Removal::Cancel if self.selected_message().is_some_and(recurs) => Removal::CancelSchedule,
            removal => removal,
        }
    }

    /// The message under the cursor, as it was read last.
    pub fn selected_message(&self) -> Option<&Fields> {
        match &self.message {
            Some(page) => page.message.as_ref()?.as_ref(),
            None => self.queue.as_ref()?.selected(),
        }
    }

    /// The message that keys for one message are about.
    pub fn selected_id(&self) -> Option<Vec<u8>> {
        match (&self.message, &self.queue) {
            _ if self.details.is_some() => None,
            (None, _) if self.listing.is_some() => None,
            (Some(message), _) => Some(message.id.clone()),
            (None, Some(page)) => page.selected().map(|message| message.bytes("id").to_vec()),
            (None, None) => None,
        }
    }
}
