//! The screen as lines: a function of the state and of the size.

use super::app::App;
use super::details::details_page;
use super::findings::findings_page;
use super::found::found_page;
use super::help::help_page;
use super::keys::keys;
use super::list::queues_page;
use super::listing::{listing_page, Listing};
use super::message::message_page;
use super::moves::Place;
use super::prompt::Prompt;
use super::queue::queue_page;
use crate::message::with_distance;
use crate::output::text::{named_in, paragraph, shown, Line, Style};
use crate::time::{millis, span};

/// Lines above the list, and below it.
const HEAD: usize = 2;
const FOOT: usize = 1;
/// All lines of the screen.
pub fn screen(app: &mut App, width: usize, height: usize) -> Vec<Line> {
    let list = height.saturating_sub(HEAD + FOOT);
    let mut lines = match app.place() {
        _ if app.help.is_some() => help_page(app, width, list),
        Place::Details => details_page(app, width, list),
        Place::Message => message_page(app, width, list),
        Place::Listing(_) => listing_page(app, width, list),
        Place::Messages => queue_page(app, width, list),
        Place::Found => found_page(app, width, list),
        Place::Findings => findings_page(app, width, list),
        Place::Queues => queues_page(app, width, list),
    };
    if let (Some(mark), false) = (out_of_date(app), app.help.is_some()) {
        lines = lines.into_iter().map(Line::dimmed).collect();
        if let Some(head) = lines.first_mut() {
            head.0.insert(0, (Style::Bad, mark));
        }
    }
    // A question and its answers take lines of their own, so that neither is cut.
    let foot = foot(app, width);
    let above = height.saturating_sub(foot.len());
    lines.truncate(above);
    lines.resize(above, Line::default());
    lines.extend(foot);
    // A screen of one line has only the last one.
    let excess = lines.len().saturating_sub(height);
    lines.into_iter().skip(excess).map(|line| line.fitted(width)).collect()
}

/// What the head says if the server is not read.
fn out_of_date(app: &App) -> Option<String> {
    let age = app.age().map(|age| span(millis(age)));
    match (&app.lost, age) {
        (Some(_), Some(age)) => Some(format!("server lost, {age} old  ")),
        (Some(_), None) => Some("server lost  ".to_owned()),
        (None, Some(age)) => Some(format!("no answer, {age} old  ")),
        (None, None) => None,
    }
}

fn foot(app: &App, width: usize) -> Vec<Line> {
    if let Prompt::Question(action) = &app.prompt {
        // Lines are indented, and a sign may follow a name.
        let question = format!("{}{}", action.question(width.saturating_sub(3)), app.of_schedules(action));
        let mut lines = paragraph(Style::Warning, &question, width);
        let instead = app.instead(action).map(|instead| format!("   {}: {}", instead.key, instead.words));
        let answers = format!("y: yes{}   any other key: no", instead.unwrap_or_default());
        lines.extend(paragraph(Style::Bold, &answers, width));
        return lines;
    }
    let mut lines = said(app, width);
    if app.prompt == Prompt::None {
        lines.extend(outage(app, width));
    }
    let has_keys = lines.is_empty()
        || app.prompt != Prompt::None
        || app.missing.is_some() && app.lost.is_none() && app.age().is_none();
    if has_keys {
        lines.push(last_line(app, width));
    }
    lines
}

/// Why nothing new is shown, since when, and what follows; nothing if the server answers.
fn outage(app: &App, width: usize) -> Vec<Line> {
    let age = app.age();
    let why = match (&app.lost, age) {
        (Some(why), _) => format!("{}.", shown(why.trim_end_matches('.'))),
        (None, Some(_)) => "The server has not answered yet: it is busy or stopped, or cannot be reached.".to_owned(),
        (None, None) => {
            let missing = app.missing.iter().flat_map(|why| paragraph(Style::Bad, &shown(why), width));
            return missing.collect();
        }
    };
    let since = app.read.map(|(_, at)| format!("Last answer: {}. ", with_distance(at)));
    let follows =
        "It is tried again each second, and the screen goes on when the server is back. Changes fail until then.";
    let mut all = paragraph(Style::Bad, &why, width);
    all.extend(paragraph(Style::Plain, &format!("{}{follows}", since.unwrap_or_default()), width));
    all.push(Line::new(Style::Dim, "? keys  q leave"));
    all
}

/// What is said is not cut: the end of a line may say whether something was done.
fn said(app: &App, width: usize) -> Vec<Line> {
    let Some(said) =
        app.said.as_ref().filter(|_| matches!(app.prompt, Prompt::None | Prompt::Pause(..) | Prompt::Alter(..)))
    else {
        return Vec::new();
    };
    paragraph(said.style, &said.text, width)
}

fn last_line(app: &App, width: usize) -> Line {
    match &app.prompt {
        Prompt::Filter => {
            let of_queue = || app.queue.as_ref().map_or(&app.queues.filter, |page| &page.filter);
            let filter = app.listing.as_ref().map_or_else(of_queue, |page| &page.filter);
            let keys = match app.place() {
                Place::Listing(Listing::Groups) => "Enter: look at all groups, Esc: forget it",
                _ => "Enter: keep it, Esc: forget it",
            };
            return typed("Filter", filter, keys);
        }
        Prompt::Find(id) => return typed("Message id", id, "or its beginning; Enter: look in all queues, Esc: do not"),
        Prompt::Pause(queue, time) => {
            let what = format!("Pause {} for", named_in(width / 4, queue));
            return typed(&what, time, "such as 15m; Enter: go on, Esc: do not");
        }
        Prompt::Alter(queue, text) => {
            let what = format!("Alter {}", named_in(width / 4, queue));
            return typed(&what, text, "such as lease 1m; Enter: go on, Esc: do not");
        }
        Prompt::Question(_) | Prompt::None => {}
    }
    let keys = match app.help {
        Some(_) => vec!["Up Down PageUp PageDown: more".to_owned(), "any other key: back".to_owned()],
        None => keys(app, width),
    };
    Line::new(Style::Dim, keys.join("  "))
}

/// A text that is being typed.
fn typed(what: &str, text: &str, keys: &str) -> Line {
    let mut line = Line::new(Style::Bold, format!("{what}: {}", shown(text)));
    line.add(Style::Selected, " ");
    line.add(Style::Dim, format!("  {keys}"));
    line
}

#[cfg(test)]
pub mod tests {
    use super::super::action::{Action, Kind, Removal};
    use super::super::app::App;
    use super::super::exchange::Update;
    use super::super::prompt::Prompt;
    use super::{screen, Line, Style};
    use crate::condition::Recent;
    use crate::reply::Fields;
    use crate::row::Snapshot;
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
    use dq_client::Value;
    use std::time::{Duration, Instant};
    use unicode_width::UnicodeWidthStr;

    pub fn text(lines: &[Line]) -> Vec<String> {
        lines.iter().map(|line| line.0.iter().map(|(_, text)| text.as_str()).collect()).collect()
    }

    /// An app with queues that have ready and dead messages.
    pub fn app(names: &[&str]) -> App {
        let mut app = App::new("server".to_owned(), None, Duration::from_secs(1));
        let names: Vec<Vec<u8>> = names.iter().map(|name| name.as_bytes().to_vec()).collect();
        app.update(Update::Names(names.clone(), None));
        let info = Fields(
            [("ready", 3), ("dead", 1), ("oldest-ready", 5_400_000)]
                .map(|(name, n)| (name.to_owned(), Value::Int(n)))
                .into(),
        );
        let snapshot =
            || Some(Snapshot { at: Instant::now(), info: info.clone(), late: None, recent: Recent::default() });
        app.update(Update::Queues(names.into_iter().map(|name| (name, snapshot())).collect()));
        app
    }

    pub fn press(app: &mut App, keys: &[KeyCode]) {
        for key in keys {
            app.key(KeyEvent::new(*key, KeyModifiers::NONE));
        }
    }

    #[test]
    fn every_size_and_page_is_filled_exactly() {
        let long = "日本語".repeat(40);
        let message = Fields(vec![
            ("id".to_owned(), Value::BulkString("x\x1b[2J".repeat(60).into_bytes())),
            ("payload".to_owned(), Value::BulkString([0, 27, 255].repeat(100))),
            ("error".to_owned(), Value::BulkString("e\n".repeat(300).into_bytes())),
        ]);
        for names in [vec![], vec!["a"], vec!["a", long.as_str(), "\x1b[2J\u{202e}"]] {
            for (width, height) in [(1, 1), (3, 2), (10, 5), (80, 24), (200, 50)] {
                let mut app = app(&names);
                let check = |app: &mut App| {
                    let lines = screen(app, width, height);
                    assert_eq!(lines.len(), height, "{width}x{height}");
                    for line in text(&lines) {
                        assert_eq!(line.width(), width, "{line:?}");
                        assert!(!line.chars().any(char::is_control), "{line:?}");
                    }
                };
                check(&mut app);
                press(&mut app, &[KeyCode::End, KeyCode::Char('p')]);
                check(&mut app);
                press(&mut app, &[KeyCode::Char('n'), KeyCode::Char('?')]);
                check(&mut app);
                press(&mut app, &[KeyCode::Esc, KeyCode::Enter]);
                check(&mut app);
                if let Some(name) = names.last() {
                    app.update(Update::Messages(name.as_bytes().to_vec(), "ready", vec![message.clone(); 100]));
                    press(&mut app, &[KeyCode::End]);
                    check(&mut app);
                    press(&mut app, &[KeyCode::Enter, KeyCode::End]);
                    check(&mut app);
                }
            }
        }
    }

    #[test]
    fn eighty_columns_hold_all_numbers() {
        let lines = text(&screen(&mut app(&["mail"]), 80, 24));
        for column in ["READY", "DELAY", "FLIGHT", "DEAD", "OLDEST", "IN/s", "OUT/s", "LATE", "STATE"] {
            assert!(lines[1].contains(column), "{}", lines[1]);
        }
        assert!(lines[2].starts_with("mail ") && lines[2].contains("1h30m"), "{}", lines[2]);
        for line in ["Enter open", "? keys", "q leave"] {
            assert!(lines[23].contains(line), "{}", lines[23]);
        }
    }

    /// Two queues, one of which has a long name and all of these conditions.
    fn in_trouble(fields: &[&str]) -> App {
        let long = format!("{}:emails:eu", "a-very-long-prefix".repeat(5));
        let mut app = app(&[&long, "mail"]);
        let info = Fields(fields.iter().map(|name| ((*name).to_owned(), Value::Int(1))).collect());
        let snapshot = Snapshot { at: Instant::now(), info, late: None, recent: Recent::default() };
        app.update(Update::Queues(vec![(long.into_bytes(), Some(snapshot))]));
        app
    }

    #[test]
    fn a_long_name_or_state_hides_no_number() {
        // The other columns have nothing but zeros.
        let all = ["READY", "DEAD", "OLDEST", "STATE"];
        let fields = ["maxlen", "ready", "paused", "closed", "forward-failing-since"];
        for (width, name, state) in [
            (60, "a-very-long-pr…fix:emails:eu ", " fwd fails +3"),
            (80, "a-very-long-pr…fix:emails:eu ", " forwarding fails, full, paused +1"),
            (180, "a-very-long-prefixa-very-long-prefixa-very-", " forwarding fails, full, paused, closed"),
        ] {
            let lines = text(&screen(&mut in_trouble(&fields), width, 24));
            for column in all {
                assert!(lines[1].contains(column), "{width}: {}", lines[1]);
            }
            assert!(lines[3].starts_with(name) && lines[3].trim_end().ends_with(state), "{width}: {}", lines[3]);
            assert!(lines[0].contains("2 in trouble"), "{}", lines[0]);
        }
        // Too narrow for all: the state and what waits stay.
        let lines = text(&screen(&mut in_trouble(&fields[..4]), 40, 24));
        assert!(["READY", "DEAD", "STATE"].iter().all(|column| lines[1].contains(column)), "{}", lines[1]);
        assert!(lines[3].trim_end().ends_with(" full +2"), "{}", lines[3]);
    }

    #[test]
    fn sums_are_shown_above_the_queues() {
        let mut app = app(&["a", "b", "c"]);
        let lines = text(&screen(&mut app, 80, 24));
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&lines[2]), ["TOTAL", "9", "0", "0", "3", "1h30m", "-", "-"]);
        press(&mut app, &[KeyCode::Char('/'), KeyCode::Char('b'), KeyCode::Enter]);
        assert!(text(&screen(&mut app, 80, 24))[2].starts_with("b "), "one queue needs no sum");
    }

    #[test]
    fn nothing_is_summed_up_before_all_queues_were_looked_at() {
        let mut app = App::new("server".to_owned(), None, Duration::from_secs(1));
        app.update(Update::Names(["a", "b", "c"].map(|name| name.as_bytes().to_vec()).into(), None));
        let look = |app: &mut App, name: &str| {
            let info = Fields([("closed", 1), ("dead", 60)].map(|(name, n)| (name.to_owned(), Value::Int(n))).into());
            let snapshot = Snapshot { at: Instant::now(), info, late: None, recent: Recent::default() };
            app.update(Update::Queues(vec![(name.into(), Some(snapshot))]));
            text(&screen(app, 80, 24))
        };
        let lines = look(&mut app, "a");
        assert_eq!(lines[0].trim_end(), "dq server  read 1 of 3 queues");
        assert!(lines[2].starts_with("TOTAL") && !lines[2].contains("60"), "{}", lines[2]);
        look(&mut app, "b");
        let lines = look(&mut app, "c");
        assert_eq!(lines[0].trim_end(), "dq server  3 to look at  3 queues");
        assert!(lines[2].contains("180"), "{}", lines[2]);
    }

    #[test]
    fn the_head_line_tells_of_trouble_first() {
        let mut app = app(&["mail:etl", "other"]);
        let info = Fields([("closed", 1), ("dead", 60)].map(|(name, n)| (name.to_owned(), Value::Int(n))).into());
        let snapshot = Snapshot { at: Instant::now(), info, late: None, recent: Recent::default() };
        app.update(Update::Queues(vec![(b"mail:etl".to_vec(), Some(snapshot))]));
        press(&mut app, &[KeyCode::Char('/'), KeyCode::Char('e'), KeyCode::Char('t'), KeyCode::Enter]);
        let head = text(&screen(&mut app, 80, 24)).swap_remove(0);
        assert_eq!(head.trim_end(), "dq server  1 to look at  2 queues  1 with \"et\"");
        // The next filter is a new one.
        press(&mut app, &[KeyCode::Char('/'), KeyCode::Char('o'), KeyCode::Enter]);
        assert!(text(&screen(&mut app, 80, 24))[0].contains("1 with \"o\""));
    }

    #[test]
    fn an_arrow_follows_its_heading_and_touches_no_other() {
        let mut app = app(&["mail"]);
        for heading in ["QUEUE↑", "READY↓", "DELAY↓", "FLIGHT↓", "DEAD↓", "OLDEST↓", "IN/s↓", "OUT/s↓", "STATE↓"]
        {
            press(&mut app, &[KeyCode::Char('s')]);
            let line = text(&screen(&mut app, 80, 24)).swap_remove(1);
            assert!(line.split_whitespace().any(|word| word == heading), "{heading}: {line}");
        }
    }

    #[test]
    fn a_question_and_its_answers_are_always_whole() {
        let long = vec![b'x'; 200];
        for kind in [
            Kind::Pause,
            Kind::RedriveAll(u64::from(u32::MAX)),
            Kind::Purge("inflight", 1_000_000),
            Kind::Remove(Removal::Cancel, long.clone()),
            Kind::Release(long.clone(), u64::from(u32::MAX)),
            Kind::PauseGroup(long.clone()),
            Kind::RedriveCause("x".repeat(200), u64::from(u32::MAX)),
        ] {
            let mut app = app(&["mail"]);
            app.prompt = Prompt::Question(Action { queue: long.clone(), kind });
            let lines = text(&screen(&mut app, 80, 24));
            let foot = lines[17..23].concat();
            assert!(!foot.trim_end().ends_with('…') && foot.contains('?'), "{foot}");
            assert!(lines[23].starts_with("y: yes"), "{}", lines[23]);
        }
    }

    #[test]
    fn what_a_lost_server_told_is_dim_and_the_head_says_so() {
        let mut app = app(&["mail", "other"]);
        app.update(Update::Lost("refused".to_owned()));
        let lines = screen(&mut app, 80, 24);
        let (style, mark) = &lines[0].0[0];
        assert!(*style == Style::Bad && mark.starts_with("server lost, ") && mark.ends_with(" old  "), "{mark}");
        let parts = lines[2..5].iter().flat_map(|line| &line.0).filter(|(_, text)| !text.trim().is_empty());
        assert!(parts.into_iter().all(|(style, _)| matches!(style, Style::Dim | Style::Selected)), "{lines:?}");
        // The cause is not cut, and it is said since when and what follows.
        let why =
            "cannot connect: 127.0.0.1:6379: Connection refused (os error 111); start the server, or name another one";
        app.update(Update::Lost(why.to_owned()));
        let lines = text(&screen(&mut app, 80, 24));
        let foot = lines[18..].iter().flat_map(|line| line.split_whitespace()).collect::<Vec<_>>().join(" ");
        assert!(foot.contains(&format!("{why}. Last answer: 2")) && foot.contains("ago). It is tried again"), "{foot}");
        assert!(lines[23].contains("q leave"), "{}", lines[23]);
    }

    #[test]
    fn a_server_that_is_busy_with_a_long_reading_is_not_lost() {
        let mut app = app(&["mail"]);
        app.update(Update::Lost("refused".to_owned()));
        app.update(Update::Answered);
        let lines = text(&screen(&mut app, 80, 24));
        assert!(lines[0].starts_with("dq server") && lines[23].contains("q leave"), "{lines:?}");
    }

    #[test]
    fn the_line_of_the_cursor_keeps_its_colours() {
        let lines = screen(&mut app(&["mail"]), 80, 24);
        let has = |wanted| lines[2].0.iter().any(|(style, _)| *style == wanted);
        assert!(has(Style::SelectedBad) && has(Style::SelectedWarning) && has(Style::Selected), "{:?}", lines[2]);
    }

    #[test]
    fn a_question_names_its_object_in_full() {
        let (queue, id) = ("orders:charge:eu-central-1:retries", "1795612345678-123-3:customer-4711");
        let cause =
            "duplicate key value violates unique constraint \"charges_of_an_order_pkey\" of the table charges (#)";
        for (kind, question) in [
            (Kind::Redrive(id.into()), format!("Redrive {id} of {queue}?")),
            (Kind::RunNow(id.repeat(2).into()), format!("Run {id}{id} of {queue} now?")),
            (Kind::RedriveCause(cause.into(), 2), format!("Redrive 2 dead messages of {queue} with {cause}?")),
        ] {
            let mut app = app(&["mail"]);
            app.prompt = Prompt::Question(Action { queue: queue.into(), kind });
            let foot = text(&screen(&mut app, 80, 24)[17..]).concat();
            let foot = foot.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(foot.contains(&question), "{foot}");
        }
    }

    #[test]
    fn only_y_does_something() {
        use super::super::app::Next;
        let mut app = app(&["mail"]);
        let mut answer = |key| {
            press(&mut app, &[KeyCode::Char('p')]);
            app.key(KeyEvent::new(key, KeyModifiers::NONE))
        };
        for key in [KeyCode::Char('n'), KeyCode::Enter, KeyCode::Esc, KeyCode::Char('q'), KeyCode::Char('Y')] {
            assert_eq!(answer(key), Next::Stay);
        }
        assert_eq!(answer(KeyCode::Char('y')), Next::Do(Action { queue: b"mail".to_vec(), kind: Kind::Pause }));
    }
}
