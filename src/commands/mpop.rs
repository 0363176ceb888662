//! `DQ.MPOP numkeys key [key ...] [COUNT n] [MIN n LINGER ms] [LEASE ms] [BLOCK ms] [META] [AS name] [NOACK]`

use super::error::Error;
use super::options::count_of_words;
use super::pop::{parse, refuse_forwarding, serve_now, Head, PopOption, TakeOption};
use super::{now, with_queue, Command, Handler};
use crate::host::blocked;
use crate::host::datatype;
use crate::host::event::Event;
use crate::host::write;
use crate::module_api::ctx::{Ctx, Name};
use crate::module_api::key::{Content, OpenKey, Touch};
use crate::module_api::register::{Access, Arg, Call, Keys, Row};

/// The command.
pub struct MPop;

impl Command for MPop {
    const ROW: Row = Row {
        name: c"DQ.MPOP",
        flags: c"write blocking",
        arity: -3,
        keys: Keys::Counted(Access::READ.and(Access::UPDATE)),
        summary: c"Delivers the next ready messages of the first of several queues that has any. Optionally blocks until one is due",
        complexity: c"O(K + M * log N) where K is the number of keys, M the number of messages delivered and N the number of messages in a queue",
        tips: c"nondeterministic_output",
        args: &[Arg::int(c"numkeys"), Arg::key(c"key").multiple()],
        options: &[PopOption::ARGS, TakeOption::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = mpop;
}

fn mpop(call: &mut Call<'_>) -> Result<(), Error> {
    let ctx = call.ctx;
    let count = count_of_words(&mut call.args, "numkeys")?;
    let given = call.args.remaining();
    let too_few = Error::TooFew { count: "numkeys", wanted: count, given, of: "keys" };
    let names = call.args.take_names(count).ok_or(too_few)?;
    let (mut request, block) = parse(call)?;
    request.head = Head::Queue;
    let now = now(ctx);
    // If one of the keys cannot be popped, the command fails, and nothing may have been popped by then.
    names.iter().try_for_each(|name| may_be_popped(ctx, *name))?;
    for name in names {
        let delivered = with_queue(ctx, *name, |held| serve_now(ctx, *name, held, now, &request))?;
        if let Some(announcement) = delivered.flatten() {
            write::announce(ctx, *name, announcement, &[Event::Pop]);
            return Ok(());
        }
    }
    match block {
        Some(timeout) => blocked::block(ctx, names, Box::new(request), timeout),
        None => {
            blocked::count_empty_pop(ctx, names);
            ctx.null_array();
        }
    }
    Ok(())
}

/// Fails if the key holds another type, or a queue that forwards.
fn may_be_popped(ctx: Ctx, name: Name<'_>) -> Result<(), Error> {
    let mut key = OpenKey::open_read(ctx, name, datatype::handle(), Touch::No);
    match key.content() {
        Content::Missing => Ok(()),
        Content::Holds(held) => refuse_forwarding(held),
        Content::Refused(why) => Err(why.into()),
    }
}
