//! `DQ.CANCEL key id [id ...]`

use super::{id, Access, Arg, Call, Command, Error, Event, Handler, Keys, Row, Session};
use dq_queue::id::Id;
use dq_queue::{Effect, Queue};

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
    let session = Session::begin(call)?;
    let Session { ctx, now, .. } = session;
    call.args.clone().rest().try_for_each(|word| id(word).map(drop))?;
    let named = call.args.remaining();
    let cancel = |queue: &mut Queue| {
        let (mut gone, mut forgotten, mut states) = (Vec::new(), Vec::new(), Vec::with_capacity(named));
        for text in call.args.rest() {
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
        (!gone.is_empty() || !forgotten.is_empty()).then_some((states, move || Effect::Cancel(gone, forgotten)))
    };
    session.change(cancel, |states| {
        let states = states.unwrap_or_else(|| vec![None; named]);
        ctx.array(named);
        states.into_iter().for_each(|state| ctx.bulk_or_null(state.map(str::as_bytes)));
        &[Event::Cancel]
    })
}
