//! The keys that were pressed, as they were meant.
//!
//! A terminal sends `ESC` for Esc, and sequences that begin with `ESC` for other keys: `ESC [ D` for Left. If Esc is followed at
//! once by another key, the bytes of both arrive together, and `crossterm` reads `ESC ESC [ D` as Esc, `[` and `D`, and `ESC p` as
//! Alt and `p`. Without this file, the letter of an arrow would be taken for a command.

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::io;
use std::time::Duration;

/// Waits at most `time` for events, and returns all that are there then.
pub fn read(time: Duration) -> io::Result<Vec<Event>> {
    let mut events = Vec::new();
    let mut wait = time;
    while event::poll(wait)? {
        events.push(event::read()?);
        wait = Duration::ZERO;
    }
    Ok(events)
}

/// The keys among events that came together.
pub fn keys(events: Vec<Event>) -> Vec<KeyEvent> {
    let pressed = events.into_iter().filter_map(|event| match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => Some(key),
        _ => None,
    });
    let (pressed, mut keys): (Vec<KeyEvent>, Vec<KeyEvent>) = (pressed.collect(), Vec::new());
    let mut rest = pressed.as_slice();
    while let [first, others @ ..] = rest {
        rest = others;
        if first.modifiers.contains(KeyModifiers::ALT) {
            keys.push(KeyCode::Esc.into());
        }
        keys.push(KeyEvent { modifiers: first.modifiers - KeyModifiers::ALT, ..*first });
        if first.code == KeyCode::Esc {
            let (key, after) = sequence(rest);
            keys.extend(key.map(KeyEvent::from));
            rest = after;
        }
    }
    keys
}

/// The key whose sequence follows an Esc, if these begin with one, and what comes after it. A sequence of another key is left out.
fn sequence(keys: &[KeyEvent]) -> (Option<KeyCode>, &[KeyEvent]) {
    let letter = |key: &KeyEvent| match key.code {
        KeyCode::Char(letter) => Some(letter),
        _ => None,
    };
    let [first, rest @ ..] = keys else { return (None, keys) };
    if !matches!(first.code, KeyCode::Char('[' | 'O')) {
        return (None, keys);
    }
    // Numbers come before the last letter: `5~` is PageUp, and `1;2D` is Shift and Left.
    let parameters: String =
        rest.iter().map_while(letter).take_while(|letter| letter.is_ascii_digit() || *letter == ';').collect();
    let Some((end, after)) = rest.get(parameters.len()..).and_then(<[KeyEvent]>::split_first) else {
        return (None, keys);
    };
    let key = match (letter(end), parameters.as_str()) {
        (Some('A'), _) => Some(KeyCode::Up),
        (Some('B'), _) => Some(KeyCode::Down),
        (Some('C'), _) => Some(KeyCode::Right),
        (Some('D'), _) => Some(KeyCode::Left),
        (Some('H'), _) | (Some('~'), "1" | "7") => Some(KeyCode::Home),
        (Some('F'), _) | (Some('~'), "4" | "8") => Some(KeyCode::End),
        (Some('Z'), _) => Some(KeyCode::BackTab),
        (Some('~'), "5") => Some(KeyCode::PageUp),
        (Some('~'), "6") => Some(KeyCode::PageDown),
        (Some(_), _) => None,
        (None, _) => return (None, keys),
    };
    (key, after)
}

#[cfg(test)]
mod tests {
    use super::keys;
    use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};

    fn codes(events: &[KeyEvent]) -> Vec<KeyCode> {
        keys(events.iter().copied().map(Event::Key).collect()).into_iter().map(|key| key.code).collect()
    }

    /// What `crossterm` makes of the bytes of two Esc and these letters.
    fn after_escape(letters: &str) -> Vec<KeyCode> {
        let letters = letters.chars().map(|letter| KeyEvent::from(KeyCode::Char(letter)));
        codes(&[KeyEvent::from(KeyCode::Esc)].into_iter().chain(letters).collect::<Vec<_>>())
    }

    #[test]
    fn a_key_at_once_after_escape_is_that_key() {
        for (letters, key) in [
            ("[A", KeyCode::Up),
            ("OB", KeyCode::Down),
            ("[D", KeyCode::Left),
            ("[1;2C", KeyCode::Right),
            ("[5~", KeyCode::PageUp),
            ("[4~", KeyCode::End),
        ] {
            assert_eq!(after_escape(letters), [KeyCode::Esc, key], "{letters}");
        }
        assert_eq!(after_escape("[Dp"), [KeyCode::Esc, KeyCode::Left, KeyCode::Char('p')]);
        // Of a key without a use, no letter is left.
        assert_eq!(after_escape("[3~"), [KeyCode::Esc]);
        assert_eq!(after_escape("p"), [KeyCode::Esc, KeyCode::Char('p')]);
        assert_eq!(after_escape("["), [KeyCode::Esc, KeyCode::Char('[')]);
        let alt = KeyEvent::new(KeyCode::Char('p'), KeyModifiers::ALT);
        assert_eq!(codes(&[alt]), [KeyCode::Esc, KeyCode::Char('p')]);
        let typed = ['[', 'D'].map(|letter| KeyEvent::from(KeyCode::Char(letter)));
        assert_eq!(codes(&typed), [KeyCode::Char('['), KeyCode::Char('D')]);
    }
}
