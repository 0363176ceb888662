//! `DQ.CANCEL key id [id ...]`

use super::error::Error;
use super::{change_queue, id, key_name, now, Command, Handler};
use crate::host::event::Event;
use crate::host::write;
use crate::module_api::register::{Access, Arg, Call, Keys, Row};
use dq_queue::id::Id;
use dq_queue::Effect;

/// The command.
pub struct Cancel;

impl Command for Cancel {
    const ROW: Row = Row {
        name: c"DQ.CANCEL",
        flags: c"write fast",
        arity: -3,
        keys: Keys::First(Access::DELETE),
        summary: c"Removes messages in any state, and forgets known ids. Returns the state that each was in",
        complexity: c"O(M * log N) where M is the number of ids and N the number of messages in the queue",
        args: &[Arg::key(c"key"), Arg::string(c"id").multiple()],
        ..Row::BASE
    };
    const HANDLER: Handler = cancel;
}

/// The reply for an id that was known although its message was gone.
const KNOWN: &str = "known";

fn cancel(call: &mut Call<'_>) -> Result<(), Error> {
    let ctx = call.ctx;
    let name = key_name(call)?;
    call.args.clone().rest().try_for_each(|word| id(word).map(drop))?;
    let now = now(ctx);
    let named = call.args.remaining();
    let mut states: Vec<Option<&str>> = Vec::with_capacity(named);
    let outcome = change_queue(ctx, name, now, |queue| {
        let (mut gone, mut forgotten) = (Vec::new(), Vec::new());
        while let Some(text) = call.args.next() {
            let id = Id::parse(text);
            let cancelled = id.and_then(|id| queue.cancel(now, &id));
            gone.extend(cancelled.map(|(sequence, _)| sequence));
            states.push(match (cancelled, id) {
                (Some((_, state)), _) => Some(state.as_str()),
                (None, Some(Id::Named(id))) if queue.forget(now, id) => {
                    forgotten.push(id);
                    Some(KNOWN)
                }
                (None, _) => None,
            });
        }
        (!gone.is_empty() || !forgotten.is_empty()).then_some(((), move || Effect::Cancel(gone, forgotten)))
    })?;
    states.resize(named, None);
    ctx.array(named);
    for state in states {
        match state {
            Some(state) => ctx.bulk(state.as_bytes()),
            None => ctx.null(),
        }
    }
    if let Some(((), announcement)) = outcome {
        write::announce(ctx, name, announcement, &[Event::Cancel]);
    }
    Ok(())
}
