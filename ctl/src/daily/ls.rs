//! `dqctl ls`.

use super::queues::object;
use super::NOT_ALL;
use crate::board::sort::{Named, Sort};
use crate::board::table::{summary, table, COLUMNS, WATCHED};
use crate::board::{Board, Memory, Rows};
use crate::cli::LsArgs;
use crate::output::{Output, Table};
use crate::server::failure::{Failure, Outcome};
use crate::text::name::put;
use dq_client::Client;
use serde_json::Value as Json;
use std::thread;
use std::time::Duration;

/// All queues are read each time, so this is the shortest time between.
const LEAST_WATCH: Duration = Duration::from_secs(1);

pub fn ls(client: &Client, args: &LsArgs, output: &Output) -> Result<Outcome, Failure> {
    if let (Some(sort @ (Sort::In | Sort::Out)), None) = (args.sort, args.watch) {
        let name = sort.name();
        return Err(Failure::usage(format!("--sort {name} needs --watch, which measures how many messages a second")));
    }
    let board = Board::new(client.clone(), args.pattern().map(str::to_owned), Memory::Fields);
    let mut picture = args.watch.and_then(|_| output.picture());
    loop {
        let swept = board.sweep();
        let missing = missing(&board);
        board.rows(|rows| match (swept, &mut picture) {
            (Ok(()), Some(picture)) if chosen(rows, args).is_empty() && missing.is_none() => picture.line(none(args)),
            (Ok(()), Some(picture)) => picture.table(&listed(rows, args), &remark(rows, args), missing),
            (Ok(()), None) => print(rows, missing, args, output),
            // Who watches a server wants to see it come back.
            (Err(failure), Some(picture)) => picture.failed(failure),
            (Err(failure), None) => Err(failure),
        })?;
        let Some(every) = args.watch else { return Ok(Outcome::Done) };
        thread::sleep(every.max(LEAST_WATCH));
        if picture.is_none() {
            output.remark("")?;
        }
    }
}

/// Why some queues are not among those that are listed, or could not be read.
fn missing(board: &Board) -> Option<Failure> {
    let about = board.about();
    let denied = about.denied.map(|why| format!("{NOT_ALL}: {why}"));
    about.missing.or(denied).map(Failure::failed)
}

/// The queues that are shown, in their order.
fn chosen<'a>(rows: &'a Rows, args: &LsArgs) -> Vec<Named<'a>> {
    let all = rows.iter().map(|(name, row)| (name.as_slice(), row));
    let mut chosen: Vec<Named> = all.filter(|(_, row)| !args.trouble || !row.trouble.is_none()).collect();
    let sort = sort(args);
    chosen.sort_by(|a, b| if args.reverse { sort.compare(*b, *a) } else { sort.compare(*a, *b) });
    chosen.truncate(args.count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX)));
    chosen
}

fn sort(args: &LsArgs) -> Sort {
    args.sort.unwrap_or(if args.trouble { Sort::State } else { Sort::Queue })
}

fn listed(rows: &Rows, args: &LsArgs) -> Table {
    table(chosen(rows, args), if args.watch.is_some() { WATCHED } else { COLUMNS })
}

/// How many queues there are, and how many of them are in trouble.
fn remark(rows: &Rows, args: &LsArgs) -> String {
    let mut summary = summary(rows.values());
    let has_trouble = rows.values().any(|row| !row.trouble.is_none());
    if has_trouble && !summary.is_empty() && !args.trouble && sort(args) != Sort::State {
        summary.push_str("; --trouble lists the worst first");
    }
    summary
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
fn print(rows: &Rows, missing: Option<Failure>, args: &LsArgs, output: &Output) -> Result<(), Failure> {
    let chosen = chosen(rows, args);
    if output.json {
        chosen.iter().try_for_each(|queue| print_object(*queue, args, output))?;
    } else if chosen.is_empty() && missing.is_none() && output.is_for_people() {
        output.line(none(args))?;
    } else {
        output.table(&listed(rows, args))?;
        let remark = remark(rows, args);
        if !remark.is_empty() {
            output.remark(&remark)?;
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

fn print_object((name, row): Named, args: &LsArgs, output: &Output) -> Result<(), Failure> {
    let mut object = object(&row.info, &row.conditions);
    object.insert("state".to_owned(), row.state().into());
    put(&mut object, "queue", name);
    if args.watch.is_some() {
        object.insert("rates".to_owned(), row.rates().map_or(Json::Null, |rates| rates.json()));
    }
    output.object(&object)
}
