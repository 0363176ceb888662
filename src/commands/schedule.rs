//! `DQ.SCHEDULE key id payload EVERY ms [OFFSET ms] | CRON expression [TZ zone] [AT unix-ms] [UNTIL unix-ms] [TIMES n]
//! [PRIORITY n] [RETRIES n] [LEASE ms] [TTL ms] [GROUP name] [HEADERS n name value [name value ...]]`

use super::options::HEADERS;
use super::{options, word, Access, Arg, Call, Command, Error, Event, Handler, Keys, Options, Row, Session};
use crate::host::floor::floor;
use crate::host::open::{change_or_make, Changed};
use dq_queue::cron::{zone_name, BadCron, Cron};
use dq_queue::rule::Rule;
use dq_queue::settings::Unit;
use dq_queue::time::{DurationMs, UnixMs};
use dq_queue::{Effect, HeaderBlock, Queue, Schedule as Wanted, Scheduled};

pub struct Schedule;

impl Command for Schedule {
    const ROW: Row = Row {
        name: c"DQ.SCHEDULE",
        flags: c"write deny-oom",
        // Without the rule, so that the error says what is missing.
        arity: -4,
        keys: Keys::First(Access::UPDATE),
        summary: c"Declares a recurring message. Returns whether it was created, changed or left unchanged",
        complexity: c"O(log N) where N is the number of messages in the queue",
        args: &[Arg::key(c"key"), Arg::string(c"id"), Arg::string(c"payload"), RULE],
        options: &[ScheduleOption::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = schedule;
}

/// The rule. The parser takes its parts in any order among the options.
const RULE: Arg = Arg::oneof(
    c"rule",
    &[
        Arg::block(c"interval", &[Arg::token_int(c"EVERY", c"ms"), Arg::token_int(c"OFFSET", c"offset-ms").optional()]),
        Arg::block(c"cron", &[Arg::token_string(c"CRON", c"expression"), Arg::token_string(c"TZ", c"zone").optional()]),
    ],
);

options! {
    /// The parts of the rule.
    enum RuleOption {
        Every => Arg::token_int(c"EVERY", c"ms"),
        Offset => Arg::token_int(c"OFFSET", c"offset-ms"),
        Cron => Arg::token_string(c"CRON", c"expression"),
        Tz => Arg::token_string(c"TZ", c"zone"),
        ..ScheduleOption,
    }
}

options! {
    enum ScheduleOption {
        At => Arg::token_time(c"AT", c"unix-ms"),
        Until => Arg::token_time(c"UNTIL", c"unix-ms"),
        Times => Arg::token_int(c"TIMES", c"times"),
        Priority => Arg::token_int(c"PRIORITY", c"priority"),
        Retries => Arg::token_int(c"RETRIES", c"retries"),
        Lease => Arg::token_int(c"LEASE", c"lease-ms"),
        Ttl => Arg::token_int(c"TTL", c"ttl-ms"),
        Group => Arg::token_string(c"GROUP", c"group"),
        Headers => HEADERS,
    }
}

fn schedule(call: &mut Call<'_>) -> Result<(), Error> {
    let session = Session::begin(call)?;
    let (mut wanted, headers) = parse(call)?;
    wanted.headers = headers.as_ref().map(HeaderBlock::headers);

    let mut key = session.open_write();
    let schedule = |queue: &mut Queue| queue.schedule(session.now, &mut floor(), &wanted);
    let is_created = |scheduled: &Scheduled<'_>| matches!(scheduled, Scheduled::Created(_));
    let Changed { outcome, held, made_with } = change_or_make(key.content(), schedule, is_created)?;
    let done = match outcome {
        Scheduled::Created(image) => Ok(("created", Some(Effect::Schedule(made_with, image)))),
        Scheduled::Changed(image) => Ok(("changed", Some(Effect::Schedule(None, image)))),
        Scheduled::Deferred(sequence, declared) => Ok(("changed", Some(Effect::Declare(sequence, declared)))),
        Scheduled::Unchanged => Ok(("unchanged", None)),
        Scheduled::AfterEnd => Err(Error::AfterUntil),
        Scheduled::Closed => Err(Error::Closed),
        Scheduled::TooLarge => Err(Error::TooLarge(wanted.payload.len())),
        Scheduled::Full { held } => Err(Error::Full(held)),
        Scheduled::Exhausted => Err(Error::Exhausted),
    };
    let (answer, effect) = match done {
        Ok((answer, effect)) => (Ok(answer), effect),
        Err(refused) => (Err(refused), None),
    };
    let announcement = held.and_then(|held| session.record_if(held, effect.map(|effect| || effect)));
    drop(key);
    session.ctx.bulk(answer?.as_bytes());
    announcement.into_iter().for_each(|announcement| session.announce(announcement, &[Event::Schedule]));
    Ok(())
}

/// Parses the arguments. The headers come apart from the schedule, as for `DQ.PUSH`.
pub(super) fn parse<'a>(call: &mut Call<'a>) -> Result<(Wanted<'a>, Option<HeaderBlock>), Error> {
    let name = options::message_name(word(call))?;
    let payload = word(call);
    let (mut every, mut offset, mut expression, mut zone) = (None, None, None, None);
    let (mut wanted, mut headers) = (Wanted { name, payload, ..Wanted::default() }, None);
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next()? {
        match option {
            RuleOption::Every => every = Some(options.positive_duration()?),
            RuleOption::Offset => offset = Some(options.offset()?),
            RuleOption::Cron => expression = Some(expression_of(options.value()?)?),
            RuleOption::Tz => zone = Some(options.value()?),
            RuleOption::ScheduleOption(option) => read(&mut wanted, &mut headers, option, &mut options)?,
        }
    }
    wanted.series.rule = match (every, expression) {
        (Some(_), Some(_)) => return Err(Error::Exclusive("EVERY", "CRON")),
        (None, _) if offset.is_some() => return Err(Error::Needs("OFFSET", "EVERY")),
        (_, None) if zone.is_some() => return Err(Error::Needs("TZ", "CRON")),
        (Some(every), None) => interval(every, offset.unwrap_or(DurationMs::ZERO))?,
        (None, Some(expression)) => cron(expression, zone)?,
        (None, None) => return Err(Error::NoRule),
    };
    if wanted.first.zip(wanted.series.until).is_some_and(|(first, until)| first > until) {
        return Err(Error::AfterUntil);
    }
    Ok((wanted, headers))
}

/// Reads the value of an option that does not belong to the rule.
fn read<'a>(
    wanted: &mut Wanted<'a>,
    headers: &mut Option<HeaderBlock>,
    option: ScheduleOption,
    options: &mut Options<'a, '_>,
) -> Result<(), Error> {
    match option {
        ScheduleOption::At => wanted.first = Some(options.instant()?),
        ScheduleOption::Until => wanted.series.until = Some(options.instant()?),
        ScheduleOption::Times => wanted.series.times = Some(options.count()? as u64),
        ScheduleOption::Priority => wanted.priority = options.priority()?,
        ScheduleOption::Retries => wanted.retries = Some(options.retries()?),
        ScheduleOption::Lease => wanted.lease = Some(options.positive_duration()?),
        ScheduleOption::Ttl => wanted.ttl = Some(options.duration()?),
        ScheduleOption::Group => wanted.group = Some(options.group()?),
        ScheduleOption::Headers => *headers = Some(options.headers()?),
    }
    Ok(())
}

/// The rule of an interval, whose offset must be less than the interval.
fn interval(every: DurationMs, offset: DurationMs) -> Result<Rule, Error> {
    if offset < every {
        return Ok(Rule::Every { every, offset });
    }
    let max = every.as_ms() as i64 - 1;
    Err(Error::Range { option: "OFFSET".to_owned(), unit: Unit::Ms, min: 0, max })
}

/// Checks a cron expression, before the words after it are read: if the client did not quote its fields, those words
/// are the rest of it.
fn expression_of(expression: &[u8]) -> Result<&[u8], Error> {
    Cron::parse(expression).map_err(Error::BadCron)?;
    Ok(expression)
}

/// The rule of a cron expression that was checked.
fn cron(expression: &[u8], zone: Option<&[u8]>) -> Result<Rule, Error> {
    let zone = zone.unwrap_or(b"UTC");
    let zone = zone_name(zone).ok_or_else(|| Error::UnknownZone(Error::shown(zone)))?;
    let expression = String::from_utf8_lossy(expression).into_owned();
    let rule = Rule::Cron { expression: expression.into(), zone: zone.into() };
    // A rule that fires at all does so again and again, from any instant on.
    rule.next_after(UnixMs::EPOCH).ok_or(Error::BadCron(BadCron::NeverFires))?;
    Ok(rule)
}
