//! The help: what the keys, the columns and the states mean, in groups by the page on which they are of use.

use super::app::App;
use super::message::scrolled;
use super::moves::{moved, Place};
use crate::output::text::{left, Line, Style};
use crossterm::event::KeyCode;

/// A heading, and the lines below it.
type Group = (&'static str, &'static [(&'static str, &'static str)]);

const GROUPS: [Group; 7] = [
    (
        "On every page",
        &[
            ("Up Down, j k", "move; PageUp, PageDown, Home, End, g and G as well"),
            ("Enter, Esc", "open what is under the cursor; go back"),
            ("f", "find messages by their id, or its beginning, in all queues"),
            ("?, q", "show these keys; leave"),
            ("", "Each change is made only after a question that is answered with y."),
        ],
    ),
    (
        "List of queues",
        &[
            ("/", "only queues with this in their name; Esc forgets it"),
            ("s S, 1 to 9", "sort by the next column; reverse; by this column, without LATE"),
            ("d", "what dqctl doctor finds; Enter opens the queue of a finding"),
            ("w", "who holds messages in all queues; r and u release them"),
            ("p, P", "pause the queue, or resume it; pause for a time"),
            ("Space, a", "mark the queue; all that are shown: p C R N are for all marked"),
            ("C", "close the queue, so that pushes are refused, or open it"),
            ("D", "delete the queue with all it holds"),
            ("R, N", "redrive all dead messages of the queue; run all delayed ones now"),
        ],
    ),
    (
        "Messages of a queue",
        &[
            ("Tab", "the messages of the next state"),
            ("/", "only messages with this in their id, error or payload"),
            ("Space, a", "mark the message; all that are shown: c, r and b are for these"),
            ("c, r, n", "the message: cancel or delete, redrive or send back, run now"),
            ("t, b", "the message: nack it, if it is in flight; bury it"),
            ("X", "purge all messages of the state that is shown"),
            ("p P C, R N D", "as in the list of queues"),
        ],
    ),
    (
        "Lists of a queue",
        &[
            ("w", "consumers that hold messages; r releases what one of them holds,"),
            ("", "u does so without counting the attempts"),
            ("o", "groups; p pauses or resumes one of them"),
            ("e", "causes of the dead; r redrives or sends back one, c deletes it"),
            ("s", "schedules; n runs one of them now"),
            ("B", "batches"),
            ("i", "settings, totals and percentiles"),
            ("A", "change settings, typed as for dqctl alter: lease 1m"),
            ("Enter", "the messages of a consumer, group, cause or batch; the schedule"),
        ],
    ),
    (
        "Columns of the list of queues",
        &[
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
            ("messages die", "some have died in the last 10 minutes"),
            ("paused, closed", "nothing is delivered; pushes are refused"),
            ("no consumer", "messages are ready and nobody takes them"),
            ("late", "one has been due for a minute, and consumers take some"),
            ("late (held 8m)", "the same, and consumers have held one for so long"),
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

/// The line at which the help begins: the heading of the page that is on the screen.
pub fn beginning(place: Place) -> usize {
    let group = match place {
        // A screen has room for the first group as well.
        Place::Queues | Place::Findings | Place::Found => 0,
        Place::Messages | Place::Message => 2,
        Place::Listing(_) | Place::Details => 3,
    };
    // Each group has a heading, and an empty line after it.
    GROUPS.iter().take(group).map(|(_, lines)| lines.len() + 2).sum()
}

impl App {
    /// Scrolls the help, or leaves it.
    pub fn help_key(&mut self, code: KeyCode, scroll: usize) {
        self.help = self.step(code).map(|by| moved(scroll, by));
    }
}

pub fn help_page(app: &mut App, height: usize) -> Vec<Line> {
    let mut scroll = app.help.unwrap_or(0);
    let page = scrolled(Line::new(Style::Bold, "Keys, columns and states"), lines(), &mut scroll, height);
    app.help = Some(scroll);
    page
}

fn lines() -> Vec<Line> {
    let mut all = Vec::new();
    for (heading, lines) in GROUPS {
        all.push(Line::new(Style::Warning, heading));
        let longest = lines.iter().map(|(keys, _)| keys.len()).max().unwrap_or(0);
        for (keys, text) in lines {
            let mut line =
                Line::new(Style::Bold, if longest == 0 { String::new() } else { left(keys, longest.max(12) + 2) });
            line.add(Style::Plain, *text);
            all.push(line);
        }
        all.push(Line::default());
    }
    all.pop();
    all
}

#[cfg(test)]
mod tests {
    use super::lines;
    use crate::top::view::screen;
    use crate::top::view::tests::{app, press, text};
    use crossterm::event::KeyCode;

    #[test]
    fn eighty_columns_hold_the_help_and_all_of_it_is_reached() {
        let mut app = app(&["mail"]);
        press(&mut app, &[KeyCode::Char('?')]);
        let mut seen = text(&screen(&mut app, 80, 24));
        assert!(seen.iter().any(|line| line.starts_with("List of queues")), "{seen:?}");
        for _ in 0..9 {
            press(&mut app, &[KeyCode::PageDown]);
            seen.extend(text(&screen(&mut app, 80, 24)));
        }
        for line in text(&lines()) {
            assert!(!line.contains('…') && seen.iter().any(|seen| seen.trim_end() == line.trim_end()), "{line}");
        }
        press(&mut app, &[KeyCode::Char('x')]);
        assert!(text(&screen(&mut app, 80, 24))[1].contains("READY"));
    }

    #[test]
    fn the_help_begins_with_the_page_that_is_shown() {
        let mut app = app(&["mail"]);
        for (keys, heading) in
            [(&[KeyCode::Enter][..], "Messages of a queue"), (&[KeyCode::Char('w')], "Lists of a queue")]
        {
            press(&mut app, keys);
            press(&mut app, &[KeyCode::Char('?')]);
            assert_eq!(text(&screen(&mut app, 80, 24))[2].trim_end(), heading);
            press(&mut app, &[KeyCode::Esc]);
        }
    }
}
