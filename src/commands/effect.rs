//! `DQ.E key blob`: applies an effect that was decided elsewhere, by a master, in an AOF or on another node.
//!
//! Every write command replicates this command instead of itself. Its input is not trusted: ordinary clients may not
//! send it unless `dq.allow-effects` allows it, and its content is validated in every case.

use super::{word, Access, Announcement, Arg, Call, Command, Error, Event, Handler, Keys, QueueValue, Row, Session};
use crate::host::admission;
use crate::host::config;
use crate::host::origin::Origin;
use crate::module_api::key::Content;
use dq_queue::wire::unsealed;
use dq_queue::{Effect as Decided, Queue, Refused, Stamped};

pub struct Effect;

impl Command for Effect {
    const ROW: Row = Row {
        name: c"DQ.E",
        flags: c"write",
        arity: 3,
        keys: Keys::First(Access::READ.and(Access::UPDATE)),
        acl: c"dangerous",
        summary: c"Applies an effect that another server wrote. Internal to replication and persistence",
        complexity:
            c"O(M * log N) where M is the number of messages in the effect and N the number of messages in the queue",
        args: &[Arg::key(c"key"), Arg::string(c"effect")],
        ..Row::BASE
    };
    const HANDLER: Handler = effect;
}

fn effect(call: &mut Call<'_>) -> Result<(), Error> {
    let ctx = call.ctx;
    if admission::is_trial() {
        ctx.ok();
        return Ok(());
    }
    let origin = Origin::from_flags(ctx.flags());
    if origin == Origin::Client && !config::allow_effects() {
        return Err(Error::EffectRefused);
    }
    let session = Session::begin(call)?;
    let bad = |refused: Refused| Error::BadEffect(refused.to_string());
    let stamped = unsealed(word(call)).and_then(Stamped::decode).map_err(bad)?;

    let mut key = session.open_write();
    let applied = match key.content() {
        Content::Refused(why) => return Err(why.into()),
        Content::Holds(held) => Some((held.queue.apply(&stamped).map_err(bad)?, held)),
        // If no queue can begin with it, the effect refers to messages of one that does not exist.
        Content::Missing(vacant) => match Queue::made_by(&stamped.effect) {
            Some(mut queue) => {
                let applied = queue.apply(&stamped).map_err(bad)?;
                let held = match stamped.effect {
                    // The queue arrives with its own totals.
                    Decided::Begin(_) => QueueValue::new(queue),
                    _ => QueueValue::made(queue),
                };
                Some((applied, vacant.create(held)?))
            }
            None => None,
        },
    };
    let (announcement, events) = match applied {
        // While the AOF is being loaded, there can be no subscribers.
        Some((_, held)) if origin == Origin::Aof => (session.applied(held, &stamped.effect), &[][..]),
        Some((applied, held)) => {
            (session.applied(held, &stamped.effect), Event::after_effect(&stamped.effect, applied))
        }
        None => (Announcement::default(), &[][..]),
    };
    drop(key);
    ctx.replicate_verbatim();
    ctx.ok();
    session.announce(announcement, events);
    Ok(())
}
