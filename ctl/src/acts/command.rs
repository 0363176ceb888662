//! The one place in which an act becomes a command of the server.

use crate::cli::{Act, MessageArgs};
use crate::text::{millis, unix_ms};
use dq_client::{cmd, Cmd, Resend, State};

/// The messages that one command changes.
#[derive(Clone, Copy)]
pub enum Part<'a> {
    /// None of many: the queue itself, or all that the act names.
    Whole,
    Count(u64),
    Ids(&'a [&'a [u8]]),
}

/// Deletes the key if it is a queue: in one step, so that no other key of this name is lost.
const DELETE: &str = "if redis.call('DQ.INFO', KEYS[1]) then return redis.call('UNLINK', KEYS[1]) end return 0";
/// Sends a letter back to the queue in which it died, so that it is in exactly one of the two, whatever fails.
const SEND_BACK: &str = include_str!("send_back.lua");

impl Act {
    pub fn command(&self, queue: &[u8], part: Part) -> Cmd {
        let ids: &[&[u8]] = if let Part::Ids(ids) = part { ids } else { &[] };
        match self {
            Act::Push(args) => named("DQ.PUSH", queue)
                .arg(args.payload.as_ref().map_or(&[][..], |payload| &payload.0))
                .option("ID", args.id.as_ref())
                .number("DELAY", args.delay.map(millis))
                .number("AT", args.at.map(unix_ms))
                .flag("REPLACE", args.replace)
                .number("MAXWAIT", args.max_wait.map(millis))
                .flag("LATER", args.later)
                .number("RETAIN", args.retain.map(millis))
                .option("BATCH", args.batch.as_ref())
                .message(&args.message),
            Act::Schedule(args) => named("DQ.SCHEDULE", queue)
                .args(&args.id)
                .arg(args.payload.as_ref().map_or(&[][..], |payload| &payload.0))
                .number("EVERY", args.every.map(millis))
                .number("OFFSET", args.offset.map(millis))
                .option("CRON", args.cron.as_ref())
                .option("TZ", args.tz.as_ref())
                .number("AT", args.at.map(unix_ms))
                .number("UNTIL", args.until.map(unix_ms))
                .number("TIMES", args.times)
                .message(&args.message),
            Act::Batch(args) => match (named("DQ.BATCH", queue).args(&args.name), &args.then) {
                (command, None) => command.arg("CANCEL"),
                (command, Some(then)) => {
                    let command = command.arg("THEN").arg(&then.0).option("ID", args.id.as_ref());
                    command.number("DELAY", args.delay.map(millis)).message(&args.message)
                }
            },
            Act::Release(args) => {
                named("DQ.RELEASE", queue).arg(&args.consumer).count(part).flag("NOCOUNT", args.no_count)
            }
            Act::Complete(args) => named("DQ.COMPLETE", queue)
                .args(ids)
                .option("RESULT", args.result.as_ref().map(|result| &result.0))
                .number("RETAIN", args.retain.map(millis)),
            Act::Cancel(_) => named("DQ.CANCEL", queue).args(ids),
            Act::Reschedule(args) => named("DQ.RESCHEDULE", queue)
                .args(ids)
                .number("DELAY", args.delay.map(millis))
                .number("AT", args.at.map(unix_ms))
                .number("PRIORITY", args.priority),
            Act::Redrive(args) if args.letters => {
                let script = Words(cmd("EVAL")).arg(SEND_BACK).arg("1").arg(queue).args(ids);
                script.arg(args.delay.map_or(0, millis).to_string())
            }
            Act::Redrive(args) => {
                let command = named("DQ.REDRIVE", queue).count(part);
                let command = if ids.is_empty() { command } else { command.number("IDS", Some(ids.len())).args(ids) };
                command.number("DELAY", args.delay.map(millis))
            }
            Act::Bury(args) => named("DQ.BURY", queue).args(ids).option("ERROR", args.error.as_ref()),
            Act::Nack(args) => named("DQ.NACK", queue)
                .args(ids)
                .number("DELAY", args.delay.map(millis))
                .option("ERROR", args.error.as_ref())
                .flag("DEAD", args.dead)
                .flag("NOCOUNT", args.no_count),
            Act::Promote(_) if ids.is_empty() => named("DQ.PROMOTE", queue).count(part),
            Act::Promote(_) => named("DQ.RESCHEDULE", queue).args(ids).number("DELAY", Some(0)),
            Act::Create(args) => named("DQ.CREATE", queue).args(&args.settings.0),
            Act::Alter(args) => named("DQ.ALTER", queue).flag("MKQUEUE", args.create).args(&args.settings.0),
            Act::Purge(args) => {
                let states = State::ALL.into_iter().filter(|one| args.all || args.states.contains(one));
                named("DQ.PURGE", queue)
                    .args(states.map(State::as_str))
                    .count(part)
                    .option("GROUP", args.group.as_ref())
                    .number("OLDER", args.older.map(millis))
                    .flag("RECURRING", args.recurring)
            }
            Act::Delete(_) => Words(cmd("EVAL")).arg(DELETE).arg("1").arg(queue),
            Act::Pause(args) => {
                let command = named("DQ.PAUSE", queue).part(args.flow.word(), args.group.as_ref());
                command.number("FOR", args.time.map(millis))
            }
            Act::Resume(args) => named("DQ.RESUME", queue).part(args.flow.word(), args.group.as_ref()),
        }
        .0
    }

    /// Whether the command can be repeated if it is unknown whether it was executed.
    pub fn resend(&self) -> Resend {
        match self {
            Act::Create(_) | Act::Alter(_) | Act::Pause(_) | Act::Resume(_) | Act::Bury(_) => Resend::Harmless,
            Act::Push(args) if args.id.is_some() && !args.replace => Resend::Harmless,
            _ => Resend::Never,
        }
    }

    /// Whether each message needs a command of its own.
    pub fn is_one_by_one(&self) -> bool {
        match self {
            Act::Redrive(args) => args.letters,
            Act::Cancel(_) => false,
            _ => true,
        }
    }
}

/// A command that is being written.
struct Words(Cmd);

fn named(name: &str, queue: &[u8]) -> Words {
    Words(cmd(name)).arg(queue)
}

impl Words {
    fn arg(mut self, word: impl AsRef<[u8]>) -> Words {
        self.0.arg(word.as_ref());
        self
    }

    fn args(self, words: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Words {
        words.into_iter().fold(self, Words::arg)
    }

    fn option(self, name: &str, value: Option<impl AsRef<[u8]>>) -> Words {
        value.into_iter().fold(self, |command, value| command.arg(name).arg(value))
    }

    fn number(self, name: &str, value: Option<impl ToString>) -> Words {
        self.option(name, value.map(|value| value.to_string()))
    }

    fn flag(self, name: &str, is_set: bool) -> Words {
        self.args(is_set.then_some(name))
    }

    /// What a message and the runs of a schedule have in common.
    fn message(self, args: &MessageArgs) -> Words {
        let headers = args.headers.iter().flat_map(|(name, value)| [name, value]);
        self.number("PRIORITY", Some(args.priority).filter(|priority| *priority != 0))
            .number("RETRIES", args.retries)
            .number("LEASE", args.lease.map(millis))
            .number("TTL", args.ttl.map(millis))
            .option("GROUP", args.group.as_ref())
            .number("HEADERS", Some(args.headers.len()).filter(|number| *number > 0))
            .args(headers)
    }

    fn count(self, part: Part) -> Words {
        match part {
            Part::Count(count) => self.number("COUNT", Some(count)),
            Part::Whole | Part::Ids(_) => self,
        }
    }

    /// What is suspended or resumed of a queue.
    fn part(self, flow: &str, group: Option<&String>) -> Words {
        self.args(group.is_none().then_some(flow)).option("GROUP", group)
    }
}
