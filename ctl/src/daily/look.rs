//! `dqctl get` and `peek`.

use crate::acts::no_such_id;
use crate::board::{each_page, message, Among, Filter};
use crate::cli::{GetArgs, PeekArgs};
use crate::output::Output;
use crate::server::{info, is_cut, reply, Failure, Message, Outcome};
use crate::text::QueueName;
use dq_client::{blocking::Client, cmd, Resend, State};

pub fn get(client: &Client, args: &GetArgs, output: &Output) -> Result<Outcome, Failure> {
    let id = args.id.id();
    let found = Message::get(client, args.queue.as_bytes(), id.as_bytes())?;
    let mut message = found.ok_or_else(|| Failure::nothing(no_such_id(client, &args.queue, &id)))?;
    if args.no_payload {
        message.set("payload", None);
    }
    if args.payload {
        output.raw(message.payload())?;
    } else {
        message::details(&message, output)?;
    }
    Ok(Outcome::Done)
}

pub fn peek(client: &Client, args: &PeekArgs, output: &Output) -> Result<Outcome, Failure> {
    let states = match (&args.consumer, args.state) {
        (None, state) => state.map_or_else(|| State::ALL.to_vec(), |state| vec![state]),
        (Some(_), None | Some(State::Inflight)) => vec![State::Inflight],
        (Some(_), Some(_)) => {
            return Err(Failure::usage("a consumer holds only messages in flight: leave the state out"))
        }
    };
    let mut messages = Vec::new();
    let is = |name: &[u8], wanted: &Option<String>| wanted.as_ref().is_none_or(|wanted| name == wanted.as_bytes());
    let is_meant = |message: &Message| is(message.group(), &args.group) && is(message.consumer(), &args.consumer);
    for state in &states {
        let filter = args.select.filter(Among::State(*state), None);
        messages.extend(match args.reads_all() {
            true => selected(client, &args.queue, &filter, args.count, is_meant)?.unwrap_or_default().0,
            false => first(client, &args.queue, *state, args.count, args.group.as_ref())?,
        });
    }
    if messages.is_empty() {
        info::existing(client, &args.queue)?;
    }
    if args.no_payload {
        messages.iter_mut().for_each(|message| message.set("payload", None));
    }
    let asked = states.first().copied().filter(|_| states.len() == 1);
    message::list(&messages, asked, output)?;
    Ok(Outcome::Done)
}

/// The first messages of a state, in the order of `DQ.PEEK`.
pub fn first(
    client: &Client,
    queue: &QueueName,
    state: State,
    count: u32,
    group: Option<&String>,
) -> Result<Vec<Message>, Failure> {
    let mut command = cmd("DQ.PEEK");
    command.arg(queue.as_bytes()).arg(state.as_str()).arg("COUNT").arg(count);
    if let Some(group) = group {
        command.arg("GROUP").arg(group);
    }
    let resend = if count > 1 { Resend::Never } else { Resend::Harmless };
    match client.call(&command, resend) {
        // More than the server sends at once: they are read page by page.
        Err(error) if count > 1 && is_cut(&error) => {
            let filter = Filter { among: Among::State(state), ..Filter::default() };
            let is_meant = |message: &Message| group.is_none_or(|group| message.group() == group.as_bytes());
            Ok(selected(client, queue, &filter, count, is_meant)?.unwrap_or_default().0)
        }
        reply => reply::list(reply?)?.into_iter().filter_map(|message| Message::read(message).transpose()).collect(),
    }
}

/// The first of the messages that are selected, for which all are read, and how many there are. `None` if there is no
/// such queue.
pub fn selected(
    client: &Client,
    queue: &QueueName,
    filter: &Filter,
    count: u32,
    is_meant: impl Fn(&Message) -> bool,
) -> Result<Option<(Vec<Message>, usize)>, Failure> {
    // As DQ.PEEK orders them: the newest of the dead and done are the first; deliveries of one instant are in their
    // order.
    let place = |message: &Message| match filter.among {
        Among::State(State::Inflight) => (message.deadline(), message.delivery()),
        Among::State(State::Done) => (message.done().map(i64::wrapping_neg), None),
        Among::State(State::Dead) | Among::Letters => (message.died().map(i64::wrapping_neg), None),
        Among::State(State::Ready) => (Some(-message.priority()), message.due()),
        Among::State(_) => (message.due(), Some(-message.priority())),
    };
    let (mut messages, mut number) = (Vec::<Message>::new(), 0);
    let exists = each_page(client, queue.as_bytes(), filter, |page| {
        let before = messages.len();
        messages.extend(page.into_iter().filter(&is_meant));
        number += messages.len() - before;
        messages.sort_by_key(place);
        messages.truncate(usize::try_from(count).unwrap_or(usize::MAX));
    })?;
    Ok(exists.then_some((messages, number)))
}
