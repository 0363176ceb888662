//! Several commands at once: those for one server together, or as a transaction.

use super::core::{moved_too_often, Core, REDIRECTIONS};
use super::routing::{redirect, routing_key};
use super::url::Address;
use crate::error::Error;
use crate::reply;
use crate::request::Resend;
use redis::{Cmd, Value};
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::sleep;

/// How many commands of a batch go to a server before their replies are awaited: a slow connection gets on, and a lost
/// one leaves few of which nothing is known.
const PIPELINED: usize = 100;

/// Sends several commands once, those for one server together and in their order.
pub(crate) async fn batch(core: &Core, commands: &[Cmd]) -> Vec<Result<Value, Error>> {
    let mut replies = vec![Ok(Value::Nil); commands.len()];
    let mut parts = HashMap::<Address, Vec<_>>::new();
    for (command, reply) in commands.iter().zip(&mut replies) {
        match core.route(routing_key(command).as_deref()).await {
            Ok(address) => parts.entry(address).or_default().push((command, reply)),
            Err(error) => *reply = Err(error),
        }
    }
    let sent = parts.into_iter().map(|(address, mut part)| async move {
        let mut failed = None;
        for some in part.chunks_mut(PIPELINED) {
            let received = match failed.take() {
                None => core.servers.call_all(&address, some.iter().map(|(command, _)| *command)).await,
                Some(error) => Err(error),
            };
            let mut received = received.map(Vec::into_iter);
            for (command, reply) in some {
                **reply = match received.as_mut().map(Iterator::next) {
                    // One after the other, so that they keep their order.
                    Ok(Some(received)) if redirect(&received, &address).is_some() => {
                        core.attempt(command, Resend::Harmless, Duration::ZERO).await
                    }
                    Ok(received) => core.servers.checked(&address, Ok(received.unwrap_or_default())),
                    Err(error) => Err(error.clone()),
                };
            }
            failed = received.err();
        }
    });
    futures_util::future::join_all(sent).await;
    replies
}

/// Sends several commands as one transaction.
pub(crate) async fn transaction(core: &Core, commands: &[Cmd]) -> Result<Vec<Result<Value, Error>>, Error> {
    let (multi, exec) = (redis::cmd("MULTI"), redis::cmd("EXEC"));
    let mut address = core.route(commands.first().and_then(routing_key).as_deref()).await?;
    for _ in 0..REDIRECTIONS {
        let all = [&multi].into_iter().chain(commands).chain([&exec]);
        let mut replies = core.servers.call_all(&address, all).await?;
        let executed = replies.pop().unwrap_or_default();
        if let Some((next, is_final)) = replies.iter().find_map(|reply| core.redirected(reply, &address)) {
            if is_final {
                address = next;
            } else {
                // ASK: its keys are about to arrive there.
                sleep(Duration::from_millis(20)).await;
            }
            continue;
        }
        // If a command is not accepted, EXEC reports only that; the reply to the command has the reason.
        replies.into_iter().try_for_each(|reply| reply::checked(reply).map(drop))?;
        return Ok(reply::list(reply::checked(executed)?)?.into_iter().map(reply::checked).collect());
    }
    Err(moved_too_often())
}
