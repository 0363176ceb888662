//! `DQ.POP key [COUNT n] [MIN n LINGER ms] [LEASE ms] [BLOCK ms] [META] [AS name] [NOACK]`

use super::ack::Acks;
use super::get::reply_headers;
use super::{
    options, Access, Announcement, Arg, Call, Command, Ctx, Error, Event, Handler, Keys, Options, QueueValue, Row,
    Session, Wake,
};
use crate::host::floor::floor;
use crate::host::gauges;
use crate::host::listeners;
use crate::host::waiting::barren::Need;
use crate::host::waiting::delivery;
use dq_queue::id::IdBuffer;
use dq_queue::time::{DurationMs, UnixMs};
use dq_queue::{Delivered, Effect, Gather, Gathered, Grant, Lease, Pop as Wanted};

pub struct Pop;

impl Command for Pop {
    const ROW: Row = Row {
        name: c"DQ.POP",
        flags: c"write blocking",
        arity: -2,
        keys: Keys::First(Access::READ.and(Access::UPDATE)),
        summary: c"Delivers the next ready messages of a queue under a lease. Optionally blocks until one is due",
        complexity:
            c"O(M * log N) where M is the number of messages delivered and N the number of messages in the queue",
        tips: c"nondeterministic_output",
        args: &[Arg::key(c"key")],
        options: &[PopOption::ARGS, TakeOption::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = pop;
}

options! {
    /// The options that all commands that deliver have in common.
    pub enum PopOption {
        Count => Arg::token_int(c"COUNT", c"count"),
        Min => Arg::token_int(c"MIN", c"least"),
        Linger => Arg::token_int(c"LINGER", c"linger-ms"),
        Lease => Arg::token_int(c"LEASE", c"lease-ms"),
        Block => Arg::token_int(c"BLOCK", c"block-ms"),
        Meta => Arg::token(c"meta", c"META"),
        As => Arg::token_string(c"AS", c"consumer"),
    }
}

options! {
    /// The options of `DQ.POP` and `DQ.MPOP`.
    pub enum TakeOption {
        NoAck => Arg::token(c"noack", c"NOACK"),
        ..PopOption,
    }
}

/// The request of a consumer, which is kept while its client is blocked.
#[derive(Clone, Debug)]
pub struct Request {
    wanted: Wanted,
    /// What it gathers, if it waits for several messages at once.
    gather: Option<Gather>,
    /// The name of the consumer, if its deliveries are to bear one.
    consumer: Option<Box<[u8]>>,
    /// What the reply contains before the messages.
    pub head: Head,
    /// Whether the reply says more of each message.
    meta: bool,
}

/// What a reply contains before the messages.
#[derive(Clone, Copy, Debug)]
pub enum Head {
    /// Nothing.
    None,
    /// The name of the queue that delivers, if one does (`DQ.MPOP`).
    Queue,
    /// How many messages were acked (`DQ.ACKPOP`).
    Acked(i64),
}

impl delivery::Request for Request {
    fn finds(&self, held: &mut QueueValue, now: UnixMs) -> Gathered {
        // While the queue forwards, a client that blocked before keeps waiting.
        if held.queue.forward().is_some() {
            return Gathered::Nothing;
        }
        let available = held.queue.deliverable_as_viewed(now, &self.wanted);
        self.gathered(held, now, available)
    }

    fn gathers(&self) -> bool {
        self.gather.is_some()
    }

    fn need(&self) -> Need {
        let (least, linger) =
            self.gather.as_ref().map_or((1, DurationMs::ZERO), |gather| (gather.least, gather.linger));
        Need { least, linger, is_leased: self.wanted.lease != Lease::NoAck }
    }

    fn deliver(&self, session: &Session<'_>, held: &mut QueueValue) -> Option<Announcement> {
        if held.queue.forward().is_some() {
            return None;
        }
        correct_clock(session, held);
        let available = held.queue.deliverable_as_viewed(session.now, &self.wanted);
        let count = self.enough(held, session.now, available);
        deliver(session, held, self, count, None)
    }

    fn reply_none(&self, ctx: Ctx) {
        if let Head::Acked(count) = self.head {
            ctx.array(2);
            ctx.integer(count);
        }
        ctx.null_array();
    }
}

impl Request {
    /// Whether this many available messages are enough for the consumer.
    fn gathered(&self, held: &QueueValue, now: UnixMs, available: usize) -> Gathered {
        match &self.gather {
            Some(gather) => held.queue.gathered(now, &self.wanted, gather, available),
            None if available > 0 => Gathered::Enough,
            None => Gathered::Nothing,
        }
    }

    /// The number of messages to deliver of those that are available.
    fn enough(&self, held: &QueueValue, now: UnixMs, available: usize) -> usize {
        match self.gathered(held, now, available) {
            Gathered::Enough => available,
            Gathered::Until(_) | Gathered::Nothing => 0,
        }
    }
}

fn pop(call: &mut Call<'_>) -> Result<(), Error> {
    let session = Session::begin(call)?;
    let (request, block) = parse(call)?;
    let delivered = session.with_queue(|held| {
        refuse_forwarding(held)?;
        let served = serve_now(&session, held, &request);
        if served.is_none() && block.is_none() {
            held.queue.count_empty_pop();
        }
        Ok::<_, Error>(served)
    })?;
    match (delivered.transpose()?.flatten(), block) {
        (Some(announcement), _) => session.announce(announcement, Event::after_delivery(None)),
        (None, Some(timeout)) => delivery::block(session.ctx, &[session.name], Box::new(request), timeout),
        (None, None) => session.ctx.null_array(),
    }
    Ok(())
}

/// Fails if the queue forwards its messages, and so cannot be popped.
pub fn refuse_forwarding(held: &QueueValue) -> Result<(), Error> {
    match held.queue.forward() {
        None => Ok(()),
        Some(to) => Err(Error::Forwards(to.kind(), Error::shown(to.target()))),
    }
}

/// What the options of a call ask for.
struct Asked {
    wanted: Wanted,
    least: Option<usize>,
    linger: Option<DurationMs>,
    block: Option<DurationMs>,
    meta: bool,
    consumer: Option<Box<[u8]>>,
}

impl Asked {
    const NOTHING: Asked = Asked {
        wanted: Wanted { count: 1, lease: Lease::Default },
        least: None,
        linger: None,
        block: None,
        meta: false,
        consumer: None,
    };

    /// Reads the value of an option.
    fn read(&mut self, option: PopOption, options: &mut Options<'_, '_>) -> Result<(), Error> {
        match option {
            PopOption::Count => self.wanted.count = options.count()?,
            PopOption::Min => self.least = Some(options.least()?),
            PopOption::Linger => self.linger = Some(options.positive_duration()?),
            PopOption::Lease => self.wanted.lease = Lease::For(options.positive_duration()?),
            PopOption::Block => self.block = Some(options.duration()?),
            PopOption::Meta => self.meta = true,
            PopOption::As => self.consumer = Some(options.consumer_name()?.into()),
        }
        Ok(())
    }

    /// What the consumer gathers.
    fn gather(&self) -> Result<Option<Gather>, Error> {
        match (self.least, self.linger) {
            (None, None) => Ok(None),
            (Some(least), _) if least > self.wanted.count => Err(Error::MinAboveCount),
            (Some(least), Some(linger)) => Ok(Some(Gather { least, linger })),
            (Some(_), None) => Err(Error::Needs("MIN", "LINGER")),
            (None, Some(_)) => Err(Error::Needs("LINGER", "MIN")),
        }
    }

    /// The request, and the timeout if the client asked to block and may be blocked.
    fn request(self, ctx: Ctx) -> Result<(Request, Option<DurationMs>), Error> {
        let gather = self.gather()?;
        // Inside a transaction or a script a client cannot block. The pop then returns what is ready.
        let block = self.block.filter(|_| !ctx.flags().deny_blocking());
        let Asked { wanted, meta, consumer, .. } = self;
        Ok((Request { wanted, gather, consumer, head: Head::None, meta }, block))
    }
}

/// Parses the options. Also returns the timeout if the client asked to block and may be blocked.
pub fn parse(call: &mut Call<'_>) -> Result<(Request, Option<DurationMs>), Error> {
    let mut asked = Asked::NOTHING;
    let mut no_ack = false;
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next()? {
        match option {
            TakeOption::NoAck => no_ack = true,
            TakeOption::PopOption(option) => asked.read(option, &mut options)?,
        }
    }
    if no_ack {
        asked.wanted.lease = Lease::NoAck;
        // Nobody holds a message that is removed at once.
        asked.consumer = None;
    }
    asked.request(call.ctx)
}

/// [`parse`] for a command that delivers only under a lease.
pub fn parse_leased(call: &mut Call<'_>) -> Result<(Request, Option<DurationMs>), Error> {
    let mut asked = Asked::NOTHING;
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next()? {
        asked.read(option, &mut options)?;
    }
    asked.request(call.ctx)
}

/// Delivers the messages that `request` asks for and replies with them. Returns `None`, and sends no reply, if there is
/// none.
#[inline]
pub fn serve_now(session: &Session<'_>, held: &mut QueueValue, request: &Request) -> Option<Announcement> {
    correct_clock(session, held);
    let available = held.queue.deliverable(session.now, &request.wanted);
    let count = request.enough(held, session.now, available);
    deliver(session, held, request, count, None)
}

/// [`serve_now`] after the acks of the same command, which become part of the effect of the delivery. If there is no
/// message, the caller must record the acks. It must have corrected the clock before the acks.
pub fn serve_after(
    session: &Session<'_>,
    held: &mut QueueValue,
    request: &Request,
    acks: &mut Acks,
) -> Option<Announcement> {
    let available = held.queue.deliverable(session.now, &request.wanted);
    let count = request.enough(held, session.now, available);
    deliver(session, held, request, count, Some(acks).filter(|acks| acks.count > 0))
}

/// Corrects what a clock that was ahead of this one has recorded. The correction is a write.
pub fn correct_clock(session: &Session<'_>, held: &mut QueueValue) {
    if let Some(now) = held.queue.correct_clock(session.now) {
        if listeners::any(session.ctx) {
            Session { now, ..*session }.replicate(held, Effect::PullBack);
        }
    }
}

/// Delivers `count` messages, which the queue has promised, and replies with them. The callers find whether they are
/// enough: one place for it here would make a pop four per cent more expensive.
fn deliver(
    session: &Session<'_>,
    held: &mut QueueValue,
    request: &Request,
    count: usize,
    acks: Option<&mut Acks>,
) -> Option<Announcement> {
    let ctx = session.ctx;
    if count == 0 {
        if acks.is_none() {
            session.rearm(held);
        }
        return None;
    }
    match request.head {
        Head::None => {}
        Head::Queue => {
            ctx.array(2);
            ctx.bulk(session.name.bytes());
        }
        Head::Acked(count) => {
            ctx.array(2);
            ctx.integer(count);
        }
    }
    ctx.array(count);
    let heard = session.is_heard();
    let consumer = request.consumer.as_deref();
    let is_noted = heard || consumer.is_some();
    let mut grants: Vec<Grant> = Vec::with_capacity(if is_noted { count } else { 0 });
    let mut sent = 0;
    let mut buffer = IdBuffer::new();
    held.queue.deliver(session.now, &mut floor(), &Wanted { count, ..request.wanted }, |message| {
        reply_delivered(ctx, &mut buffer, &message, request.meta);
        message.lateness.into_iter().for_each(gauges::count_lateness);
        if is_noted {
            grants.push(message.grant);
        }
        sent += 1;
    });
    if let Some(name) = consumer {
        held.queue.hold_as(grants.iter().map(|grant| grant.sequence), name);
    }
    // The queue delivers as many messages as it promised. If it ever did not, the reply must still have the announced
    // length.
    (sent..count).for_each(|_| ctx.null());
    // A message that is removed at once leaves room in its group for the next one.
    let leaves_room = request.wanted.lease == Lease::NoAck && held.queue.groups() > 0;
    let mut wake = if leaves_room { Wake::IfDeliverable } else { Wake::Nobody };
    let mut acked = Vec::new();
    if let Some(acks) = acks {
        wake = acks.wake(held);
        acked = std::mem::take(&mut acks.sequences);
    }
    let effect = || match request.wanted.lease {
        Lease::NoAck => Effect::Take(grants.iter().map(|grant| grant.sequence).collect()),
        Lease::Default | Lease::For(_) => Effect::Deliver { grants, acked, consumer },
    };
    Some(session.record(held, wake, effect))
}

/// Replies with a message as its consumer receives it: id, payload, attempt, receipt, and what else there is to know if
/// it asked for that.
fn reply_delivered(ctx: Ctx, buffer: &mut IdBuffer, message: &Delivered<'_>, meta: bool) {
    let id = buffer.id(message.grant.sequence, message.name);
    ctx.array(4 + usize::from(meta));
    ctx.bulk(buffer.text(id));
    ctx.bulk(message.payload);
    ctx.integer(message.grant.attempt.into());
    if message.leased {
        let receipt = buffer.receipt(id, message.grant.receipt);
        ctx.bulk(buffer.text(receipt));
    } else {
        ctx.null();
    }
    if meta {
        reply_meta(ctx, message);
    }
}

/// Replies with what there is to know of a message besides its payload, as a map.
#[inline(never)]
fn reply_meta(ctx: Ctx, message: &Delivered<'_>) {
    let meta = message.details.read();
    let texts = [("group", meta.group), ("checkpoint", meta.checkpoint), ("error", meta.error), ("batch", meta.batch)];
    let fields = 2
        + usize::from(message.leased)
        + usize::from(meta.priority != 0)
        + usize::from(meta.headers.is_some())
        + texts.iter().filter(|(_, text)| text.is_some()).count();
    let number = |field: &str, value: i64| {
        ctx.bulk(field.as_bytes());
        ctx.integer(value);
    };
    ctx.map(fields);
    number("created", meta.created.as_ms() as i64);
    number("due", meta.due.as_ms() as i64);
    if message.leased {
        number("deadline", message.grant.deadline.as_ms() as i64);
    }
    if meta.priority != 0 {
        number("priority", meta.priority.into());
    }
    if let Some(headers) = meta.headers {
        ctx.bulk(b"headers");
        reply_headers(ctx, headers);
    }
    for (field, text) in texts {
        if let Some(text) = text {
            ctx.bulk(field.as_bytes());
            ctx.bulk(text);
        }
    }
}
