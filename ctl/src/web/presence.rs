//! Whether consumers that hold messages still have a connection, by the names that clients give their connections.

use crate::board::clients::{self, Listed};
use crate::server::failure::Failure;
use dq_client::Client;
use std::collections::BTreeSet;

/// The most names that are remembered.
const SEEN: usize = 10_000;

/// The connections of now, and the names of those that were there before.
pub struct Presence {
    pub listed: Listed,
    seen: BTreeSet<String>,
}

impl Presence {
    pub fn read(client: &Client, last: Option<&Presence>) -> Result<Presence, Failure> {
        let listed = clients::list(client)?;
        let before = last.into_iter().flat_map(|last| &last.seen);
        let seen = listed.names.keys().chain(before).take(SEEN).cloned().collect();
        Ok(Presence { listed, seen })
    }

    /// How many connections have the name of a consumer; `None` if it cannot be told. That there is none says something only if there
    /// was one, or if the other consumers of the queue have theirs: clients need not give their connections these names.
    pub fn connections(&self, consumer: &[u8], others_have: bool) -> Option<u64> {
        // Other names no connection can have.
        let is_possible = !consumer.is_empty() && consumer.iter().all(u8::is_ascii_graphic);
        let name = std::str::from_utf8(consumer).ok().filter(|_| is_possible)?;
        match self.listed.names.get(name) {
            Some(number) => Some(*number),
            None => (others_have || self.seen.contains(name)).then_some(0),
        }
    }

    pub fn has(&self, consumer: &[u8]) -> bool {
        self.connections(consumer, false).is_some_and(|number| number > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::Presence;
    use crate::board::clients::Listed;

    #[test]
    fn a_consumer_is_without_a_connection_only_if_clients_give_theirs_names() {
        let names = [("w1".to_owned(), 2), (String::new(), 5)].into();
        let now =
            Presence { listed: Listed { names, ..Listed::default() }, seen: ["w1", "w2"].map(str::to_owned).into() };
        assert_eq!(now.connections(b"w1", false), Some(2));
        assert_eq!(now.connections(b"w2", false), Some(0), "it had one");
        assert_eq!((now.connections(b"w3", true), now.connections(b"w3", false)), (Some(0), None));
        for impossible in [&b""[..], b"w 3", b"\xff"] {
            assert_eq!(now.connections(impossible, true), None, "{impossible:?}");
        }
    }
}
