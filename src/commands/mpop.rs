//! `DQ.MPOP numkeys key [key ...] [COUNT n] [MIN n LINGER ms] [LEASE ms] [BLOCK ms] [META] [AS name] [NOACK]`

use super::options::count_of_words;
use super::pop::{parse, refuse_forwarding, serve_now, Head, PopOption, TakeOption};
use super::{existing, Access, Arg, Call, Command, Error, Event, Handler, Keys, Row, Session};
use crate::host::waiting::delivery;
use crate::module_api::key::Touch;
use dq_queue::time::UnixMs;

pub struct MPop;

impl Command for MPop {
    const ROW: Row = Row {
        name: c"DQ.MPOP",
        flags: c"write blocking",
        arity: -3,
        keys: Keys::Counted(Access::READ.and(Access::UPDATE)),
        summary: c"Delivers the next ready messages of the first of several queues that has any. Optionally blocks \
                   until one is due",
        complexity: c"O(K + M * log N) where K is the number of keys, M the number of messages delivered and N the \
                      number of messages in a queue",
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
    let (db, now) = (ctx.selected_db(), UnixMs::new(ctx.now_ms()));
    let sessions = names.iter().map(|name| Session { ctx, db, name: *name, now });
    // If one of the keys cannot be popped, the command fails, and nothing may have been popped by then.
    for session in sessions.clone() {
        existing(session.open_read(Touch::No).content(), |held| refuse_forwarding(held))?.transpose()?;
    }
    for session in sessions {
        let delivered = session.with_queue(|held| serve_now(&session, held, &request))?;
        if let Some(announcement) = delivered.flatten() {
            session.announce(announcement, &[Event::Pop]);
            return Ok(());
        }
    }
    match block {
        Some(timeout) => delivery::block(ctx, names, Box::new(request), timeout),
        None => {
            delivery::count_empty_pop(ctx, names);
            ctx.null_array();
        }
    }
    Ok(())
}
