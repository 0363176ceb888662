//! Commands in batches that are repeated until they get through.

use crate::server::failure::Failure;
use crate::server::Fields;
use dq_client::{blocking::Client, cmd, Cmd, Error, Value};
use std::time::Duration;

/// About the most bytes of one batch: the server answers other clients in between.
pub const BATCH_BYTES: usize = 4 << 20;
/// How often a batch is sent again if the server cannot be reached, and the pause in between: ten seconds in all.
const REPETITIONS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(500);

/// Sends commands that may be executed more than once, and repeats those that did not get through.
pub fn persistently(client: &Client, commands: &[Cmd]) -> Vec<Result<Value, Error>> {
    let mut replies = client.batch(commands);
    for _ in 0..REPETITIONS {
        // What follows the first failure is sent again with it, so that the order of the commands is kept.
        let failed = replies.iter().position(|reply| reply.as_ref().is_err_and(Error::is_transient));
        let Some(first) = failed else { break };
        std::thread::sleep(PAUSE);
        replies.truncate(first);
        replies.extend(client.batch(commands.get(first..).unwrap_or_default()));
    }
    replies
}

/// The messages of some ids; `None` for those that the queue does not have.
pub fn get_all(client: &Client, queue: &[u8], ids: &[&[u8]]) -> Result<Vec<Option<Fields>>, Failure> {
    let commands: Vec<Cmd> = ids.iter().map(|id| cmd("DQ.GET").arg(queue).arg(*id).clone()).collect();
    persistently(client, &commands).into_iter().map(|reply| Fields::read(reply?)).collect()
}
