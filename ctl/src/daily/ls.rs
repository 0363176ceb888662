//! `dqctl ls`.

use super::queues::{object, read, state};
use crate::cli::{LsArgs, Sort};
use crate::condition::{Condition, Level, Looks};
use crate::failure::{Failure, Outcome};
use crate::name::{put, shown};
use crate::output::Column::{Name, Number, Text, Word};
use crate::output::{Cell, Column, Output, Table};
use crate::queues;
use crate::reply::Fields;
use crate::time::{now_ms, span};
use crate::top::{style, Style};
use crate::trouble::Trouble;
use crate::web::history::{History, Sample};
use dq_client::Client;
use serde_json::Value as Json;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::thread;
use std::time::Duration;

const COLUMNS: &[Column] = &[
    Name("queue"),
    Number("ready"),
    Number("delayed"),
    Number("inflight"),
    Number("dead"),
    Word("oldest"),
    Number("waiting"),
    Text("state"),
];

/// The same with messages a second.
const WATCHED: &[Column] = &[
    Name("queue"),
    Number("ready"),
    Number("delayed"),
    Number("inflight"),
    Number("dead"),
    Word("oldest"),
    Number("in/s"),
    Number("out/s"),
    Number("waiting"),
    Text("state"),
];

/// All queues are read each time, so this is the shortest time between.
const LEAST_WATCH: Duration = Duration::from_secs(1);
/// From this age in ms on, the oldest ready message is marked, as in `dqctl top`.
const OLD: u64 = 60_000;

/// What is remembered from one look to the next.
#[derive(Default)]
struct Memory {
    looks: HashMap<Vec<u8>, Looks>,
    history: History,
}

/// A queue as it was found.
struct Listed {
    name: Vec<u8>,
    info: Fields,
    conditions: Vec<(Condition, Level)>,
    trouble: Trouble,
    /// Messages a second; null without `--watch`.
    rates: Json,
}

pub fn ls(client: &Client, args: &LsArgs, output: &Output) -> Result<Outcome, Failure> {
    if let (Some(sort @ (Sort::In | Sort::Out)), None) = (args.sort, args.watch) {
        let name = if sort == Sort::In { "in/s" } else { "out/s" };
        return Err(Failure::usage(format!("--sort {name} needs --watch, which measures how many messages a second")));
    }
    let mut memory = Memory::default();
    let mut picture = args.watch.and_then(|_| output.picture());
    loop {
        match (look(client, args, &mut memory), &mut picture) {
            (Ok(listed), Some(picture)) if listed.is_empty() => picture.line(none(args))?,
            (Ok(listed), Some(picture)) => {
                picture.table(&table(&listed, args), "--sort and --match choose which are shown")?;
            }
            (Ok(listed), None) if listed.is_empty() && output.is_for_people() && !output.json => {
                output.line(none(args))?;
            }
            (Ok(listed), None) => print(&listed, args, output)?,
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
fn look(client: &Client, args: &LsArgs, memory: &mut Memory) -> Result<Vec<Listed>, Failure> {
    let mut listed = Vec::new();
    for name in queues::find(client, args.pattern(), usize::MAX)? {
        // A queue that was deleted since is left out.
        let Some(info) = read(client, &name)? else { continue };
        let looks = memory.looks.entry(name.clone()).or_default();
        let peeked = looks.peek(client, &name, &info);
        let conditions = Condition::of(&info, looks.note(now_ms(), &info, peeked));
        let trouble = Trouble::of(&info, &conditions);
        if args.watch.is_some() {
            memory.history.look(Some(&name), Sample::of_queue(&info));
        }
        let rates = memory.history.rates(Some(&name));
        listed.push(Listed { name, info, conditions, trouble, rates });
    }
    if args.trouble {
        listed.retain(|queue| !queue.trouble.is_none());
    }
    // They are in the order of their names, which those that are equal keep.
    let sort = args.sort.unwrap_or(if args.trouble { Sort::State } else { Sort::Queue });
    listed.sort_by(|a, b| if args.reverse { compare(sort, b, a) } else { compare(sort, a, b) });
    listed.truncate(args.count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX)));
    Ok(listed)
}

/// The largest numbers and the worst states come first.
fn compare(sort: Sort, a: &Listed, b: &Listed) -> Ordering {
    let by = |name: &str| b.info.int(name).cmp(&a.info.int(name));
    let rate = |queue: &Listed, name: &str| queue.rates.get(name).and_then(Json::as_f64).unwrap_or(-1.0);
    match sort {
        Sort::Queue => a.name.cmp(&b.name),
        Sort::Ready => by("ready"),
        Sort::Delayed => by("delayed"),
        Sort::Inflight => by("inflight"),
        Sort::Dead => by("dead"),
        Sort::Oldest => by("oldest-ready"),
        Sort::In => rate(b, "pushed").total_cmp(&rate(a, "pushed")),
        Sort::Out => rate(b, "completed").total_cmp(&rate(a, "completed")),
        Sort::Waiting => by("waiting-clients"),
        Sort::State => b.trouble.cmp(&a.trouble),
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

fn print(listed: &[Listed], args: &LsArgs, output: &Output) -> Result<(), Failure> {
    if !output.json {
        return output.table(&table(listed, args));
    }
    for queue in listed {
        let mut object = object(&queue.info, &queue.conditions);
        put(&mut object, "queue", &queue.name);
        if args.watch.is_some() {
            object.insert("rates".to_owned(), queue.rates.clone());
        }
        output.object(&object)?;
    }
    Ok(())
}

/// The list, in the colours of `dqctl top`.
fn table(listed: &[Listed], args: &LsArgs) -> Table {
    let mut table = Table::new(if args.watch.is_some() { WATCHED } else { COLUMNS });
    for Listed { name, info, conditions, rates, .. } in listed {
        let mut row = vec![Cell::from(shown(name))];
        row.extend(["ready", "delayed", "inflight"].map(|field| Cell::from(info.text(field))));
        let is_dead = info.int("dead").is_some_and(|dead| dead > 0);
        row.push(Cell::new(vec![info.text("dead")], if is_dead { Style::Bad } else { Style::Plain }));
        let oldest = info.int("oldest-ready").and_then(|ms| u64::try_from(ms).ok());
        let is_old = oldest.is_some_and(|age| age >= OLD);
        let text = oldest.map_or_else(|| "-".to_owned(), span);
        row.push(Cell::new(vec![text], if is_old { Style::Warning } else { Style::Plain }));
        if args.watch.is_some() {
            let rate = |name: &str| rates.get(name).and_then(Json::as_f64);
            let rate = |name: &str| rate(name).map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}"));
            row.extend(["pushed", "completed"].map(|name| Cell::from(rate(name))));
        }
        row.push(Cell::from(info.text("waiting-clients")));
        row.push(state_cell(info, conditions));
        table.styled(row);
    }
    table
}

/// The state, and fewer words for a terminal without room: without what explains them, then only the first ones and how many
/// more there are, as in `dqctl top`.
fn state_cell(info: &Fields, conditions: &[(Condition, Level)]) -> Cell {
    let words: Vec<&str> = conditions.iter().map(|(condition, _)| condition.as_str()).collect();
    let mut texts = vec![state(info, conditions)];
    for kept in (1..=words.len()).rev() {
        let rest = words.len() - kept;
        let rest = if rest == 0 { String::new() } else { format!(" +{rest}") };
        texts.push(words.get(..kept).unwrap_or_default().join(", ") + &rest);
    }
    Cell::new(texts, style(conditions.iter().map(|(_, level)| *level).max()))
}
