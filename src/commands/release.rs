//! `DQ.RELEASE key consumer [COUNT n] [NOCOUNT]`

use super::{options, word, Access, Arg, Call, Command, Death, Error, Event, Handler, Keys, Options, Row, Session};
use dq_queue::{Effect, Verdict};

pub struct Release;

impl Command for Release {
    const ROW: Row = Row {
        name: c"DQ.RELEASE",
        flags: c"write",
        arity: -3,
        keys: Keys::First(Access::UPDATE),
        summary: c"Takes from a consumer that is gone the messages that it holds, as if their leases had ended. \
                   Returns how many",
        complexity: c"O(M * log N) where M is the number of messages released and N the number of messages in the \
                      queue",
        args: &[Arg::key(c"key"), Arg::string(c"consumer")],
        options: &[ReleaseOption::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = release;
}

options! {
    enum ReleaseOption {
        Count => Arg::token_int(c"COUNT", c"count"),
        NoCount => Arg::token(c"nocount", c"NOCOUNT"),
    }
}

fn release(call: &mut Call<'_>) -> Result<(), Error> {
    let session = Session::begin(call)?;
    let consumer = word(call);
    let (count, verdict) = parse(call)?;
    session.change(
        |queue| {
            let released = queue.release(session.now, consumer, count, verdict);
            let effect = move || Effect::Release { ended: released.ended, given_back: released.given_back };
            (released.count > 0).then_some(((released.count, released.died), effect))
        },
        |released| {
            let (count, died) = released.unzip();
            session.reply_count(count, Event::after_release(Death::if_any(died == Some(true))))
        },
    )
}

/// Parses how many messages are released at most, and how these deliveries count.
pub(super) fn parse(call: &mut Call<'_>) -> Result<(Option<usize>, Verdict), Error> {
    let (mut count, mut verdict) = (None, Verdict::Failed);
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next()? {
        match option {
            ReleaseOption::Count => count = Some(options.count()?),
            ReleaseOption::NoCount => verdict = Verdict::NotCounted,
        }
    }
    Ok((count, verdict))
}
