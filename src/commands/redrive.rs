//! `DQ.REDRIVE key [COUNT n | IDS n id [id ...]] [DELAY ms] [OLDER ms]
//! [REASON retries | rejected | expired]`

use super::options::{count_of_words, REASON};
use super::{id, options, Access, Arg, Call, Command, Error, Event, Handler, Keys, Options, Row, Session};
use dq_queue::id::Id;
use dq_queue::{Due, Effect, Oldest, Which};

pub struct Redrive;

impl Command for Redrive {
    const ROW: Row = Row {
        name: c"DQ.REDRIVE",
        flags: c"write",
        arity: -2,
        keys: Keys::First(Access::UPDATE),
        summary:
            c"Makes dead messages live again, as if they had never been delivered. Returns the number of messages \
              redriven",
        complexity:
            c"O(M * log N) where M is the number of messages redriven or named and N the number of messages in \
              the queue. With OLDER or REASON O(D) more, where D is the number of dead messages",
        args: &[Arg::key(c"key")],
        options: &[RedriveOption::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = redrive;
}

options! {
    enum RedriveOption {
        Count | Ids => Arg::oneof(
            c"which",
            &[
                Arg::token_int(c"COUNT", c"count"),
                Arg::block(c"ids", &[Arg::int(c"numids"), Arg::string(c"id").multiple()]).after(c"IDS"),
            ],
        ),
        Delay => Arg::token_int(c"DELAY", c"ms"),
        Older => Arg::token_int(c"OLDER", c"older-ms"),
        Reason => REASON,
    }
}

/// Which dead messages to redrive, and when they are due.
pub(super) struct Arguments<'a> {
    oldest: Oldest,
    ids: Option<Vec<Option<Id<'a>>>>,
    due: Due,
}

fn redrive(call: &mut Call<'_>) -> Result<(), Error> {
    let session = Session::begin(call)?;
    let arguments = parse(call)?;
    let which = match &arguments.ids {
        Some(ids) => Which::Named(ids),
        None => Which::Oldest(arguments.oldest),
    };
    session.change(
        |queue| {
            let redriven = queue.redrive(session.now, &which, arguments.due);
            (redriven.count > 0).then_some((redriven.count, move || Effect::Redrive(redriven.spans, redriven.due)))
        },
        |count| session.reply_count(count, &[Event::Redrive]),
    )
}

pub(super) fn parse<'a>(call: &mut Call<'a>) -> Result<Arguments<'a>, Error> {
    let mut arguments = Arguments { oldest: Oldest::first(usize::MAX), ids: None, due: Due::Now };
    let mut condition = None;
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next()? {
        match option {
            RedriveOption::Count => {
                arguments.oldest.count = options.count()?;
                condition = Some("COUNT");
            }
            RedriveOption::Ids => arguments.ids = Some(ids(&mut options)?),
            RedriveOption::Delay => arguments.due = Due::After(options.duration()?),
            RedriveOption::Older => {
                arguments.oldest.older = Some(options.duration()?);
                condition = Some("OLDER");
            }
            RedriveOption::Reason => {
                arguments.oldest.reason = options.reason()?;
                condition = Some("REASON");
            }
        }
    }
    match (condition, &arguments.ids) {
        (Some(condition), Some(_)) => Err(Error::Exclusive(condition, "IDS")),
        (None, _) | (_, None) => Ok(arguments),
    }
}

/// Parses `n id [id ...]`.
fn ids<'a>(options: &mut Options<'a, '_>) -> Result<Vec<Option<Id<'a>>>, Error> {
    if options.rest().remaining() == 0 {
        return Err(Error::NoValue("IDS".to_owned()));
    }
    let count = count_of_words(options.rest(), "IDS")?;
    let given = options.rest().remaining();
    let too_few = Error::TooFew { count: "IDS", wanted: count, given, of: "ids" };
    options.rest().take(count).ok_or(too_few)?.map(id).collect()
}
