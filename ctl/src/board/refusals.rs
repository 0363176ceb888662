//! Which masters refuse writes, and with them pops: the messages of their queues wait although there are consumers.

use crate::server::ServerInfo;
use dq_client::{blocking::Client, cmd, Address};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long an answer of the servers is used.
const FRESH: Duration = Duration::from_secs(1);

/// The masters, and whether each refuses writes.
type Masters = Vec<(Address, bool)>;

/// What is known of the masters, and when it was read.
#[derive(Default)]
pub struct Refusals(Mutex<Option<(Instant, Masters)>>);

impl Refusals {
    /// Whether the server of a queue refuses writes. False if the user may not read that.
    pub fn concern(&self, client: &Client, queue: &[u8]) -> bool {
        let servers = self.servers(client);
        let refusing: Vec<&Address> =
            servers.iter().filter(|(_, refuses)| *refuses).map(|(server, _)| server).collect();
        // Of a cluster, only the master of a queue answers for it.
        let answers = |server: &&Address| client.call_on(server, cmd("DQ.INFO").arg(queue)).is_ok();
        !refusing.is_empty() && (refusing.len() == servers.len() || refusing.iter().any(answers))
    }

    fn servers(&self, client: &Client) -> Masters {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, servers)) = known.as_ref().filter(|(read, _)| read.elapsed() < FRESH) {
            return servers.clone();
        }
        let refuses =
            |server: &Address| ServerInfo::read_writes(client, server).is_ok_and(|info| info.refuses_writes());
        let all = client.servers().unwrap_or_default();
        let servers: Vec<_> = all.into_iter().map(|server| (server.clone(), refuses(&server))).collect();
        *known = Some((Instant::now(), servers.clone()));
        servers
    }
}
