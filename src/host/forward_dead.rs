//! Moves dead messages of one queue to another one (`DEADFORWARD QUEUE`): each is a push, with headers that say how the
//! message died. The other queue decides as for a client: it may be full, or refuse the size.

use super::event::Event;
use super::floor::floor;
use super::open::{change_or_make, Changed};
use super::session::Session;
use super::write::Wake;
use crate::module_api::ctx::Name;
use crate::module_api::key::Refusal;
use dq_queue::id::IdBuffer;
use dq_queue::time::UnixMs;
use dq_queue::{Due, Effect, HeaderBlock, Headers, NewMessage, Outgoing, Pushed, Queue};
use std::cell::LazyCell;

/// The header that names the first id of a message whose id has changed.
const FIRST_ID: &[u8] = b"dq-id";

/// A dead message as the other queue gets it.
pub struct Moving {
    name: Option<Box<[u8]>>,
    payload: Box<[u8]>,
    priority: i8,
    headers: HeaderBlock,
}

impl Moving {
    /// Copies a message of the queue at `from`. Headers of an earlier move are replaced, except its first id. It gets
    /// another id if its own was generated.
    pub fn new(from: Name<'_>, message: &Outgoing<'_>) -> Moving {
        let mut printed = IdBuffer::new();
        let length = printed.id(message.sequence, None);
        let mut added: Vec<(&[u8], &[u8])> = vec![(b"dq-queue", from.bytes())];
        let numbers = message.death.map(|death| [u64::from(death.attempts), death.died.as_ms()].map(|n| n.to_string()));
        if let (Some(death), Some([attempts, died])) = (message.death, &numbers) {
            added.extend([
                (&b"dq-reason"[..], death.reason.as_str().as_bytes()),
                (b"dq-error", death.error.unwrap_or_default()),
                (b"dq-attempts", attempts.as_bytes()),
                (b"dq-died", died.as_bytes()),
            ]);
        }
        if message.name.is_none() && !has_first_id(message.headers) {
            added.push((FIRST_ID, printed.text(length)));
        }
        Moving {
            name: message.name.map(Into::into),
            payload: message.payload.into(),
            priority: message.priority,
            headers: HeaderBlock::with_added(message.headers, &added),
        }
    }

    /// The message as it is pushed, due now.
    fn message(&self) -> NewMessage<'_> {
        let Moving { name, payload, priority, headers } = self;
        NewMessage {
            payload,
            name: name.as_deref(),
            due: Some(Due::Now),
            priority: *priority,
            headers: Some(headers.headers()),
            ..NewMessage::default()
        }
    }

    /// The same message for a queue that does not accept its id: with a generated one.
    fn renamed(&self) -> Moving {
        let Moving { name, payload, priority, headers } = self;
        let first = name.as_deref().filter(|_| !has_first_id(Some(headers.headers())));
        let added: Vec<_> = first.map(|id| (FIRST_ID, id)).into_iter().collect();
        let headers = HeaderBlock::with_added(Some(headers.headers()), &added);
        Moving { name: None, payload: payload.clone(), priority: *priority, headers }
    }

    /// Pushes the message, or `renamed` if the other queue does not accept its id.
    fn push<'a>(&'a self, renamed: &'a Renamed<'_>, queue: &mut Queue, now: UnixMs) -> Pushed<'a> {
        match queue.push(now, &mut floor(), &self.message()) {
            Pushed::Duplicate | Pushed::HeldDead => queue.push(now, &mut floor(), &renamed.message()),
            pushed => pushed,
        }
    }
}

type Renamed<'a> = LazyCell<Moving, Box<dyn FnOnce() -> Moving + 'a>>;

fn has_first_id(headers: Option<Headers<'_>>) -> bool {
    headers.is_some_and(|headers| headers.iter().any(|(name, _)| name == FIRST_ID))
}

/// Pushes a message to the queue at `to`, which is created if it does not exist. Returns why the queue refuses it. No
/// key may be open.
pub fn push(session: &Session<'_>, to: &[u8], message: &Moving) -> Result<(), String> {
    let renamed: Renamed<'_> = LazyCell::new(Box::new(|| message.renamed()));
    session.ctx.with_name(to, |name| {
        let session = Session { name, ..*session };
        let mut key = session.open_write();
        let push = |queue: &mut Queue| message.push(&renamed, queue, session.now);
        let Changed { outcome, held, made_with } =
            change_or_make(key.content(), push, |pushed| matches!(pushed, Pushed::Added { .. })).map_err(refusal)?;
        let image = match outcome {
            Pushed::Added { image, .. } => Ok(image),
            Pushed::Full { held } => Err(format!("QUEUEFULL target queue holds {held} messages (MAXLEN)")),
            Pushed::Closed => Err("QUEUECLOSED target queue accepts no messages".to_owned()),
            Pushed::TooLarge => Err("TOOLARGE payload exceeds MAXPAYLOAD of the target queue".to_owned()),
            Pushed::Duplicate | Pushed::HeldDead | Pushed::Exhausted => {
                Err("ERR the ids of the target queue are used up".to_owned())
            }
        };
        let Some(held) = held else { return image.map(drop) };
        match image {
            Ok(image) => {
                let effect = || Effect::Push(made_with, vec![image]);
                let announcement = session.record(held, Wake::IfDeliverable, effect);
                drop(key);
                session.announce(announcement, &[Event::Push]);
                Ok(())
            }
            Err(refused) => {
                session.rearm(held);
                Err(refused)
            }
        }
    })
}

fn refusal(why: Refusal) -> String {
    let text = match why {
        Refusal::WrongType => "WRONGTYPE Operation against a key holding the wrong kind of value",
        Refusal::Unsound => "ERR the target queue is not sound",
    };
    text.to_owned()
}

/// The server's error while memory is low, as for a client's push.
pub const OUT_OF_MEMORY: &str = "OOM command not allowed when used memory > 'maxmemory'.";
