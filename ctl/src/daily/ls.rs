//! `dqctl ls`.

use super::queues::{object, state};
use super::seen::{Seen, AGAIN};
use super::NOT_ALL;
use crate::cli::{LsArgs, Sort};
use crate::condition::Level;
use crate::dead::Targets;
use crate::failure::{Failure, Outcome};
use crate::name::{put, shown};
use crate::output::text::Style;
use crate::output::Column::{Name, Number, Spare, Text, Word};
use crate::output::{separated, style, Cell, Column, Output, Table};
use crate::queues;
use crate::reply::Fields;
use crate::row::Row;
use crate::time::span;
use dq_client::Client;
use serde_json::json;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Duration;

const COLUMNS: &[Column] = &[
    Name("queue"),
    Number("ready"),
    Spare("delayed"),
    Number("inflight"),
    Number("dead"),
    Word("oldest"),
    Spare("waiting"),
    Text("state"),
];

/// The same with messages a second.
const WATCHED: &[Column] = &[
    Name("queue"),
    Number("ready"),
    Spare("delayed"),
    Number("inflight"),
    Number("dead"),
    Word("oldest"),
    Number("in/s"),
    Number("out/s"),
    Spare("waiting"),
    Text("state"),
];

/// All queues are read each time, so this is the shortest time between.
const LEAST_WATCH: Duration = Duration::from_secs(1);
/// From this age in ms on, the oldest ready message is marked, as in `dqctl top`.
const OLD: u64 = 60_000;

/// The fields of a queue that the user may not read.
const UNKNOWN: &Fields = &Fields(Vec::new());

/// A queue as it was found.
struct Listed<'a> {
    name: &'a [u8],
    info: &'a Fields,
    row: &'a Row,
}

impl Listed<'_> {
    fn is_denied(&self) -> bool {
        self.row.latest.is_none()
    }

    fn state(&self) -> String {
        if self.is_denied() {
            return "no permission".to_owned();
        }
        state(self.info, &self.row.conditions, self.row.recent())
    }

    /// A field as it is shown.
    fn text(&self, field: &str) -> String {
        if self.is_denied() {
            return "-".to_owned();
        }
        self.info.text(field)
    }
}

/// What one look has found.
struct Look<'a> {
    /// Those that are shown, in their order.
    listed: Vec<Listed<'a>>,
    /// How many there are, and how many of them are in trouble; empty if that goes without saying.
    summary: String,
    /// Why some queues are not among them, or could not be read.
    missing: Option<Failure>,
}

pub fn ls(client: &Client, args: &LsArgs, output: &Output) -> Result<Outcome, Failure> {
    if let (Some(sort @ (Sort::In | Sort::Out)), None) = (args.sort, args.watch) {
        let name = if sort == Sort::In { "in/s" } else { "out/s" };
        return Err(Failure::usage(format!("--sort {name} needs --watch, which measures how many messages a second")));
    }
    let mut seen = BTreeMap::new();
    let mut picture = args.watch.and_then(|_| output.picture());
    loop {
        match (look(client, args, &mut seen), &mut picture) {
            (Ok(look), Some(picture)) if look.listed.is_empty() && look.missing.is_none() => {
                picture.line(none(args))?;
            }
            (Ok(look), Some(picture)) => {
                picture.table(&table(&look.listed, args), &look.summary, look.missing)?;
            }
            (Ok(look), None) => print(look, args, output)?,
            // Who watches a server wants to see it come back.
            (Err(failure), Some(picture)) => picture.failed(failure)?,
            (Err(failure), None) => return Err(failure),
        }
        let Some(every) = args.watch else { return Ok(Outcome::Done) };
        thread::sleep(every.max(LEAST_WATCH));
        if picture.is_none() {
            output.remark("")?;
        }
    }
}

/// Reads the queues, and chooses and sorts those that are shown.
fn look<'a>(client: &Client, args: &LsArgs, seen: &'a mut BTreeMap<Vec<u8>, Seen>) -> Result<Look<'a>, Failure> {
    let (names, missing) = queues::find_reachable(client, args.pattern())?;
    let names: BTreeSet<Vec<u8>> = names.into_iter().collect();
    seen.retain(|name, _| names.contains(name));
    let denied = read(client, &names, seen)?;
    let missing = missing.or(denied);
    let listed = seen.iter().map(|(name, Seen { row, .. })| {
        let info = row.latest.as_ref().map_or(UNKNOWN, |latest| &latest.info);
        Listed { name, info, row }
    });
    let mut listed: Vec<Listed> = listed.collect();
    // They are in the order of their names, which those that are equal keep.
    let sort = args.sort.unwrap_or(if args.trouble { Sort::State } else { Sort::Queue });
    let mut summary = summary(&listed);
    let has_trouble = listed.iter().any(|queue| !queue.row.trouble.is_none());
    if has_trouble && !summary.is_empty() && !args.trouble && sort != Sort::State {
        summary.push_str("; --trouble lists the worst first");
    }
    listed.retain(|queue| !args.trouble || !queue.row.trouble.is_none());
    listed.sort_by(|a, b| if args.reverse { compare(sort, b, a) } else { compare(sort, a, b) });
    listed.truncate(args.count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX)));
    Ok(Look { listed, summary, missing })
}

/// Reads the queues, and after a moment once more those that were never seen before and seem to have no consumer. Returns why
/// some of them could not be read, if the user may not.
fn read(
    client: &Client,
    names: &BTreeSet<Vec<u8>>,
    seen: &mut BTreeMap<Vec<u8>, Seen>,
) -> Result<Option<Failure>, Failure> {
    let (mut unclear, mut denied, mut targets) = (Vec::new(), None, Targets::default());
    for name in names {
        let is_new = !seen.contains_key(name);
        let queue = seen.entry(name.clone()).or_default();
        match queue.look(client, name, &mut targets) {
            Ok(true) if is_new && queue.is_unclear() => unclear.push(name),
            Ok(true) => {}
            // It was deleted since it was found.
            Ok(false) => drop(seen.remove(name)),
            Err(failure) if failure.is_denied() => {
                *queue = Seen::default();
                denied = Some(failure.of(NOT_ALL));
            }
            Err(failure) => return Err(failure),
        }
    }
    if !unclear.is_empty() {
        thread::sleep(AGAIN);
    }
    for name in unclear {
        if !seen.entry(name.clone()).or_default().look(client, name, &mut targets)? {
            seen.remove(name);
        }
    }
    Ok(denied)
}

/// In the words of `dqctl top`.
fn summary(all: &[Listed]) -> String {
    let number = |number: usize| separated(&number.to_string());
    let mut parts = vec![format!("{} queues", number(all.len()))];
    for (level, words) in [(Level::Bad, "in trouble"), (Level::Warning, "to look at")] {
        let count = all.iter().filter(|queue| queue.row.level() == Some(level)).count();
        parts.extend((count > 0).then(|| format!("{} {words}", number(count))));
    }
    if all.len() > 1 {
        parts.join(", ")
    } else {
        String::new()
    }
}

/// The largest numbers and the worst states come first.
fn compare(sort: Sort, a: &Listed, b: &Listed) -> Ordering {
    let by = |name: &str| b.info.int(name).cmp(&a.info.int(name));
    let rate = |a: Option<f64>, b: Option<f64>| b.unwrap_or(-1.0).total_cmp(&a.unwrap_or(-1.0));
    match sort {
        Sort::Queue => a.name.cmp(b.name),
        Sort::Ready => by("ready"),
        Sort::Delayed => by("delayed"),
        Sort::Inflight => by("inflight"),
        Sort::Dead => by("dead"),
        Sort::Oldest => by("oldest-ready"),
        Sort::In => rate(a.row.pushed, b.row.pushed),
        Sort::Out => rate(a.row.completed, b.row.completed),
        Sort::Waiting => by("waiting-clients"),
        Sort::State => b.row.trouble.cmp(&a.row.trouble),
    }
}

/// What a terminal shows instead of an empty list.
fn none(args: &LsArgs) -> &'static str {
    match (args.trouble, args.pattern()) {
        (true, None) => "nothing is wrong with any queue",
        (true, Some(_)) => "nothing is wrong with any queue that matches",
        (false, Some(_)) => "no queue matches",
        (false, None) => "there are no queues; the first push creates one: dqctl push mail hello",
    }
}

/// Prints a list, and says which queues are missing, which is a failure of what looks once.
fn print(look: Look, args: &LsArgs, output: &Output) -> Result<(), Failure> {
    let Look { listed, summary, missing } = look;
    if output.json {
        print_objects(&listed, args, output)?;
    } else if listed.is_empty() && missing.is_none() && output.is_for_people() {
        output.line(none(args))?;
    } else {
        output.table(&table(&listed, args))?;
        if !summary.is_empty() {
            output.remark(&summary)?;
        }
    }
    match missing {
        Some(missing) if args.watch.is_some() => {
            say!("dqctl: {missing}");
            Ok(())
        }
        Some(missing) => Err(missing),
        None => Ok(()),
    }
}

fn print_objects(listed: &[Listed], args: &LsArgs, output: &Output) -> Result<(), Failure> {
    for listed @ Listed { name, info, row } in listed {
        let mut object = object(info, &row.conditions, row.recent());
        object.insert("state".to_owned(), listed.state().into());
        put(&mut object, "queue", name);
        if args.watch.is_some() {
            let rates = row.pushed.zip(row.completed).map(
                |(pushed, completed)| json!({ "pushed": to_hundredths(pushed), "completed": to_hundredths(completed) }),
            );
            object.insert("rates".to_owned(), rates.unwrap_or_default());
        }
        output.object(&object)?;
    }
    Ok(())
}

fn to_hundredths(rate: f64) -> f64 {
    (rate * 100.0).round() / 100.0
}

/// The list, in the colours of `dqctl top`.
fn table(listed: &[Listed], args: &LsArgs) -> Table {
    let mut table = Table::new(if args.watch.is_some() { WATCHED } else { COLUMNS });
    for queue @ Listed { name, info, row: seen } in listed {
        let mut row = vec![Cell::from(shown(name))];
        row.extend(["ready", "delayed"].map(|field| Cell::from(queue.text(field))));
        row.push(Cell::new(vec![queue.text("inflight")], if seen.hangs() { Style::Warning } else { Style::Plain }));
        let is_dead = info.int("dead").is_some_and(|dead| dead > 0);
        row.push(Cell::new(vec![queue.text("dead")], if is_dead { Style::Bad } else { Style::Plain }));
        let oldest = info.int("oldest-ready").and_then(|ms| u64::try_from(ms).ok());
        let is_old = oldest.is_some_and(|age| age >= OLD);
        let text = oldest.map_or_else(|| "-".to_owned(), span);
        row.push(Cell::new(vec![text], if is_old { Style::Warning } else { Style::Plain }));
        if args.watch.is_some() {
            let rate = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}"));
            row.extend([seen.pushed, seen.completed].map(|number| Cell::from(rate(number))));
        }
        row.push(Cell::from(queue.text("waiting-clients")));
        row.push(state_cell(queue));
        table.styled(row);
    }
    table
}

/// The state, and fewer words for a terminal without room: without what explains them, then only the first ones and how many
/// more there are, as in `dqctl top`.
fn state_cell(queue: &Listed) -> Cell {
    let row = queue.row;
    let words: Vec<&str> = row.conditions.iter().map(|(condition, _)| condition.as_str()).collect();
    let more = |kept: usize| if kept < words.len() { format!(" +{}", words.len() - kept) } else { String::new() };
    let mut texts = vec![queue.state()];
    texts.extend((1..=words.len()).rev().map(|kept| words.get(..kept).unwrap_or_default().join(", ") + &more(kept)));
    texts.extend(row.conditions.first().map(|(first, _)| first.in_short().to_owned() + &more(1)));
    Cell::new(texts, style(row.level()))
}
