//! Repeats commands that did not arrive, such as pushes, for as long as the client may.

use super::core::Core;
use super::Backoff;
use crate::error::Error;
use crate::request::{Answer, Request, Resend};
use crate::time::after;
use redis::{Cmd, Value};
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Sends a request, repeats it as it allows, and reads its reply.
pub(crate) async fn send<R>(core: &Core, request: Request<R>) -> Result<R, Error> {
    let Request { command, resend, wait, read } = request;
    let answer = match command {
        Some(command) => answer(core, &command, resend, wait).await,
        None => Answer { reply: Ok(Value::Nil), repeated: false },
    };
    read(answer)
}

/// Sends a command that may block for `wait`, and repeats it as `resend` allows.
pub(crate) async fn answer(core: &Core, command: &Cmd, resend: Resend, wait: Duration) -> Answer {
    let give_up = after(core.options().retry_for);
    let (mut backoff, mut repeated) = (Backoff::new(), false);
    loop {
        let reply = core.attempt(command, resend, wait).await;
        let Err(error) = &reply else { return Answer { reply, repeated } };
        let allowed = resend == Resend::Harmless || !error.may_have_been_executed();
        let pause = backoff.next();
        if !error.is_transient() || !allowed || Instant::now() + pause > give_up {
            return Answer { reply, repeated };
        }
        repeated |= error.may_have_been_executed();
        log_repetition(error);
        sleep(pause).await;
    }
}

/// Elsewhere, because a subscriber of the program may block.
fn log_repetition(error: &Error) {
    if tracing::enabled!(tracing::Level::DEBUG) {
        let error = error.to_string();
        tokio::task::spawn_blocking(move || tracing::debug!(error, "a command is repeated"));
    }
}
