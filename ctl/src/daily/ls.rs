//! `dqctl ls`.

use super::queues::object;
use super::NOT_ALL;
use crate::board::sort::{Named, Sort};
use crate::board::table::{summary, table, COLUMNS};
use crate::board::{Board, Memory, Rows};
use crate::cli::LsArgs;
use crate::output::{Output, Table};
use crate::server::failure::{Failure, Outcome};
use crate::text::name::put;
use dq_client::blocking::Client;

pub fn ls(client: &Client, args: &LsArgs, output: &Output) -> Result<Outcome, Failure> {
    if let Some(sort @ (Sort::In | Sort::Out)) = args.sort {
        let name = sort.name();
        return Err(Failure::usage(format!("one look measures no messages a second for --sort {name}: use dqctl top")));
    }
    let board = Board::new(client.clone(), args.pattern.clone(), Memory::Fields);
    board.sweep()?;
    let missing = missing(&board);
    board.rows(|rows| print(rows, missing, args, output))?;
    Ok(Outcome::Done)
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
    table(chosen(rows, args), COLUMNS)
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
    match (args.trouble, &args.pattern) {
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
        chosen.iter().try_for_each(|queue| print_object(*queue, output))?;
    } else if chosen.is_empty() && missing.is_none() && output.is_for_people() {
        output.line(none(args))?;
    } else {
        output.table(&listed(rows, args))?;
        let remark = remark(rows, args);
        if !remark.is_empty() {
            output.remark(&remark)?;
        }
    }
    missing.map_or(Ok(()), Err)
}

fn print_object((name, row): Named, output: &Output) -> Result<(), Failure> {
    let mut object = object(&row.info, &row.conditions);
    object.insert("state".to_owned(), row.state().into());
    put(&mut object, "queue", name);
    output.object(&object)
}
