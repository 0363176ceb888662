//! The setting `FORWARD` as an option of `DQ.CREATE` and `DQ.ALTER`, and the keys that it names.

use super::error::Error;
use super::options::{options, Options};
use super::settings::Setting;
use crate::module_api::ctx::Name;
use crate::module_api::register::{Access, Arg, Found, Keys};
use dq_queue::forward::{Forward, ListEnd, Register};

options! {
    /// The settings that are not numbers, and those that are.
    pub enum QueueSetting {
        Forward => Arg::oneof(c"forward", &[STREAM, LIST, CHANNEL, NONE]).after(c"FORWARD"),
        ..Setting,
    }
}

const STREAM: Arg = Arg::block(c"stream", &[Arg::other_key(c"target", 1), TRIM.optional()]).after(c"STREAM");
const TRIM: Arg = Arg::token_int(c"TRIM", c"entries");
const LIST: Arg =
    Arg::block(c"list", &[Arg::other_key(c"target", 2), END.optional(), REGISTER.optional()]).after(c"LIST");
const END: Arg = Arg::oneof(c"end", &[Arg::token(c"left", c"LEFT"), Arg::token(c"right", c"RIGHT")]);
const REGISTER: Arg = Arg::block(c"register", &[Arg::other_key(c"set", 3), Arg::string(c"member")]).after(c"REGISTER");
const CHANNEL: Arg = Arg::token_string(c"CHANNEL", c"name");
const NONE: Arg = Arg::token(c"none", c"NONE");

/// The keys of a command that takes these options, with this access to the queue. The arguments above refer to the
/// specs by their numbers in this order.
pub const fn keys(queue: Access) -> Keys {
    Keys::FirstAnd {
        first: queue,
        after: &[(c"STREAM", Access::UPDATE), (c"LIST", INSERT), (c"REGISTER", INSERT)],
        find,
    }
}

const INSERT: Access = Access::INSERT;

/// Finds the keys and the channel that `FORWARD` names among the words of a command.
fn find(words: &[Name<'_>]) -> Vec<Found> {
    let is = |nth: usize, token: &[u8]| words.get(nth).is_some_and(|word| word.bytes().eq_ignore_ascii_case(token));
    // The values of all other options are numbers, so the first such word is the option.
    let Some(option) = (2..words.len()).find(|nth| is(*nth, b"FORWARD")) else { return Vec::new() };
    let (kind, target) = (option + 1, option + 2);
    let found = if is(kind, b"STREAM") {
        vec![Found::Key(target, Access::UPDATE)]
    } else if is(kind, b"LIST") {
        let end = target + 1;
        let register = if is(end, b"LEFT") || is(end, b"RIGHT") { end + 1 } else { end };
        let set = is(register, b"REGISTER").then_some(Found::Key(register + 1, INSERT));
        [Some(Found::Key(target, INSERT)), set].into_iter().flatten().collect()
    } else if is(kind, b"CHANNEL") {
        vec![Found::Channel(target)]
    } else {
        Vec::new()
    };
    let is_there = |found: &Found| found.position() < words.len();
    found.into_iter().filter(is_there).collect()
}

/// Fails if a queue would forward to itself.
pub fn refuse_itself(queue: Name<'_>, forward: Option<&Forward>) -> Result<(), Error> {
    let names_itself = forward.is_some_and(|forward| forward.keys().any(|key| key == queue.bytes()));
    if names_itself {
        Err(Error::ForwardsToItself)
    } else {
        Ok(())
    }
}

/// Reads the value of `FORWARD`; `NONE` is `None`.
pub fn parse(options: &mut Options<'_, '_>) -> Result<Option<Forward>, Error> {
    let kind = options.rest().next().ok_or(Error::NoTarget)?;
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
        let register = if options.accept(b"REGISTER") { Some(register(options)?) } else { None };
        Forward::List { key, end, register }
    } else if is(b"CHANNEL") {
        Forward::Channel { name: options.value_of("CHANNEL")?.into() }
    } else if is(b"NONE") {
        return Ok(None);
    } else {
        return Err(Error::NoTarget);
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

    fn found(words: &str) -> Vec<Found> {
        let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
        with_words(&words, |_, args| find(args.all()))
    }

    #[test]
    fn keys_and_channels_are_found_where_the_parser_reads_them() {
        let (stream, list) = (Access::UPDATE, INSERT);
        assert_eq!(found("q LEASE 5 forward stream s TRIM 5"), [Found::Key(6, stream)]);
        assert_eq!(found("q FORWARD LIST LIST"), [Found::Key(4, list)]);
        assert_eq!(found("q FORWARD LIST l LEFT REGISTER set m RETRIES 1"), [Found::Key(4, list), Found::Key(7, list)]);
        assert_eq!(found("q FORWARD LIST REGISTER register s m"), [Found::Key(4, list), Found::Key(6, list)]);
        assert_eq!(found("q FORWARD CHANNEL c"), [Found::Channel(4)]);
        assert!(["q FORWARD NONE", "q LEASE 5", "FORWARD STREAM s", "q FORWARD STREAM", "q FORWARD"]
            .iter()
            .all(|words| found(words).is_empty()));
    }
}
