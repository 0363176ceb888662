//! Forwards the messages of a queue that are due, and those that are dead: the timer writes them to a stream, a list, a
//! channel or another queue.
//!
//! A batch takes three steps. The queue says which messages are next; the server writes them to the target, as it would
//! for a client; and the queue removes those that were written. The effect of the removal is replicated in the third
//! step only, so a message that the target refuses is unchanged. The server puts all that one run of the timer
//! replicates into one transaction, so the AOF and the replicas have both the removal and the write, or neither. While
//! the server writes, no key is open, because other modules may run inside the call.
//!
//! This runs on the server that decides about the queue, and never while writes are paused; see [`super::advance`].

use super::event::Event;
use super::floor::raise_floor;
use super::forward_dead::{self, Moving};
use super::queue_value::QueueValue;
use super::session::Session;
use super::{admission, gauges, slot, waiting};
use crate::module_api::call::Word;
use crate::module_api::ctx::Name;
use crate::module_api::key::Content;
use crate::module_api::log::{log, Level};
use crate::schedule::timer::Budget;
use dq_queue::forward::{Forward, ListEnd, Register, Source};
use dq_queue::id::{IdBuffer, Sequence};
use dq_queue::time::UnixMs;
use dq_queue::{Death, Effect, Headers, Health};

/// The number of messages between two checks of the time budget if one command writes them all: about 200 µs of work.
const BATCH: usize = 64;
/// The same if each is written by a command or a push of its own.
const BATCH_SINGLY: usize = 16;
/// A batch is closed once its payloads have this many bytes, which take about as long to write.
const BATCH_BYTES: usize = 64 * 1024;

/// Forwards these messages of the queue at `name`, until the budget for writes is spent. Returns whether it lasted.
/// Re-arms the timer for the queue. No key may be open.
pub fn run(session: Session<'_>, source: Source, budget: &Budget) -> bool {
    let Session { ctx, name, now, .. } = session;
    let mut run = Run { session, source, target: None, forwarded: false, ends_batch: false, answers: false };
    let mut lasted = true;
    while let Some(batch) = run.choose() {
        let (written, refused) = run.write(&batch);
        run.record(&batch, written, refused.as_deref());
        lasted = budget.lasts_for_writes();
        if refused.is_some() || !lasted {
            break;
        }
    }
    run.with_queue(|held| {
        // What follows a batch has an id of its own.
        raise_floor(held.queue.last_given());
        held.queue.note_rate_limit(now);
        session.arm(held);
    });
    if run.answers {
        ctx.signal_ready(name);
    }
    if run.forwarded {
        ctx.signal_modified(name);
        let event = match source {
            Source::Due => Event::Forward,
            Source::Dead => Event::DeadForward,
        };
        ctx.notify(event.name(), name);
        if run.ends_batch {
            ctx.notify(Event::Batch.name(), name);
        }
    }
    lasted
}

/// The forwarding of one queue in one run of the timer.
struct Run<'a> {
    session: Session<'a>,
    source: Source,
    /// The target, once it is known that it may be written to.
    target: Option<Target>,
    /// Whether anything was forwarded.
    forwarded: bool,
    /// Whether a batch has ended.
    ends_batch: bool,
    /// Whether a client waits for one of the messages that were forwarded (`DQ.AWAIT`).
    answers: bool,
}

/// The next messages.
struct Batch {
    to: Forward,
    messages: Vec<Outgoing>,
}

/// A message as the arguments of a call.
struct Outgoing {
    sequence: Sequence,
    /// The payload, except for a queue.
    payload: Word,
    /// For a stream: the id, the due time, and the other fields with their values, which follow these.
    fields: Option<(Word, Word, Vec<Word>)>,
    /// For a queue: the whole message.
    moving: Option<Moving>,
}

impl Run<'_> {
    /// Calls `change` with the queue, if it still exists.
    fn with_queue<R>(&self, change: impl FnOnce(&mut QueueValue) -> R) -> Option<R> {
        let mut key = self.session.open_untouched();
        match key.content() {
            Content::Holds(held) => Some(change(held)),
            Content::Missing(_) | Content::Refused(_) => None,
        }
    }

    /// The next messages to forward; `None` if there are none.
    fn choose(&self) -> Option<Batch> {
        let batch = self.with_queue(|held| {
            let to = held.queue.target(self.source)?.clone();
            let (is_stream, is_queue) = (matches!(to, Forward::Stream { .. }), matches!(to, Forward::Queue { .. }));
            let most = if matches!(to, Forward::List { .. }) { BATCH } else { BATCH_SINGLY };
            let (mut messages, mut bytes, mut buffer) = (Vec::with_capacity(most), 0, IdBuffer::new());
            held.queue.next_to_forward(self.session.now, self.source, most, |next| {
                bytes += next.payload.len();
                let fields = is_stream.then(|| {
                    let id = buffer.id(next.sequence, next.name);
                    bytes += next.headers.map_or(0, |headers| headers.block().len());
                    let mut fields = next.death.map_or_else(Vec::new, death_fields);
                    fields.extend(next.headers.into_iter().flat_map(header_fields));
                    (Word::new(buffer.text(id)), Word::new(next.due.as_ms().to_string().as_bytes()), fields)
                });
                let moving = is_queue.then(|| Moving::new(self.session.name, &next));
                let payload: &[u8] = if is_queue { &[] } else { next.payload };
                messages.push(Outgoing { sequence: next.sequence, payload: Word::new(payload), fields, moving });
                bytes < BATCH_BYTES
            });
            Some(Batch { to, messages })
        });
        batch.flatten().filter(|batch| !batch.messages.is_empty())
    }

    /// Writes the messages of a batch to their target. Returns how many were written, and why the next one was not.
    fn write(&mut self, batch: &Batch) -> (usize, Option<String>) {
        if self.target.is_none() {
            match Target::prepare(&self.session, &batch.to) {
                Ok(target) => self.target = Some(target),
                Err(refused) => return (0, Some(refused)),
            }
        }
        self.target.as_ref().map_or((0, None), |target| target.write(&self.session, &batch.messages))
    }

    /// Removes the messages that were written, and records the server's answer.
    fn record(&mut self, batch: &Batch, written: usize, refused: Option<&str>) {
        let (session, source, now) = (self.session, self.source, self.session.now);
        let written: Vec<Sequence> = batch.messages.iter().take(written).map(|message| message.sequence).collect();
        self.forwarded |= !written.is_empty();
        let (mut answers, mut ends_batch) = (false, false);
        let health = self.with_queue(|held| {
            if !written.is_empty() {
                let effect = match source {
                    Source::Due => forwarded_due(held, now, &written),
                    Source::Dead => Effect::DeadForward(held.queue.forwarded_dead(now, &written)),
                };
                answers |= waiting::note(&session, &effect);
                session.replicate(held, effect);
            }
            let health = match refused {
                None => held.queue.forwarding_works(source),
                Some(refused) => held.queue.forwarding_failed(now, source, refused),
            };
            // Dead messages that their target refuses are subject to the limits.
            session.keep_limits(held);
            ends_batch = session.take_batch_end(held);
            health
        });
        self.answers |= answers || ends_batch;
        self.ends_batch |= ends_batch;
        log_health(session.name, source, &batch.to, health.unwrap_or(Health::Same), refused);
    }
}

/// Removes messages that were forwarded when they were due.
fn forwarded_due(held: &mut QueueValue, now: UnixMs, written: &[Sequence]) -> Effect<'static> {
    let forwarded = held.queue.forwarded(now, written, gauges::count_lateness);
    // A schedule that was declared during a run gets a new id when the run ends.
    raise_floor(held.queue.last_given());
    let ends = held.queue.take_ends();
    let effect = Effect::Forward(forwarded);
    if ends.is_empty() {
        effect
    } else {
        effect.with_ends(ends).0
    }
}

/// The fields of a stream for how a message died.
fn death_fields(death: Death<'_>) -> Vec<Word> {
    let Death { reason, error, attempts, died } = death;
    let (attempts, died) = (attempts.to_string(), died.as_ms().to_string());
    let fields: [(&[u8], &[u8]); 4] = [
        (b"reason", reason.as_str().as_bytes()),
        (b"error", error.unwrap_or_default()),
        (b"attempt", attempts.as_bytes()),
        (b"died", died.as_bytes()),
    ];
    fields.into_iter().flat_map(|(name, value)| [Word::new(name), Word::new(value)]).collect()
}

/// The fields of a stream for headers: for each its name after `header:`, and its value.
fn header_fields(headers: Headers<'_>) -> impl Iterator<Item = Word> + '_ {
    headers.iter().flat_map(|(name, value)| [Word::new(&[b"header:", name].concat()), Word::new(value)])
}

/// Logs a change of the answer of the target's server.
fn log_health(name: Name<'_>, source: Source, to: &Forward, health: Health, refused: Option<&str>) {
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (queue, kind, target) = (shown(name.bytes()), to.kind(), shown(to.target()));
    let what = match source {
        Source::Due => "",
        Source::Dead => " dead messages",
    };
    match health {
        Health::Same => {}
        Health::Recovered => log(Level::Notice, &format!("queue {queue} forwards{what} to {kind} {target} again")),
        Health::NewError => {
            let refused = refused.unwrap_or_default();
            let text =
                format!("queue {queue} cannot forward{what} to {kind} {target} and tries again each second: {refused}");
            log(Level::Warning, &text);
        }
    }
}

/// A target with the arguments that are the same for all messages.
enum Target {
    Stream { before: Vec<Word>, id: Word, payload: Word, due: Word },
    List { key: Word, is_left: bool },
    Channel { name: Word },
    Queue { key: Box<[u8]> },
}

impl Target {
    /// Makes the checks that are needed once per run, and adds the member to the set. Returns the error if the server
    /// refuses it.
    fn prepare(session: &Session<'_>, to: &Forward) -> Result<Target, String> {
        let (ctx, queue) = (session.ctx, session.name);
        if ctx.flags().cluster() && to.keys().any(|key| slot::hash_slot(key) != slot::hash_slot(queue.bytes())) {
            // The server itself compares a key with the slots of this node only.
            return Err("CROSSSLOT Keys in request don't hash to the same slot".to_owned());
        }
        match to {
            Forward::Stream { key, trim } => {
                let mut before = vec![Word::new(key)];
                if let Some(trim) = trim {
                    before.extend([b"MAXLEN", &b"~"[..], trim.to_string().as_bytes()].map(Word::new));
                }
                before.push(Word::new(b"*"));
                Ok(Target::Stream {
                    before,
                    id: Word::new(b"id"),
                    payload: Word::new(b"payload"),
                    due: Word::new(b"due"),
                })
            }
            Forward::List { key, end, register } => {
                // The set comes first, as in a consumer's own client: consumers ignore a list that the set does not
                // name.
                if let Some(Register { set, member }) = register {
                    ctx.call_write(c"SADD", &[Word::new(set), Word::new(member)])?;
                }
                Ok(Target::List { key: Word::new(key), is_left: ListEnd::is_left(*end) })
            }
            Forward::Queue { key } if **key == *queue.bytes() => Err("ERR a queue cannot forward to itself".to_owned()),
            Forward::Queue { .. } if ctx.flags().out_of_memory() => Err(forward_dead::OUT_OF_MEMORY.to_owned()),
            // The push does not pass through the server, so the server is asked about the key that it writes, which may
            // have left this node before the queue. If it accepts that, it accepts the removal as well.
            Forward::Queue { key } => match ctx.with_name(key, |name| admission::refusal(ctx, name)) {
                Some(refused) => Err(refused),
                None => Ok(Target::Queue { key: key.clone() }),
            },
            Forward::Channel { name } => match admission::refusal(ctx, queue) {
                // Publishing is not a write, but removing the published messages is.
                Some(refused) => Err(refused),
                None => Ok(Target::Channel { name: Word::new(name) }),
            },
        }
    }

    /// Writes messages. Returns how many were written, and why the next one was not.
    fn write(&self, session: &Session<'_>, messages: &[Outgoing]) -> (usize, Option<String>) {
        let each = |write: &dyn Fn(&Outgoing) -> Result<(), String>| {
            let refused = messages.iter().enumerate().find_map(|(nth, message)| Some((nth, write(message).err()?)));
            refused.map_or((messages.len(), None), |(written, error)| (written, Some(error)))
        };
        let ctx = session.ctx;
        match self {
            Target::Stream { before, id, payload, due } => each(&|message| {
                let fields = message.fields.iter();
                let words = fields.flat_map(|(its_id, its_due, headers)| {
                    [id, its_id, payload, &message.payload, due, its_due].into_iter().chain(headers)
                });
                ctx.call_write(c"XADD", before.iter().chain(words))
            }),
            Target::List { key, is_left } => {
                let command = if *is_left { c"LPUSH" } else { c"RPUSH" };
                let payloads = messages.iter().map(|message| &message.payload);
                match ctx.call_write(command, std::iter::once(key).chain(payloads)) {
                    Ok(()) => (messages.len(), None),
                    Err(refused) => (0, Some(refused)),
                }
            }
            Target::Queue { key } => each(&|message| {
                message.moving.as_ref().map_or(Ok(()), |moving| forward_dead::push(session, key, moving))
            }),
            Target::Channel { name } => each(&|message| ctx.call_write(c"PUBLISH", [name, &message.payload])),
        }
    }
}
