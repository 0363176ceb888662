//! `dqctl ls`.

use super::queues::{object, read, state};
use crate::cli::{LsArgs, Sort};
use crate::condition::{Level, Looks};
use crate::failure::{Failure, Outcome};
use crate::name::{put, shown};
use crate::output::text::Style;
use crate::output::Column::{Name, Number, Spare, Text, Word};
use crate::output::{separated, style, Cell, Column, Output, Table};
use crate::queues;
use crate::reply::Fields;
use crate::row::{Row, Snapshot};
use crate::time::{now_ms, span};
use dq_client::Client;
use serde_json::json;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

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

/// What was seen of a queue, from which its rates and what happens in it follow.
#[derive(Default)]
struct Seen {
    looks: Looks,
    row: Row,
}

/// A queue as it was found.
struct Listed<'a> {
    name: &'a [u8],
    info: &'a Fields,
    row: &'a Row,
}

/// What one look has found.
struct Look<'a> {
    /// Those that are shown, in their order.
    listed: Vec<Listed<'a>>,
    /// How many there are, and how many of them are in trouble; empty if that goes without saying.
    summary: String,
    /// Why the queues of some servers are not among them.
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
    for name in names {
        // A queue that was deleted since is left out.
        let Some(info) = read(client, &name)? else {
            seen.remove(&name);
            continue;
        };
        let Seen { looks, row } = seen.entry(name.clone()).or_default();
        let peeked = looks.peek(client, &name, &info);
        let recent = looks.note(now_ms(), &info, peeked);
        row.take(Snapshot { at: Instant::now(), info, late: None, recent });
    }
    let listed = seen.iter().filter_map(|(name, Seen { row, .. })| {
        let info = &row.latest.as_ref()?.info;
        Some(Listed { name, info, row })
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
            eprintln!("dqctl: {missing}");
            Ok(())
        }
        Some(missing) => Err(missing),
        None => Ok(()),
    }
}

fn print_objects(listed: &[Listed], args: &LsArgs, output: &Output) -> Result<(), Failure> {
    for Listed { name, info, row } in listed {
        let mut object = object(info, &row.conditions, row.recent());
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
    for Listed { name, info, row: seen } in listed {
        let mut row = vec![Cell::from(shown(name))];
        row.extend(["ready", "delayed"].map(|field| Cell::from(info.text(field))));
        row.push(Cell::new(vec![info.text("inflight")], if seen.hangs() { Style::Warning } else { Style::Plain }));
        let is_dead = info.int("dead").is_some_and(|dead| dead > 0);
        row.push(Cell::new(vec![info.text("dead")], if is_dead { Style::Bad } else { Style::Plain }));
        let oldest = info.int("oldest-ready").and_then(|ms| u64::try_from(ms).ok());
        let is_old = oldest.is_some_and(|age| age >= OLD);
        let text = oldest.map_or_else(|| "-".to_owned(), span);
        row.push(Cell::new(vec![text], if is_old { Style::Warning } else { Style::Plain }));
        if args.watch.is_some() {
            let rate = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}"));
            row.extend([seen.pushed, seen.completed].map(|number| Cell::from(rate(number))));
        }
        row.push(Cell::from(info.text("waiting-clients")));
        row.push(state_cell(info, seen));
        table.styled(row);
    }
    table
}

/// The state, and fewer words for a terminal without room: without what explains them, then only the first ones and how many
/// more there are, as in `dqctl top`.
fn state_cell(info: &Fields, row: &Row) -> Cell {
    let words: Vec<&str> = row.conditions.iter().map(|(condition, _)| condition.as_str()).collect();
    let more = |kept: usize| if kept < words.len() { format!(" +{}", words.len() - kept) } else { String::new() };
    let mut texts = vec![state(info, &row.conditions, row.recent())];
    texts.extend((1..=words.len()).rev().map(|kept| words.get(..kept).unwrap_or_default().join(", ") + &more(kept)));
    texts.extend(row.conditions.first().map(|(first, _)| first.in_short().to_owned() + &more(1)));
    Cell::new(texts, style(row.level()))
}
