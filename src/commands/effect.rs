//! `DQ.E key blob`: applies an effect that was decided elsewhere, by a master, in an AOF or on another node.
//!
//! Every write command replicates this command instead of itself. Its input is not trusted: ordinary clients may not
//! send it unless `dq.allow-effects` allows it, and its content is validated in every case.

use super::error::Error;
use super::{key_name, now, word, Command, Handler};
use crate::host::admission;
use crate::host::config;
use crate::host::datatype;
use crate::host::event::Event;
use crate::host::held::Held;
use crate::host::origin::Origin;
use crate::host::write;
use crate::module_api::key::{Content, OpenKey};
use crate::module_api::register::{Access, Arg, Call, Keys, Row};
use dq_queue::wire::unsealed;
use dq_queue::{Effect as Decided, Queue, Stamped};

/// The command.
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
    let origin = Origin::of(ctx.flags());
    if origin == Origin::Client && !config::allow_effects() {
        return Err(Error::EffectRefused);
    }
    let name = key_name(call)?;
    let stamped =
        unsealed(word(call)).and_then(Stamped::decode).map_err(|refused| Error::BadEffect(refused.to_string()))?;

    let mut key = OpenKey::open_write(ctx, name, datatype::handle());
    let outcome = match key.content() {
        Content::Refused(why) => return Err(why.into()),
        Content::Holds(held) => Some(held.queue.apply(&stamped)),
        Content::Missing => match Queue::made_by(&stamped.effect) {
            Some(mut queue) => {
                let outcome = queue.apply(&stamped);
                if outcome.is_ok() {
                    let held = match stamped.effect {
                        // The queue arrives with its own totals.
                        Decided::Begin(_) => Held::new(queue),
                        _ => Held::made(queue),
                    };
                    key.create(held).map_err(|_| Error::WrongType)?;
                }
                Some(outcome)
            }
            // The effect refers to messages of a queue that does not exist, so there is nothing to change.
            None => None,
        },
    };
    let applied = outcome.transpose().map_err(|refused| Error::BadEffect(refused.to_string()))?;
    let announcement = match key.content() {
        Content::Holds(held) => write::applied(ctx, name, held, now(ctx), &stamped.effect),
        Content::Missing | Content::Refused(_) => write::Announcement::default(),
    };
    drop(key);
    ctx.replicate_verbatim();
    ctx.ok();
    // While the AOF is being loaded, there can be no subscribers.
    let events = match applied {
        Some(applied) if origin != Origin::Aof => Event::of_effect(&stamped.effect, applied),
        _ => &[],
    };
    write::announce(ctx, name, announcement, events);
    Ok(())
}
