//! The settings `FORWARD` and `DEADFORWARD` as options of `DQ.CREATE` and `DQ.ALTER`, and the keys that they name.

use super::settings::Setting;
use super::{options, Access, Arg, Ctx, Error, Keys, Options};
use crate::module_api::call::Word;
use crate::module_api::ctx::Name;
use crate::module_api::register::KeyOrChannel;
use dq_queue::forward::{Forward, ListEnd, Register, Source, Targets};
use dq_queue::time::UnixMs;
use dq_queue::Queue;

options! {
    /// The settings that are not numbers, and those that are.
    pub enum QueueSetting {
        Forward => Arg::oneof(c"forward", &[STREAM, LIST, CHANNEL, NONE]).after(c"FORWARD"),
        DeadForward => Arg::oneof(c"deadforward", &[STREAM, DEAD_LIST, QUEUE, NONE]).after(c"DEADFORWARD"),
        ..Setting,
    }
}

const STREAM: Arg = Arg::block(c"stream", &[Arg::other_key(c"target", 1), TRIM.optional()]).after(c"STREAM");
const TRIM: Arg = Arg::token_int(c"TRIM", c"entries");
const LIST: Arg =
    Arg::block(c"list", &[Arg::other_key(c"target", 2), END.optional(), REGISTER.optional()]).after(c"LIST");
const DEAD_LIST: Arg = Arg::block(c"list", &[Arg::other_key(c"target", 2), END.optional()]).after(c"LIST");
const QUEUE: Arg = Arg::other_key(c"queue", 4).after(c"QUEUE");
const END: Arg = Arg::oneof(c"end", &[Arg::token(c"left", c"LEFT"), Arg::token(c"right", c"RIGHT")]);
const REGISTER: Arg = Arg::block(c"register", &[Arg::other_key(c"set", 3), Arg::string(c"member")]).after(c"REGISTER");
const CHANNEL: Arg = Arg::token_string(c"CHANNEL", c"name");
const NONE: Arg = Arg::token(c"none", c"NONE");

/// The keys of a command that takes these options, with this access to the queue. Who sets where messages go needs the
/// right to read them as well. The arguments above refer to the
/// specs by their numbers in this order.
pub const fn keys(queue: Access) -> Keys {
    Keys::FirstAnd {
        first: queue,
        after: &[(c"STREAM", Access::UPDATE), (c"LIST", INSERT), (c"REGISTER", INSERT), (c"QUEUE", INSERT)],
        find,
    }
}

const INSERT: Access = Access::INSERT;

/// Finds the keys and the channel that `FORWARD` and `DEADFORWARD` name among the words of a command.
fn find(words: &[Name<'_>]) -> Vec<KeyOrChannel> {
    let is = |nth: usize, token: &[u8]| words.get(nth).is_some_and(|word| word.bytes().eq_ignore_ascii_case(token));
    let (mut found, mut nth) = (Vec::new(), 2);
    while nth < words.len() {
        // The values of all other options are numbers and words of their own, so such a word is the option.
        let (is_dead, kind, target) = (is(nth, b"DEADFORWARD"), nth + 1, nth + 2);
        if !is_dead && !is(nth, b"FORWARD") {
            nth += 1;
            continue;
        }
        nth = target;
        if is(kind, b"STREAM") {
            found.push(KeyOrChannel::Key(target, Access::UPDATE));
            nth = target + 1;
        } else if is(kind, b"LIST") {
            found.push(KeyOrChannel::Key(target, INSERT));
            let end = target + 1;
            nth = if is(end, b"LEFT") || is(end, b"RIGHT") { end + 1 } else { end };
            if !is_dead && is(nth, b"REGISTER") {
                found.push(KeyOrChannel::Key(nth + 1, INSERT));
                nth += 3;
            }
        } else if is_dead && is(kind, b"QUEUE") {
            found.push(KeyOrChannel::Key(target, INSERT));
            nth = target + 1;
        } else if !is_dead && is(kind, b"CHANNEL") {
            found.push(KeyOrChannel::Channel(target));
            nth = target + 1;
        }
    }
    let is_there = |found: &KeyOrChannel| found.position() < words.len();
    found.into_iter().filter(is_there).collect()
}

/// Fails if a queue is not on this node of a cluster any more because its slot is moving. Otherwise the command would
/// create a second one. Redis 8 does not tell clients itself where to go, if their command may name a channel. No key
/// may be open.
pub fn refuse_moved(ctx: Ctx, queue: Name<'_>) -> Result<(), Error> {
    let is_gone = ctx.flags().cluster() && ctx.call_exists(&Word::new(queue.bytes())).is_err();
    (!is_gone).then_some(()).ok_or(Error::Moved)
}

/// Fails if a queue would forward to itself.
pub fn refuse_itself(queue: Name<'_>, wanted: &WantedTargets) -> Result<(), Error> {
    let mut targets = [&wanted.due, &wanted.dead].into_iter().flatten().flatten();
    let is_among = targets.any(|to| to.keys().any(|key| key == queue.bytes()));
    (!is_among).then_some(()).ok_or(Error::ForwardsToItself)
}

/// The target of `FORWARD` and that of `DEADFORWARD`, if a command names them; `Some(None)` is `NONE`.
#[derive(Default)]
pub struct WantedTargets {
    due: Option<Option<Forward>>,
    dead: Option<Option<Forward>>,
}

impl WantedTargets {
    /// Reads the value of one of the options.
    pub fn read(&mut self, source: Source, options: &mut Options<'_, '_>) -> Result<(), Error> {
        let to = Some(parse(options, source)?);
        match source {
            Source::Due => self.due = to,
            Source::Dead => self.dead = to,
        }
        Ok(())
    }

    /// The targets of a queue that had `before`.
    pub fn applied_to(self, before: Targets) -> Targets {
        let changed = |to: Option<Option<Forward>>, before| to.map_or(before, |to| to.map(Box::new));
        Targets { due: changed(self.due, before.due), dead: changed(self.dead, before.dead) }
    }
}

/// Makes a queue forward to these targets.
pub fn set(queue: &mut Queue, now: UnixMs, targets: &Targets) {
    Source::ALL.into_iter().for_each(|source| queue.forward_to(now, source, targets.target(source).cloned()));
}

/// Reads the value of `FORWARD` or `DEADFORWARD`; `NONE` is `None`.
fn parse(options: &mut Options<'_, '_>, source: Source) -> Result<Option<Forward>, Error> {
    let kind = options.rest().next().ok_or(Error::NoTarget(source))?;
    let is = |token: &[u8]| kind.eq_ignore_ascii_case(token);
    Ok(Some(if is(b"STREAM") {
        let key = options.value_of("STREAM")?.into();
        let trim = if options.accept(b"TRIM") { Some(options.stream_length()?) } else { None };
        Forward::Stream { key, trim }
    } else if is(b"LIST") {
        let key = options.value_of("LIST")?.into();
        let end = if options.accept(b"LEFT") {
            ListEnd::Left
        } else if options.accept(b"RIGHT") {
            ListEnd::Right
        } else {
            ListEnd::Default
        };
        let has_register = source == Source::Due && options.accept(b"REGISTER");
        let register = if has_register { Some(register(options)?) } else { None };
        Forward::List { key, end, register }
    } else if source == Source::Due && is(b"CHANNEL") {
        Forward::Channel { name: options.value_of("CHANNEL")?.into() }
    } else if source == Source::Dead && is(b"QUEUE") {
        Forward::Queue { key: options.value_of("QUEUE")?.into() }
    } else if is(b"NONE") {
        return Ok(None);
    } else {
        return Err(Error::NoTarget(source));
    }))
}

fn register(options: &mut Options<'_, '_>) -> Result<Register, Error> {
    let missing = || Error::NoValues("REGISTER".to_owned(), "set and member".to_owned());
    let set = options.rest().next().ok_or_else(missing)?.into();
    let member = options.rest().next().ok_or_else(missing)?.into();
    Ok(Register { set, member })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::module_api::args::with_words;

    fn found(words: &str) -> Vec<KeyOrChannel> {
        let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
        with_words(&words, |_, args| find(args.all()))
    }

    #[test]
    fn keys_and_channels_are_found_where_the_parser_reads_them() {
        let (stream, list) = (Access::UPDATE, INSERT);
        assert_eq!(found("q LEASE 5 forward stream s TRIM 5"), [KeyOrChannel::Key(6, stream)]);
        assert_eq!(found("q FORWARD LIST LIST"), [KeyOrChannel::Key(4, list)]);
        assert_eq!(
            found("q FORWARD LIST l LEFT REGISTER set m RETRIES 1"),
            [KeyOrChannel::Key(4, list), KeyOrChannel::Key(7, list)]
        );
        assert_eq!(
            found("q FORWARD LIST REGISTER register s m"),
            [KeyOrChannel::Key(4, list), KeyOrChannel::Key(6, list)]
        );
        assert_eq!(found("q FORWARD CHANNEL c"), [KeyOrChannel::Channel(4)]);
        assert_eq!(
            found("q DEADFORWARD LIST FORWARD RIGHT FORWARD STREAM DEADFORWARD"),
            [KeyOrChannel::Key(4, list), KeyOrChannel::Key(8, stream)]
        );
        assert_eq!(
            found("q FORWARD CHANNEL c DEADFORWARD STREAM s TRIM 5"),
            [KeyOrChannel::Channel(4), KeyOrChannel::Key(7, stream)]
        );
        assert_eq!(found("q DEADFORWARD LIST l REGISTER s m"), [KeyOrChannel::Key(4, list)], "it has no such option");
        assert!(found("q DEADFORWARD CHANNEL c").is_empty() && found("q FORWARD QUEUE r").is_empty());
        assert_eq!(found("q DEADFORWARD QUEUE FORWARD"), [KeyOrChannel::Key(4, INSERT)]);
        assert!(["q FORWARD NONE", "q LEASE 5", "FORWARD STREAM s", "q FORWARD STREAM", "q FORWARD"]
            .iter()
            .all(|words| found(words).is_empty()));
    }
}
