//! The help: the keys on one screen, in groups by the page on which they are of use, and below them what the columns and the
//! states mean.

use super::app::App;
use super::message::scrolled;
use super::moves::moved;
use crate::output::text::{left, Line, Style};
use crossterm::event::KeyCode;

/// A heading, and the lines below it.
type Group = (&'static str, &'static [(&'static str, &'static str)]);

/// The keys, in two columns that fit a screen of 80 by 24.
const KEYS: [&[Group]; 2] = [
    &[
        (
            "Everywhere",
            &[
                ("Up Down k j", "move; PageUp, PageDown"),
                ("Home, g", "the first line"),
                ("End, G", "the last line"),
                ("Enter, Esc", "open; go back"),
                ("f", "find a message by its id"),
                ("?, q", "help; leave"),
            ],
        ),
        (
            "List of queues",
            &[
                ("/", "only names with this in them"),
                ("s, S, 1-9", "sort: next, reverse, column"),
                ("d", "what dqctl doctor finds"),
                ("w", "consumers of all queues"),
                ("p, P", "pause or resume; for a time"),
                ("C", "close for pushes, or open"),
                ("D", "delete with all it holds"),
                ("R, N", "redrive dead; run delayed"),
                ("Space, a", "mark; mark all, for p C R N"),
            ],
        ),
    ],
    &[
        (
            "Messages of a queue",
            &[
                ("Tab", "the next state"),
                ("/", "only those with this text"),
                ("c", "cancel, or delete the dead"),
                ("r", "redrive, or send back"),
                ("n", "run a delayed one now"),
                ("t, b", "nack; bury"),
                ("X", "purge all of this state"),
                ("p P C D R N", "as in the list of queues"),
                ("Space, a", "mark; mark all, for c r b"),
            ],
        ),
        (
            "Lists of a queue",
            &[
                ("/", "only names with this"),
                ("w", "consumers that hold some"),
                ("r, u", "release; without counting"),
                ("o", "groups: p pauses one"),
                ("e", "causes: r redrive, c delete"),
                ("s", "schedules: n runs one now"),
                ("B", "batches"),
                ("i", "settings and totals"),
                ("A", "change settings: lease 1m"),
            ],
        ),
    ],
];
/// The width of a column of keys, and of the keys in it.
const COLUMN: usize = 41;
const KEY: usize = 12;

const GROUPS: [Group; 3] = [
    (
        "Columns of the list of queues",
        &[
            ("", "Columns of zeros are left out where names need the room."),
            ("READY", "messages that can be delivered now"),
            ("DELAY", "messages that are due later"),
            ("FLIGHT", "messages that consumers hold"),
            ("DEAD", "messages that are not delivered again"),
            ("OLDEST", "how long the oldest ready message has been due"),
            ("IN/s, OUT/s", "messages a second that were pushed; that were acked or forwarded"),
            ("LATE", "99 of 100 deliveries of the last busy second were at most so late"),
        ],
    ),
    (
        "States in the list of queues, the worst first",
        &[
            ("forwarding fails", "FORWARD or DEADFORWARD cannot move its messages"),
            ("full", "pushes are refused: MAXLEN is reached"),
            ("no consumer", "messages are ready and nobody takes them"),
            ("messages die", "some have died in the last 10 minutes"),
            ("late (held 8m)", "or held 8m: and consumers have held one for so long"),
            ("paused, closed", "nothing is delivered; pushes are refused"),
            ("late", "one has been due for a minute, and consumers take some"),
            ("groups held", "groups hold back all that is ready: o in the queue"),
            ("at its limit in flight", "as many messages as MAXINFLIGHT allows are in flight"),
            ("at its rate limit", "RATE allows the next delivery later"),
            ("dead", "some are, and none has died in the last 10 minutes"),
            ("dead letters", "messages that died in other queues and were moved here"),
            ("served, open", "nothing is wrong: it has consumers; it has none now"),
            ("full +2", "two more states, which a wider terminal shows"),
        ],
    ),
    (
        "If the server is lost",
        &[
            ("", "The screen keeps what was read last, dim and with its age, tries again each"),
            ("", "second, and goes on by itself when the server is back."),
        ],
    ),
];

impl App {
    /// Scrolls the help, or leaves it.
    pub fn help_key(&mut self, code: KeyCode, scroll: usize) {
        self.help = self.step(code).map(|by| moved(scroll, by));
    }
}

pub fn help_page(app: &mut App, width: usize, height: usize) -> Vec<Line> {
    let mut scroll = app.help.unwrap_or(0);
    let mut title = Line::new(Style::Bold, "Keys");
    title.add(Style::Plain, ", and below them columns and states. Each change is made after a question.");
    let page = scrolled(title, lines(width), &mut scroll, height);
    app.help = Some(scroll);
    page
}

fn lines(width: usize) -> Vec<Line> {
    let [mut all, second] = KEYS.map(|groups| of_groups(groups, Some(KEY)));
    if width < COLUMN + KEY {
        all.extend(second);
    } else {
        all.resize(all.len().max(second.len()), Line::default());
        for (first, second) in all.iter_mut().zip(second) {
            *first = std::mem::take(first).fitted(COLUMN);
            first.0.extend(second.0);
        }
    }
    all.push(Line::default());
    all.extend(of_groups(&GROUPS, None));
    all
}

/// The groups below each other, with an empty line between them. If no width is given for their keys, these are as wide as they need.
fn of_groups(groups: &[Group], width: Option<usize>) -> Vec<Line> {
    let mut all = Vec::new();
    for (heading, lines) in groups {
        all.extend((!all.is_empty()).then(Line::default));
        all.push(Line::new(Style::Warning, *heading));
        let longest = lines.iter().map(|(keys, _)| keys.len()).max().unwrap_or(0);
        for (keys, text) in *lines {
            let keys = if longest == 0 { String::new() } else { left(keys, width.unwrap_or(longest + 2)) };
            let mut line = Line::new(Style::Bold, keys);
            line.add(Style::Plain, *text);
            all.push(line);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{lines, KEYS};
    use crate::top::ask::HINTED;
    use crate::top::view::screen;
    use crate::top::view::tests::{app, press, text};
    use crossterm::event::KeyCode;

    #[test]
    fn all_keys_are_on_one_screen_and_the_rest_is_reached() {
        let mut app = app(&["mail"]);
        press(&mut app, &[KeyCode::Char('?')]);
        let mut seen = text(&screen(&mut app, 80, 24));
        for heading in ["Everywhere", "List of queues", "Messages of a queue", "Lists of a queue"] {
            assert!(seen.iter().any(|line| line.contains(heading)), "{seen:?}");
        }
        assert!(seen.iter().any(|line| line.trim_end().ends_with("change settings: lease 1m")), "{seen:?}");
        for _ in 0..9 {
            press(&mut app, &[KeyCode::PageDown]);
            seen.extend(text(&screen(&mut app, 80, 24)));
        }
        for line in text(&lines(80)) {
            assert!(!line.contains('…') && seen.iter().any(|seen| seen.trim_end() == line.trim_end()), "{line}");
        }
        press(&mut app, &[KeyCode::Char('x')]);
        assert!(text(&screen(&mut app, 80, 24))[1].contains("READY"));
    }

    /// A key that does something has a place in the help.
    #[test]
    fn the_help_names_every_key() {
        let all: Vec<String> =
            KEYS.concat().iter().flat_map(|(_, lines)| lines.iter()).map(|(keys, _)| (*keys).to_owned()).collect();
        let names = |key: char| all.iter().any(|keys| keys.split([' ', ',']).any(|one| one == key.to_string()));
        for key in HINTED.chars().chain("/?qfsSdjkgG".chars()) {
            assert!(names(key), "{key}");
        }
    }
}
