//! The key of a command, and which node of a cluster has it.

use super::url::Address;
use crate::error::Error;
use crate::reply::{row, Field};
use redis::{Arg, Cmd, Value};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// Commands without a key.
const KEYLESS: [&str; 19] = [
    "INFO", "PING", "CLIENT", "CONFIG", "SCAN", "HELLO", "DBSIZE", "ACL", "TIME", "ROLE", "COMMAND", "MODULE",
    "LATENCY", "CLUSTER", "AUTH", "SELECT", "WAIT", "SAVE", "SLOWLOG",
];

/// The key by which a command is routed: its first argument, but the third word of `DQ.MPOP numkeys key …`, and the
/// fourth one of `EVAL script numkeys key …`.
pub(super) fn routing_key(command: &Cmd) -> Option<Vec<u8>> {
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

const SLOTS: u16 = 16384;

/// The hash slot of a key: CRC16 of the part between the first `{` and the next `}`, if there is one, else of all of
/// it.
pub(crate) fn hash_slot(key: &[u8]) -> u16 {
    let tag = key.iter().position(|&byte| byte == b'{').and_then(|open| {
        let rest = key.get(open + 1..)?;
        let close = rest.iter().position(|&byte| byte == b'}')?;
        rest.get(..close).filter(|tag| !tag.is_empty())
    });
    crc16(tag.unwrap_or(key)) % SLOTS
}

/// CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, &byte| {
        (0..8)
            .fold(crc ^ (u16::from(byte) << 8), |crc, _| if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 })
    })
}

row! { Range { first: u16, last: u16, master: Node, } }
row! { Node { host: Option<String>, port: u16, } }

/// The known layout of a cluster: ranges of slots. Of several with the same slot, the last one counts. A search takes
/// microseconds even if thousands of slots have moved since the ranges were read.
#[derive(Default)]
pub(crate) struct Slots(Vec<(RangeInclusive<u16>, Address)>);

impl Slots {
    /// Reads the reply of `CLUSTER SLOTS`, which `asked` sent: it leaves out its own host if it does not know it.
    pub fn read(reply: Value, asked: &Address) -> Result<Slots, Error> {
        let range = |Range { first, last, master: Node { host, port } }| {
            (first..=last, node_address(&host.unwrap_or_default(), port, asked))
        };
        Ok(Slots(<Vec<Range>>::read(reply)?.into_iter().map(range).collect()))
    }

    pub fn node(&self, slot: u16) -> Option<&Address> {
        self.0.iter().rev().find(|(range, _)| range.contains(&slot)).map(|(_, address)| address)
    }

    pub fn learn(&mut self, slot: u16, address: Address) {
        self.0.retain(|(range, _)| *range != (slot..=slot));
        self.0.push((slot..=slot, address));
    }

    /// The masters, each once.
    pub fn nodes(&self) -> Vec<Address> {
        let nodes: BTreeSet<&Address> = self.0.iter().map(|(_, address)| address).collect();
        nodes.into_iter().cloned().collect()
    }
}

fn node_address(host: &str, port: u16, asked: &Address) -> Address {
    match asked {
        Address::Tcp(own, _) if host.is_empty() || host == "?" => Address::Tcp(own.clone(), port),
        Address::Tcp(..) | Address::Unix(_) => Address::Tcp(host.to_owned(), port),
    }
}

/// The slot and its node if the reply is a redirection, `MOVED slot host:port` or `ASK slot host:port`, and whether it
/// is for good.
pub(super) fn redirect(reply: &Value, asked: &Address) -> Option<(u16, Address, bool)> {
    let Value::ServerError(error) = reply else { return None };
    let is_final = match error.code() {
        "MOVED" => true,
        "ASK" => false,
        _ => return None,
    };
    let (slot, address) = error.details()?.split_once(' ')?;
    let (host, port) = address.rsplit_once(':')?;
    Some((slot.parse().ok()?, node_address(host.trim_matches(['[', ']']), port.parse().ok()?, asked), is_final))
}

#[cfg(test)]
mod tests {
    use super::{hash_slot, redirect, routing_key, Slots};
    use crate::connect::url::Address;
    use redis::Value;

    #[test]
    fn a_pop_of_several_queues_goes_to_the_server_of_the_first() {
        let key = |words: &[&str]| routing_key(redis::cmd(words[0]).arg(&words[1..]));
        assert_eq!(key(&["DQ.MPOP", "2", "a", "b", "BLOCK", "0"]), Some(b"a".to_vec()));
        assert_eq!(key(&["dq.mpop", "1", "2"]), Some(b"2".to_vec()));
        assert_eq!(key(&["DQ.PUSH", "q", "payload"]), Some(b"q".to_vec()));
        assert_eq!(key(&["EVAL", "return 1", "1", "q"]), Some(b"q".to_vec()));
        assert_eq!(key(&["INFO", "dq"]), None);
    }

    #[test]
    fn a_key_has_the_slot_that_servers_compute() {
        assert_eq!(hash_slot(b"123456789"), 0x31c3);
        assert_eq!(hash_slot(b"foo{hash_tag}"), hash_slot(b"hash_tag"));
        assert_eq!(hash_slot(b"foo{}{bar}"), 8363);
        assert_eq!(hash_slot(b"foo{{bar}}zap"), hash_slot(b"{bar"));
        assert_eq!(hash_slot(b""), 0);
    }

    #[test]
    fn slots_are_found_in_ranges_and_after_a_move() {
        let asked = Address::Tcp("seed".to_owned(), 1);
        let node = |host: Value, port| Value::Array(vec![host, Value::Int(port), Value::BulkString(b"id".to_vec())]);
        let range = |first, last, node| Value::Array(vec![Value::Int(first), Value::Int(last), node]);
        let reply = Value::Array(vec![
            range(0, 99, node(Value::Nil, 7000)),
            range(200, 300, node(Value::BulkString(b"b".to_vec()), 7001)),
        ]);
        let mut slots = Slots::read(reply, &asked).unwrap();
        let (a, b) = (Address::Tcp("seed".to_owned(), 7000), Address::Tcp("b".to_owned(), 7001));
        assert_eq!((slots.node(99), slots.node(100), slots.node(200)), (Some(&a), None, Some(&b)));
        let redirected = |error: &[u8]| redirect(&redis::parse_redis_value(error).unwrap(), &asked);
        let (slot, address, is_final) = redirected(b"-MOVED 99 b:7001\r\n").unwrap();
        assert!(is_final);
        slots.learn(slot, address);
        assert_eq!(slots.node(99), Some(&b));
        assert_eq!(redirected(b"-ASK 5 :7002\r\n"), Some((5, Address::Tcp("seed".to_owned(), 7002), false)));
        assert_eq!(redirected(b"-ERR 5 :7002\r\n"), None);
    }
}
