//! Where `DEADFORWARD` moves the dead messages of a queue.

use crate::server::QueueInfo;
use crate::text::shown;

/// What may follow the name of a stream or a list.
const OPTIONS: [&[u8]; 3] = [b" TRIM ", b" LEFT", b" RIGHT"];

/// `QUEUE`, `STREAM` or `LIST`, and its name; `None` if the dead stay.
pub fn target(info: &QueueInfo) -> Option<(&str, &[u8])> {
    let target = info.fields.bytes("deadforward");
    let (kind, name) = target.split_at(target.iter().position(|byte| *byte == b' ')?);
    let (kind, name) = (std::str::from_utf8(kind).ok()?, name.get(1..)?);
    let place = |option: &[u8]| name.windows(option.len()).rposition(|part| part == option);
    let end = if kind == "QUEUE" { None } else { OPTIONS.into_iter().filter_map(place).min() };
    Some((kind, end.and_then(|end| name.get(..end)).unwrap_or(name)))
}

/// The name of the queue to which they are moved, if it is one.
pub fn target_queue(info: &QueueInfo) -> Option<&[u8]> {
    target(info).filter(|(kind, _)| *kind == "QUEUE").map(|(_, name)| name)
}

/// The same as words that follow `moved to`: `the queue q:dead`.
pub fn target_in_words(info: &QueueInfo) -> Option<String> {
    target(info).map(|(kind, name)| format!("the {} {}", kind.to_ascii_lowercase(), shown(name)))
}

#[cfg(test)]
mod tests {
    use super::{target, target_in_words};
    use crate::server::QueueInfo;
    use dq_client::Value;

    #[test]
    fn a_target_is_known_by_its_kind_and_its_whole_name() {
        for (set, words) in [
            ("QUEUE mail dead", Some("the queue mail dead")),
            ("QUEUE a LEFT", Some("the queue a LEFT")),
            ("STREAM my jobs TRIM 1000", Some("the stream my jobs")),
            ("LIST jobs RIGHT", Some("the list jobs")),
            ("NONE", None),
            ("", None),
        ] {
            let info = QueueInfo::with([("deadforward", Value::BulkString(set.into()))]);
            assert_eq!(target_in_words(&info).as_deref(), words, "{set}");
            assert_eq!(target(&info).is_some(), words.is_some(), "{set}");
        }
    }
}
