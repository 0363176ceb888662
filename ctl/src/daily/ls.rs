//! `dqctl ls`.

use super::queues::object;
use super::NOT_ALL;
use crate::board::{table::summary, table::table, table::COLUMNS, Board, Memory, Named, Rows, Sort};
use crate::cli::LsArgs;
use crate::output::Output;
use crate::server::{Failure, Outcome};
use crate::text::put;
use dq_client::blocking::Client;

pub fn ls(client: &Client, args: &LsArgs, output: &Output) -> Result<Outcome, Failure> {
    if let Some(sort @ (Sort::In | Sort::Out)) = args.sort {
        let name = sort.name();
        return Err(Failure::usage(format!("one look measures no messages a second for --sort {name}: use dqctl top")));
    }
    let board = Board::new(client.clone(), args.pattern.clone(), Memory::Fields);
    board.sweep()?;
    let about = board.about();
    let denied = about.denied.map(|why| format!("{NOT_ALL}: {why}"));
    // Why some queues are not among those that are listed, or could not be read.
    let missing = about.missing.or(about.unlisted).or(denied).map(Failure::failed);
    board.rows(|rows| print(rows, missing.is_some(), args, output))?;
    missing.map_or(Ok(Outcome::Done), Err)
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

fn print(rows: &Rows, is_partial: bool, args: &LsArgs, output: &Output) -> Result<(), Failure> {
    let all = rows.iter().map(|(name, row)| (name.as_slice(), row));
    let mut chosen: Vec<Named> = all.filter(|(_, row)| !args.trouble || !row.trouble.is_none()).collect();
    let sort = args.sort.unwrap_or(if args.trouble { Sort::State } else { Sort::Queue });
    chosen.sort_by(|a, b| if args.reverse { sort.compare(*b, *a) } else { sort.compare(*a, *b) });
    chosen.truncate(args.count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX)));
    if output.json {
        return chosen.iter().try_for_each(|(name, row)| {
            let mut object = object(&row.info, &row.conditions);
            object.insert("state".to_owned(), row.state().into());
            put(&mut object, "queue", name);
            output.object(&object)
        });
    }
    if chosen.is_empty() && !is_partial && output.is_for_people {
        return output.line(none(args));
    }
    output.table(&table(chosen, COLUMNS))?;
    let mut summary = summary(rows.values());
    let has_trouble = rows.values().any(|row| !row.trouble.is_none());
    if has_trouble && !summary.is_empty() && !args.trouble && sort != Sort::State {
        summary.push_str("; --trouble lists the worst first");
    }
    if !summary.is_empty() {
        output.remark(&summary)?;
    }
    Ok(())
}
