//! Ids for messages whose id the server generated: such an id cannot be pushed.

use ring::digest::{Context, SHA256};

/// The id under which such a message is pushed. A message always gets the same one, so that a load can be repeated; the hash
/// of the queue's name and the payload distinguishes it from a message of another queue with the same generated id.
pub fn derived(queue: &[u8], id: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut hash = Context::new(&SHA256);
    hash.update(&(queue.len() as u64).to_le_bytes());
    hash.update(queue);
    hash.update(payload);
    let hash = hash.finish();
    let hash: String = hash.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let mut derived = b"load:".to_vec();
    derived.extend(id);
    derived.push(b':');
    derived.extend(hash.as_bytes());
    derived
}

#[cfg(test)]
mod tests {
    use super::derived;

    #[test]
    fn derived_ids_tell_queues_and_payloads_apart() {
        let id = |queue: &str, payload: &str| derived(queue.as_bytes(), b"1795272127819-0", payload.as_bytes());
        assert_eq!(id("q", "x"), id("q", "x"));
        assert!(id("q", "x") != id("p", "x") && id("q", "x") != id("q", "y") && id("qx", "") != id("q", "x"));
        assert!(id("q", "x").starts_with(b"load:1795272127819-0:"));
    }
}
