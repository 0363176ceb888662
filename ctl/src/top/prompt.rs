//! What is typed on the last line: a filter, or the id of a message to look for.

use super::action::{Action, Kind};
use super::app::{App, Next};
use super::found::Search;
use crate::name::MessageId;
use crate::time::parse_span;
use crossterm::event::KeyCode;

/// What the last line is used for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Prompt {
    None,
    /// Of the queues, or of the messages or the list that is shown.
    Filter,
    /// The id of a message, as far as it was typed.
    Find(String),
    /// For how long the queue is to be paused.
    Pause(Vec<u8>, String),
    /// The settings that the queue is to have.
    Alter(Vec<u8>, String),
    Question(Action),
}

impl App {
    /// Begins a new filter.
    pub fn filter_anew(&mut self) {
        self.filter(String::clear);
        self.prompt = Prompt::Filter;
    }

    pub fn filter_key(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => {
                if let Some(page) = &mut self.listing {
                    page.sought.clone_from(&page.filter);
                }
                return;
            }
            KeyCode::Esc => return self.filter(String::clear),
            code => self.filter(|filter| edit(filter, code)),
        }
        self.prompt = Prompt::Filter;
    }

    /// Changes the filter of what is shown.
    pub fn filter(&mut self, change: impl FnOnce(&mut String)) {
        if let Some(page) = &mut self.listing {
            return page.filter(change);
        }
        match &mut self.queue {
            Some(page) => {
                change(&mut page.filter);
                page.arrange();
                page.clamp(self.height);
            }
            None => {
                change(&mut self.queues.filter);
                self.queues.arrange();
            }
        }
    }

    pub fn find_key(&mut self, code: KeyCode, mut id: String) -> Next {
        match code {
            KeyCode::Esc => {}
            KeyCode::Enter if id.is_empty() || id == "*" => {}
            KeyCode::Enter => {
                let (typed, is_beginning) = id.strip_suffix('*').map_or((id.as_str(), false), |start| (start, true));
                let typed = MessageId::read(typed.as_bytes()).id();
                self.say(&format!("looking for {typed} in all queues …"));
                let typed = typed.as_bytes().to_vec();
                return Next::Find(if is_beginning { Search::Beginning(typed) } else { Search::Id(typed) });
            }
            code => {
                edit(&mut id, code);
                self.prompt = Prompt::Find(id);
            }
        }
        Next::Stay
    }

    /// The answer is another question. What is wrong is said above what was typed, which can be corrected.
    pub fn pause_key(&mut self, code: KeyCode, queue: Vec<u8>, mut time: String) {
        self.said = None;
        match (code, parse_span(&time)) {
            (KeyCode::Esc, _) => {}
            (KeyCode::Enter, Ok(time)) if !time.is_zero() => {
                self.prompt = Prompt::Question(Action { queue, kind: Kind::PauseFor(time) });
            }
            (KeyCode::Enter, Ok(_)) => {}
            (KeyCode::Enter, Err(why)) => {
                self.say_wrong(why);
                self.prompt = Prompt::Pause(queue, time);
            }
            (code, _) => {
                edit(&mut time, code);
                self.prompt = Prompt::Pause(queue, time);
            }
        }
    }
}

pub fn edit(text: &mut String, code: KeyCode) {
    match code {
        KeyCode::Backspace => drop(text.pop()),
        KeyCode::Char(letter) => text.push(letter),
        _ => {}
    }
}
