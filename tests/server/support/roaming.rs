//! A client that follows redirections and connects again, as client libraries do.

use super::client::{Client, Protocol};
use super::reply::Reply;
use super::wait::eventually;

/// A client of several servers, one of which has the data at any time.
pub struct Roamer {
    /// Returns the port to try next if there was no redirection.
    next: Box<dyn FnMut() -> Option<u16> + Send>,
    client: Option<Client>,
    /// How often the client had to connect to another server.
    pub travels: usize,
}

impl Roamer {
    /// A client that asks `next` for a server whenever the current one cannot serve it.
    pub fn new(next: impl FnMut() -> Option<u16> + Send + 'static) -> Roamer {
        Roamer { next: Box::new(next), client: None, travels: 0 }
    }

    /// A client that tries these ports in turn.
    pub fn among(ports: &[u16]) -> Roamer {
        let ports = ports.to_vec();
        let mut turns = (0..ports.len()).cycle();
        Roamer::new(move || Some(ports[turns.next()?]))
    }

    /// Sends a command until a server accepts it. If a connection breaks, the command may run twice.
    #[track_caller]
    pub fn ask(&mut self, line: &str) -> Reply {
        let mut answer = None;
        eventually(&format!("an answer to {line}"), || {
            answer = self.attempt(line);
            answer.is_some()
        });
        answer.expect("it came")
    }

    /// The number of replicas that have what this connection wrote; 0 if the connection has been replaced since.
    pub fn replicas_that_have_it(&mut self, timeout_ms: u32) -> i64 {
        let reply = self.client.as_mut().and_then(|client| client.try_ask(format!("WAIT 1 {timeout_ms}")).ok());
        match reply {
            Some(Reply::Int(replicas)) => replicas,
            _ => 0,
        }
    }

    fn attempt(&mut self, line: &str) -> Option<Reply> {
        if self.client.is_none() {
            let port = (self.next)()?;
            self.client = Client::connect(port, Protocol::Resp2).ok();
        }
        let Ok(reply) = self.client.as_mut()?.try_ask(line) else { return self.leave(None) };
        let Reply::Error(text) = &reply else { return Some(reply) };
        match text.split(' ').collect::<Vec<_>>()[..] {
            ["MOVED", _, address] => self.leave(Some(port(address))),
            // The redirection is valid for one command, which ASKING must precede.
            ["ASK", _, address] => {
                let mut there = Client::connect(port(address), Protocol::Resp2).ok()?;
                there.try_ask("ASKING").ok()?;
                there.try_ask(line).ok().filter(|reply| !matches!(reply, Reply::Error(_)))
            }
            ["TRYAGAIN", ..] => None,
            ["READONLY" | "UNBLOCKED" | "CLUSTERDOWN" | "LOADING" | "MASTERDOWN", ..] => self.leave(None),
            _ => Some(reply),
        }
    }

    fn leave(&mut self, for_port: Option<u16>) -> Option<Reply> {
        self.travels += 1;
        self.client = for_port.and_then(|port| Client::connect(port, Protocol::Resp2).ok());
        None
    }
}

fn port(address: &str) -> u16 {
    let port = address.rsplit(':').next().and_then(|port| port.parse().ok());
    port.unwrap_or_else(|| panic!("an address: {address}"))
}
