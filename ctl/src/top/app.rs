//! The state of the screen, and what keys do to it.

use super::cursor::step;
use super::findings::Findings;
use super::list::List;
use super::message::Message;
use super::messages::Messages;
use super::reader::{Asked, Update, Wanted};
use crate::board::{Board, Row, Sort};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::sync::Arc;
use std::time::Duration;

pub struct App {
    pub board: Arc<Board>,
    pub server: String,
    /// The time between two looks at the server.
    pub every: Duration,
    pub list: List,
    /// The pages above the list of queues; the last one is shown.
    pub pages: Vec<Page>,
    /// Whether keys are typed into the filter.
    pub is_typing: bool,
    /// The number of rows of the list on the current page.
    pub height: usize,
}

pub enum Page {
    Messages(Messages),
    Message(Message),
    Findings(Findings),
}

/// What a key leads to.
#[derive(PartialEq, Eq, Debug)]
pub enum Next {
    Stay,
    /// Looks for what `dqctl doctor` finds.
    Examine,
    Leave,
}

impl App {
    pub fn new(board: Arc<Board>, server: String, every: Duration) -> App {
        let list = List::default();
        App { board, server, every, list, pages: Vec::new(), is_typing: false, height: 20 }
    }

    /// What the reader must read for this screen.
    pub fn wanted(&self) -> Wanted {
        match self.pages.last() {
            None => Wanted { queues: self.list.visible.clone(), asked: None },
            Some(Page::Messages(page)) => {
                Wanted { queues: vec![page.queue.clone()], asked: Some(page.asked(self.height)) }
            }
            Some(Page::Message(page)) => {
                let asked = Asked::Message(page.queue.clone(), page.id.clone());
                Wanted { queues: vec![page.queue.clone()], asked: Some(asked) }
            }
            Some(Page::Findings(_)) => Wanted::default(),
        }
    }

    /// Takes over what was read, if a page still shows it.
    pub fn update(&mut self, update: &Update) {
        for page in &mut self.pages {
            match (page, update) {
                (Page::Messages(page), Update::Messages(asked, read)) if page.is_of(asked) => page.take(read.clone()),
                (Page::Message(page), Update::Message(queue, id, read)) if (&page.queue, &page.id) == (queue, id) => {
                    page.read = Some(read.clone());
                }
                (Page::Findings(page), Update::Findings(read)) => page.take(read.clone()),
                _ => {}
            }
        }
    }

    pub fn key(&mut self, key: KeyEvent) -> Next {
        if key.kind == KeyEventKind::Release {
            return Next::Stay;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return if key.code == KeyCode::Char('c') { Next::Leave } else { Next::Stay };
        }
        if self.is_typing {
            self.typed(key.code);
            return Next::Stay;
        }
        if let Some(by) = step(key.code, self.height) {
            self.go(by);
            return Next::Stay;
        }
        match (key.code, self.pages.last_mut()) {
            (KeyCode::Char('q'), _) => return Next::Leave,
            (KeyCode::Esc | KeyCode::Left | KeyCode::Backspace, None) => self.list.clear_filter(),
            (KeyCode::Esc | KeyCode::Left | KeyCode::Backspace, Some(_)) => drop(self.pages.pop()),
            (KeyCode::Char('d'), None) => {
                self.pages.push(Page::Findings(Findings::default()));
                return Next::Examine;
            }
            (KeyCode::Char('d'), Some(Page::Findings(page))) if page.is_idle => {
                page.is_idle = false;
                return Next::Examine;
            }
            (KeyCode::Enter | KeyCode::Right, _) => self.open(),
            (KeyCode::Char('/'), None | Some(Page::Messages(_))) => {
                self.is_typing = true;
                self.filter().clear();
            }
            (KeyCode::Tab, Some(Page::Messages(page))) => page.turn(1),
            (KeyCode::BackTab, Some(Page::Messages(page))) => page.turn(-1),
            (KeyCode::Char('s'), None) => self.list.sort_by(self.list.sort.next()),
            (KeyCode::Char('S'), None) => self.list.is_reversed = !self.list.is_reversed,
            (KeyCode::Char(digit), None) => {
                if let Some(sort) = Sort::from_digit(digit) {
                    self.list.sort_by(sort);
                }
            }
            _ => {}
        }
        Next::Stay
    }

    /// The filter of the current page.
    pub fn filter(&mut self) -> &mut String {
        match self.pages.last_mut() {
            Some(Page::Messages(page)) => &mut page.filter,
            Some(Page::Message(_) | Page::Findings(_)) | None => &mut self.list.filter,
        }
    }

    fn clear_filter(&mut self) {
        match self.pages.last_mut() {
            Some(Page::Messages(page)) => page.filter.clear(),
            Some(Page::Message(_) | Page::Findings(_)) | None => self.list.clear_filter(),
        }
    }

    fn typed(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.clear_filter();
            }
            KeyCode::Backspace => drop(self.filter().pop()),
            KeyCode::Char(c) => self.filter().push(c),
            _ => {}
        }
    }

    fn go(&mut self, by: isize) {
        match self.pages.last_mut() {
            None => self.list.go(by),
            Some(Page::Messages(page)) => page.go(by),
            Some(Page::Message(page)) => page.go(by, self.height),
            Some(Page::Findings(page)) => page.go(by),
        }
    }

    /// Opens the queue or the message under the cursor.
    fn open(&mut self) {
        self.list.keep_selected();
        let page = match self.pages.last() {
            None => self.list.selected().map(|queue| self.messages_of(queue.clone())),
            Some(Page::Findings(page)) => page.selected_queue().map(|queue| self.messages_of(queue)),
            Some(Page::Messages(page)) => page.selected().map(|id| Page::Message(Message::new(page.queue.clone(), id))),
            Some(Page::Message(_)) => None,
        };
        self.pages.extend(page);
    }

    fn messages_of(&self, queue: Vec<u8>) -> Page {
        let state = self.board.rows(|rows| rows.get(&queue).map_or(dq_client::State::Ready, Row::opens_at));
        Page::Messages(Messages::new(queue, state))
    }
}
