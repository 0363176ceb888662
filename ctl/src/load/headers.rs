//! The headers that a push takes. A message has more of them if `DEADFORWARD` has added its own.

use crate::transfer::Headers;

/// The most headers of a push, and the most bytes of one value, and of all names and values together.
const MOST: usize = 64;
const VALUE: usize = 4096;
const BYTES: usize = 16 * 1024;
/// How the headers that the server adds begin.
const ADDED: &[u8] = b"dq-";

/// Drops the headers that a push would refuse, if possible those that the server has added. Returns true if there were some.
pub fn fit(headers: &mut Headers) -> bool {
    let (mut count, mut bytes) = (0, 0);
    let mut takes = |(name, value): &(Vec<u8>, Vec<u8>)| {
        let size = name.len() + value.len();
        let is_taken = count < MOST && value.len() <= VALUE && bytes + size <= BYTES;
        if is_taken {
            count += 1;
            bytes += size;
        }
        is_taken
    };
    let is_added = |header: &(Vec<u8>, Vec<u8>)| header.0.starts_with(ADDED);
    let mut taken: Vec<bool> = headers.iter().map(|header| !is_added(header) && takes(header)).collect();
    for (header, taken) in headers.iter().zip(&mut taken) {
        *taken |= is_added(header) && takes(header);
    }
    let before = headers.len();
    let mut taken = taken.into_iter();
    headers.retain(|_| taken.next().unwrap_or(true));
    headers.len() < before
}

#[cfg(test)]
mod tests {
    use super::{fit, BYTES, MOST, VALUE};
    use crate::transfer::Headers;

    fn headers(names: impl Iterator<Item = String>, value: usize) -> Headers {
        names.map(|name| (name.into_bytes(), vec![b'x'; value])).collect()
    }

    #[test]
    fn added_headers_are_dropped_before_others() {
        let added = ["dq-queue", "dq-reason"].map(str::to_owned).into_iter();
        let mut all = headers(added.chain((0..MOST - 1).map(|number| format!("h{number}"))), 1);
        assert!(fit(&mut all));
        assert_eq!((all.len(), all[0].0.as_slice(), all[1].0.as_slice()), (MOST, &b"dq-queue"[..], &b"h0"[..]));
        assert!(!fit(&mut all));
    }

    #[test]
    fn values_and_sizes_are_limited_too() {
        let mut large = headers((0..5).map(|number| format!("h{number}")), VALUE - 2);
        assert!(fit(&mut large) && large.len() == BYTES / VALUE);
        let mut long = headers(["h".to_owned()].into_iter(), VALUE + 1);
        assert!(fit(&mut long) && long.is_empty());
    }
}
