//! `dqctl find`: messages in all queues, printed page by page, so that neither memory nor the first line waits for the
//! last queue.

use crate::board::{error_of, message, names, scan, Among, Filter};
use crate::cli::FindArgs;
use crate::output::Column::{Id, Name, Number, Text, Word};
use crate::output::{Column, Output, Progress, Table, Task, Unit};
use crate::server::{info, Failure, Message, Outcome};
use crate::text::{now_ms, put, shown, MessageId};
use dq_client::{blocking::Client, cmd, Error, Resend};
use std::ops::ControlFlow;

const COLUMNS: &[Column] = &[
    Name("queue"),
    Id("id"),
    Word("state"),
    Word("due"),
    Word("died"),
    Number("attempt"),
    Text("payload"),
    Text("error"),
];

/// How many rows a table on a terminal has at most. Its columns are as wide as its rows need.
const BLOCK: usize = 200;

const SEARCH: Task = Task {
    done: "read",
    unit: Unit::Queues,
    repeat: "a search changes nothing, and can be repeated from the beginning",
};

/// Which messages are searched for.
enum Wanted {
    /// The one with this id.
    Id(MessageId),
    /// Those whose ids begin with this.
    Prefix(MessageId),
    Selected(Filter),
}

impl Wanted {
    fn read(args: &FindArgs) -> Wanted {
        match args.id.as_ref().map(MessageId::id) {
            Some(prefix) if args.prefix => Wanted::Prefix(prefix),
            Some(id) => Wanted::Id(id),
            None => Wanted::Selected(args.select.filter(Among::default(), None)),
        }
    }

    fn is_met(&self, message: &Message) -> bool {
        match self {
            Wanted::Id(id) => message.id() == id.as_bytes(),
            Wanted::Prefix(prefix) => message.id().starts_with(prefix.as_bytes()),
            Wanted::Selected(filter) => filter.selects(message, now_ms()),
        }
    }

    /// Reports that no queue has such a message.
    fn none(&self) -> String {
        match self {
            Wanted::Id(id) | Wanted::Prefix(id) => format!("no queue has a message {id}"),
            Wanted::Selected(filter) => format!("no queue has a message{filter}"),
        }
    }
}

pub fn find(client: &Client, args: &FindArgs, output: &Output) -> Result<Outcome, Failure> {
    let wanted = Wanted::read(args);
    let mut printer = Printer { output, rows: Vec::new(), has_found: false, has_begun: false };
    let (queues, mut unread) = names::find_reachable(client, args.pattern.as_deref())?;
    let progress = Progress::begin_beside_output(SEARCH, output);
    progress.expect(queues.len() as u64);
    for queue in queues {
        progress.advance(1);
        match find_in(client, &queue, &wanted, &mut printer, &progress) {
            Err(failure) if failure.is_denied() => unread = Some(failure),
            searched => searched?,
        }
    }
    drop(progress);
    printer.print_rows()?;
    match unread {
        // It may be where nobody could look.
        Some(failure) if !printer.has_found => return Err(failure),
        Some(failure) => print_error!("dqctl: not all queues could be read: {failure}"),
        None if printer.has_found => {}
        None => print_error!("dqctl: {}", wanted.none()),
    }
    Ok(Outcome::done_if(printer.has_found))
}

fn find_in(
    client: &Client,
    queue: &[u8],
    wanted: &Wanted,
    printer: &mut Printer,
    progress: &Progress,
) -> Result<(), Failure> {
    if let Wanted::Id(id) = wanted {
        let reply = match client.call(cmd("DQ.GET").arg(queue).arg(id.as_bytes()), Resend::Harmless) {
            // The key was replaced since it was found.
            Err(Error::WrongType(_)) => return Ok(()),
            reply => reply?,
        };
        return Message::read(reply)?.map_or(Ok(()), |message| printer.print(queue, &[message]));
    }
    let Some(info) = info::read(client, queue)? else { return Ok(()) };
    scan::pages(client, queue, &info, &[], |mut page| {
        progress.done(page.len() as u64);
        page.retain(|message| wanted.is_met(message));
        printer.print(queue, &page)?;
        Ok(ControlFlow::Continue(()))
    })
}

/// Prints messages as they are found.
struct Printer<'a> {
    output: &'a Output,
    /// The rows of the next table on a terminal.
    rows: Vec<Vec<String>>,
    has_found: bool,
    /// Whether rows were printed, so that a pipe has the names of the columns already.
    has_begun: bool,
}

impl Printer<'_> {
    fn print(&mut self, queue: &[u8], messages: &[Message]) -> Result<(), Failure> {
        self.has_found |= !messages.is_empty();
        if self.output.json {
            return messages.iter().try_for_each(|message| {
                let mut object = message.json();
                put(&mut object, "queue", queue);
                self.output.object(&object)
            });
        }
        self.rows.extend(messages.iter().map(|message| row(queue, message, self.output)));
        if self.rows.len() >= BLOCK || !self.output.is_for_people {
            self.print_rows()?;
        }
        Ok(())
    }

    fn print_rows(&mut self) -> Result<(), Failure> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let table = Table::plain(COLUMNS, std::mem::take(&mut self.rows).into_iter());
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        if is_first || self.output.is_for_people {
            self.output.table(&table)
        } else {
            self.output.rows(&table)
        }
    }
}

fn row(queue: &[u8], message: &Message, output: &Output) -> Vec<String> {
    let [due, died] = ["due", "died"].map(|name| output.instant(message.int(name)));
    let due = if died.is_empty() || !output.is_for_people { due } else { String::new() };
    let [id, state, attempt, payload] =
        ["id", "state", "attempt", "payload"].map(|name| message::field(message, name, output));
    vec![shown(queue), id, state, due, died, attempt, payload, error_of(message)]
}
