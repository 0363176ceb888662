//! The messages of a queue in one state.

use super::cursor::Cursor;
use super::reader::{Asked, MESSAGES};
use crate::board::{error_of, message, Board, Row};
use crate::output::{named, named_in, paragraph, Line, Output, Style};
use crate::server::Message;
use crate::text::{bytes, span, visible};
use dq_client::State;

/// The states in the order of their tabs.
const STATES: [State; 5] = [State::Delayed, State::Ready, State::Inflight, State::Dead, State::Done];
/// Messages are read in steps, so that not every key reads the list again.
const STEP: usize = 50;

/// The lines around the rows: the title, the numbers, the states and the heading.
pub const AROUND: usize = 4;

pub struct Messages {
    pub queue: Vec<u8>,
    pub state: State,
    /// `None`: they have not been read yet. An error is one line.
    read: Option<Result<Vec<Message>, String>>,
    /// The filter: of the messages that were read, those whose id, error or payload contains it are shown.
    pub filter: String,
    cursor: Cursor,
}

impl Messages {
    pub fn new(queue: Vec<u8>, state: State) -> Messages {
        Messages { queue, state, read: None, filter: String::new(), cursor: Cursor::default() }
    }

    /// What must be read for a screen of this height.
    pub fn asked(&self, height: usize) -> Asked {
        let count = (self.cursor.place + height + 1).next_multiple_of(STEP);
        let count = if self.filter.is_empty() { count as u64 } else { MESSAGES };
        Asked::Messages(self.queue.clone(), self.state, count.min(MESSAGES))
    }

    /// Whether it shows what was asked for.
    pub fn is_of(&self, asked: &Asked) -> bool {
        matches!(asked, Asked::Messages(queue, state, _) if (queue, *state) == (&self.queue, self.state))
    }

    /// Switches to another state.
    pub fn turn(&mut self, by: isize) {
        let place = STATES.iter().position(|state| *state == self.state).unwrap_or(0);
        let turned = (place + STATES.len()).saturating_add_signed(by) % STATES.len();
        self.state = STATES.get(turned).copied().unwrap_or(State::Ready);
        (self.read, self.cursor) = (None, Cursor::default());
    }

    /// Shows what was read. The cursor stays on its message, unless it is on the first line.
    pub fn take(&mut self, read: Result<Vec<Message>, String>) {
        let selected = self.selected().filter(|_| self.cursor.place > 0);
        self.read = Some(read);
        let place = self.rows().iter().position(|message| selected.as_deref() == Some(message.id()));
        if let Some(place) = place {
            self.cursor.top = (self.cursor.top + place).saturating_sub(self.cursor.place);
            self.cursor.place = place;
        }
    }

    pub fn go(&mut self, by: isize) {
        let count = self.rows().len();
        self.cursor.go(by, count);
    }

    /// The id of the message under the cursor.
    pub fn selected(&self) -> Option<Vec<u8>> {
        self.rows().get(self.cursor.place).map(|message| message.id().to_vec())
    }

    /// The messages that the filter shows, without regard to upper and lower case.
    fn rows(&self) -> Vec<&Message> {
        let filter = self.filter.to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&filter);
        let is_meant = |message: &Message| {
            has(&named(message.id()))
                || has(&error_of(message))
                || ["payload", "result"].iter().any(|name| has(&String::from_utf8_lossy(message.bytes(name))))
        };
        let read = self.read.iter().flatten().flatten();
        read.filter(|message| filter.is_empty() || is_meant(message)).collect()
    }

    pub fn lines(&mut self, board: &Board, width: usize, height: usize) -> Vec<Line> {
        let row = &board.rows(|rows| rows.get(&self.queue).cloned()).unwrap_or_default();
        let mut title = Line::new(Style::Bold, named_in(width / 2, &self.queue));
        title.add(row.style(), format!("  {}", visible(&row.state())));
        let mut tabs = Line::default();
        for state in STATES {
            let style = if state == self.state { Style::Selected } else { Style::Plain };
            tabs.add(style, format!(" {} {} ", state.as_str(), row.info.count(state)));
        }
        if !self.filter.is_empty() {
            tabs.add(Style::Warning, format!("  with {:?}", visible(&self.filter)));
        }
        let mut lines = vec![title, numbers(row), tabs];
        let count = self.rows().len();
        let text = match &self.read {
            None => Some("Reading …".to_owned()),
            Some(Err(why)) => Some(visible(why)),
            Some(Ok(read)) if !read.is_empty() && count == 0 => {
                Some("None of those that were read has this in its id, error or payload.".to_owned())
            }
            Some(Ok(_)) if count == 0 => Some(format!("There are no {} messages.", self.state.as_str())),
            Some(Ok(_)) => None,
        };
        if let Some(text) = text {
            lines.extend(paragraph(Style::Dim, &text, width));
            return lines;
        }
        let window = self.cursor.window(count, height);
        let shown: Vec<&Message> = self.rows().into_iter().skip(window.start).take(window.len()).collect();
        lines.extend(self.cursor.marked(&message::table(&shown, Some(self.state), &Output::new(false, false)), width));
        lines
    }
}

/// The numbers of a queue.
fn numbers(row: &Row) -> Line {
    let rate = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}/s"));
    let text = format!(
        "oldest {}  in {}  out {}  waiting clients {}  consumers {}  payloads {}",
        row.oldest().map_or_else(|| "-".to_owned(), span),
        rate(row.rate_in()),
        rate(row.rate_out()),
        row.info.waiting_clients,
        row.info.consumers,
        bytes(row.info.payload_bytes),
    );
    let mut line = Line::new(Style::Plain, text);
    if row.info.paused_groups > 0 {
        line.add(Style::Warning, format!("  paused groups {}", row.info.paused_groups));
    }
    line
}

#[cfg(test)]
mod tests {
    use crate::board::row::Row;
    use dq_client::State;

    #[test]
    fn a_queue_opens_where_its_trouble_is() {
        let opens_at = |more: &[(&str, i64)]| Row::with_numbers(&[&[("ready", 4)], more].concat()).opens_at();
        const HOUR: i64 = 3_600_000;
        assert_eq!(opens_at(&[]), State::Ready);
        assert_eq!(opens_at(&[("dead", 2), ("newest-dead", HOUR)]), State::Dead);
        assert_eq!(opens_at(&[("dead", 2), ("newest-dead", HOUR), ("paused", 1)]), State::Ready);
        assert_eq!(opens_at(&[("dead", 2), ("newest-dead", 25 * HOUR)]), State::Ready);
        let held = [("inflight", 1), ("oldest-inflight", 60_000), ("oldest-ready", 70_000)];
        assert_eq!(opens_at(&held), State::Inflight);
    }
}
