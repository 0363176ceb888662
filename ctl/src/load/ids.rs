//! Ids for messages whose id the server generated: such an id cannot be pushed.

use ring::digest::{Context, SHA256};

/// Whether an id has the form of a generated one: 12 or more digits, `-`, digits.
pub fn is_generated(id: &[u8]) -> bool {
    let mut parts = id.split(|byte| *byte == b'-');
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    match (parts.next(), parts.next(), parts.next()) {
        (Some(ms), Some(number), None) => ms.len() >= 12 && is_number(ms) && is_number(number),
        _ => false,
    }
}

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
    use super::{derived, is_generated};

    #[test]
    fn generated_ids_are_recognised() {
        for id in ["179527212781-0", "1795272127819-12"] {
            assert!(is_generated(id.as_bytes()), "{id}");
        }
        for id in
            ["", "m-1", "17952721278-0", "1795272127819-", "1795272127819", "1795272127819-1-2", "1795272127819-x"]
        {
            assert!(!is_generated(id.as_bytes()), "{id}");
        }
    }

    #[test]
    fn derived_ids_tell_queues_and_payloads_apart() {
        let id = |queue: &str, payload: &str| derived(queue.as_bytes(), b"1795272127819-0", payload.as_bytes());
        assert_eq!(id("q", "x"), id("q", "x"));
        assert!(id("q", "x") != id("p", "x") && id("q", "x") != id("q", "y") && id("qx", "") != id("q", "x"));
        assert!(id("q", "x").starts_with(b"load:1795272127819-0:"));
    }
}
