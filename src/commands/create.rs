//! `DQ.CREATE key [settings]`

use super::error::Error;
use super::settings::{Change, KEY_AND_SETTINGS};
use super::{key_name, now, serve};
use crate::queue::{Effect, Queue};
use crate::server::config;
use crate::server::datatype::{self, Held};
use crate::server::key::{OpenKey, Slot};
use crate::server::register::{Access, Call, Command, Keys, Row};
use crate::server::write;

/// The command.
pub struct Create;

impl Command for Create {
    const ROW: Row = Row {
        name: c"DQ.CREATE",
        flags: c"write deny-oom fast",
        arity: -2,
        keys: Keys::First(Access::INSERT),
        acl: c"write fast",
        summary: c"Makes an empty queue, with settings of its own",
        complexity: c"O(1)",
        since: c"0.1.0",
        tips: c"",
        args: KEY_AND_SETTINGS,
    };

    fn run(call: Call<'_>) {
        serve(call, create);
    }
}

fn create(call: &mut Call<'_>) -> Result<(), Error> {
    let ctx = call.ctx;
    let name = key_name(call)?;
    let settings = Change::parse(call)?.of(&config::defaults().settings());
    let now = now(ctx);
    let mut key = OpenKey::open_write(ctx, name, datatype::handle());
    match key.slot() {
        Slot::Missing => {}
        Slot::Holds(_) => return Err(Error::QueueExists),
        Slot::WrongType => return Err(Error::WrongType),
    }
    let held = key.create(Held::new(Queue::new(settings))).map_err(|_| Error::WrongType)?;
    let announcement = write::record(ctx, name, held, now, false, || Effect::Create(settings));
    drop(key);
    ctx.ok();
    write::announce(ctx, name, announcement, c"dq.create");
    Ok(())
}
