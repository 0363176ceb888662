//! The key of a command, and where a cluster redirects it.

use super::slots::redirection;
use super::url::Address;
use redis::{Arg, Cmd, Value};

/// Commands without a key.
const KEYLESS: [&str; 19] = [
    "INFO", "PING", "CLIENT", "CONFIG", "SCAN", "HELLO", "DBSIZE", "ACL", "TIME", "ROLE", "COMMAND", "MODULE",
    "LATENCY", "CLUSTER", "AUTH", "SELECT", "WAIT", "SAVE", "SLOWLOG",
];

/// The key by which a command is routed: its first argument, but the third word of `DQ.MPOP numkeys key …`, and the fourth one
/// of `EVAL script numkeys key …`.
pub(super) fn key_of(command: &Cmd) -> Option<Vec<u8>> {
    let word = |number| match command.args_iter().nth(number) {
        Some(Arg::Simple(word)) => Some(word),
        _ => None,
    };
    let name = String::from_utf8_lossy(word(0)?).to_ascii_uppercase();
    if KEYLESS.contains(&name.as_str()) {
        return None;
    }
    let place = match name.as_str() {
        "DQ.MPOP" => 2,
        "EVAL" => 3,
        _ => 1,
    };
    word(place).map(<[u8]>::to_vec)
}

/// The slot and its node if the reply is a redirection, and whether it is for good.
pub(super) fn redirect(reply: &Value, asked: &Address) -> Option<(u16, Address, bool)> {
    let Value::ServerError(error) = reply else { return None };
    let is_final = match error.code() {
        "MOVED" => true,
        "ASK" => false,
        _ => return None,
    };
    let (slot, address) = redirection(error.details()?, asked)?;
    Some((slot, address, is_final))
}

#[cfg(test)]
mod tests {
    use super::key_of;

    #[test]
    fn a_pop_of_several_queues_goes_to_the_server_of_the_first() {
        let key = |words: &[&str]| key_of(redis::cmd(words[0]).arg(&words[1..]));
        assert_eq!(key(&["DQ.MPOP", "2", "a", "b", "BLOCK", "0"]), Some(b"a".to_vec()));
        assert_eq!(key(&["dq.mpop", "1", "2"]), Some(b"2".to_vec()));
        assert_eq!(key(&["DQ.PUSH", "q", "payload"]), Some(b"q".to_vec()));
        assert_eq!(key(&["EVAL", "return 1", "1", "q"]), Some(b"q".to_vec()));
        assert_eq!(key(&["INFO", "dq"]), None);
    }
}
