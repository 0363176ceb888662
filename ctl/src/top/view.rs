//! The screen as lines: a function of the state and of the size.

use super::app::{App, Page};
use super::{list, message, messages};
use crate::board::About;
use crate::output::{paragraph, Line, Style};
use crate::text::{now_ms, span, visible, with_distance};
use std::time::Duration;

/// What was read before this time is old, and at least after three times the time between two looks.
const SILENT: Duration = Duration::from_secs(3);

/// All lines of the screen.
pub fn screen(app: &mut App, width: usize, height: usize) -> Vec<Line> {
    let about = app.board.about();
    let foot = foot(app, &about, width);
    let above = height.saturating_sub(foot.len());
    // The rows of its list, by which the keys of the page move.
    app.height = match app.pages.last() {
        None => above.saturating_sub(list::AROUND),
        Some(Page::Messages(_)) => above.saturating_sub(messages::AROUND),
        Some(Page::Message(_)) => above.saturating_sub(message::AROUND),
        Some(Page::Findings(_)) => above / 2,
    };
    let mut lines = match app.pages.last_mut() {
        None => list::lines(&mut app.list, &app.board, &app.server, width, above),
        Some(Page::Messages(page)) => page.lines(&app.board, width, app.height),
        Some(Page::Message(page)) => page.lines(width, app.height),
        Some(Page::Findings(page)) => page.lines(width, above),
    };
    if let Some(age) = silence(app, &about) {
        let mark = if about.lost.is_some() { "server lost" } else { "no answer" };
        if let Some(head) = lines.first_mut() {
            head.0.insert(0, (Style::Bad, format!("{mark}, {age} old  ")));
        }
    }
    lines.resize(above, Line::default());
    lines.extend(foot);
    lines.into_iter().take(height).map(|line| line.fitted(width)).collect()
}

/// The age of the data on the screen, if the server cannot be read.
fn silence(app: &App, about: &About) -> Option<String> {
    let age = u64::try_from(now_ms().saturating_sub(about.read?)).unwrap_or(0);
    let is_silent = Duration::from_millis(age) > SILENT.max(app.every * 3);
    (is_silent || about.lost.is_some()).then(|| span(age))
}

/// The footer: why the data is old or incomplete, and below it the keys.
fn foot(app: &mut App, about: &About, width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some(why) = &about.lost {
        lines.extend(paragraph(Style::Bad, &visible(why), width));
        let last = about.read.map_or_else(String::new, |at| format!("Last answer: {}. ", with_distance(at)));
        lines.extend(paragraph(Style::Plain, &format!("{last}It is tried again each second."), width));
    } else if silence(app, about).is_some() {
        let text = "The server has not answered yet: it is busy or stopped, or cannot be reached.";
        lines.extend(paragraph(Style::Bad, text, width));
    } else {
        let denied = about.denied.as_ref().map(|why| format!("Not all queues could be read: {why}"));
        let missing = about.missing.iter().chain(&about.unlisted).chain(&denied);
        lines.extend(missing.flat_map(|why| paragraph(Style::Bad, &visible(why), width)));
    }
    if app.is_typing {
        let mut line = Line::new(Style::Bold, format!("Filter: {}", visible(app.filter())));
        line.add(Style::Selected, " ");
        line.add(Style::Dim, "  Enter: keep it, Esc: forget it");
        lines.push(line);
        return lines;
    }
    let keys = match app.pages.last() {
        None => "Enter open  / filter  s S sort  d doctor  q leave",
        Some(Page::Messages(_)) => "Enter open  Tab state  / filter  Esc back  q leave",
        Some(Page::Findings(_)) => "Enter open its queue  d look again  Esc back  q leave",
        Some(Page::Message(_)) => "Up Down move  Esc back  q leave",
    };
    lines.push(Line::new(Style::Dim, keys));
    lines
}

#[cfg(test)]
mod tests {
    use super::super::app::App;
    use super::super::reader::{Asked, Update};
    use super::{screen, Line};
    use crate::board::row::Row;
    use crate::board::tests::board;
    use crate::server::{Fields, Message};
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
    use dq_client::{State, Value};
    use std::sync::Arc;
    use std::time::Duration;
    use unicode_width::UnicodeWidthStr;

    fn text(lines: &[Line]) -> Vec<String> {
        lines.iter().map(|line| line.0.iter().map(|(_, text)| text.as_str()).collect()).collect()
    }

    #[test]
    fn every_size_and_page_is_filled_exactly() {
        let long = "日本語".repeat(40);
        let message = Message::from(Fields(vec![
            ("id".to_owned(), Value::BulkString("x\x1b[2J".repeat(60).into_bytes())),
            ("payload".to_owned(), Value::BulkString([0, 27, 255].repeat(100))),
            ("error".to_owned(), Value::BulkString("e\n".repeat(300).into_bytes())),
        ]));
        for names in [vec![], vec!["a"], vec!["a", long.as_str(), "\x1b[2J\u{202e}"]] {
            for (width, height) in [(1, 1), (3, 2), (10, 5), (80, 24), (200, 50)] {
                let rows = names.iter().map(|name| (name.as_bytes().to_vec(), Row::with_numbers(&[("ready", 3)])));
                let mut app = App::new(Arc::new(board(rows.collect())), "server".to_owned(), Duration::from_secs(1));
                let pressed = |app: &mut App, code: KeyCode| {
                    app.key(KeyEvent::new(code, KeyModifiers::NONE));
                    if let Some(asked @ Asked::Messages(..)) = app.wanted().asked {
                        app.update(&Update::Messages(asked, Ok(vec![message.clone(); 100])));
                    }
                    let lines = screen(app, width, height);
                    assert_eq!(lines.len(), height, "{width}x{height}");
                    for line in text(&lines) {
                        assert_eq!(line.width(), width, "{line:?}");
                        assert!(!line.chars().any(char::is_control), "{line:?}");
                    }
                };
                for key in
                    [KeyCode::End, KeyCode::Char('?'), KeyCode::Esc, KeyCode::Enter, KeyCode::End, KeyCode::Enter]
                {
                    pressed(&mut app, key);
                }
                for key in [KeyCode::Esc, KeyCode::Esc, KeyCode::Char('d'), KeyCode::Char('/')] {
                    pressed(&mut app, key);
                }
            }
        }
    }

    #[test]
    fn tab_goes_through_all_states_and_back() {
        let rows = [(b"q".to_vec(), Row::with_numbers(&[("ready", 1)]))].into();
        let mut app = App::new(Arc::new(board(rows)), String::new(), Duration::from_secs(1));
        screen(&mut app, 80, 24);
        let mut state = |code| {
            app.key(KeyEvent::new(code, KeyModifiers::NONE));
            match app.wanted().asked {
                Some(Asked::Messages(_, state, _)) => state,
                other => panic!("{other:?}"),
            }
        };
        let states =
            [KeyCode::Enter, KeyCode::Tab, KeyCode::Tab, KeyCode::Tab, KeyCode::Tab, KeyCode::BackTab].map(&mut state);
        let expected = [State::Ready, State::Inflight, State::Dead, State::Done, State::Delayed, State::Done];
        assert_eq!(states, expected);
    }
}
