//! Random histories: commands that clients may send to queues, drawn from a seed.

use super::client::Client;
use super::random::Random;

/// Draws a command that can change one of the queues.
pub fn any_command(random: &mut Random, keys: &[&str]) -> String {
    let key = *random.one_of(keys);
    let id = format!("m{}", random.below(20));
    let delay = *random.one_of(&["", "DELAY 0", "DELAY 5", "DELAY 40", "DELAY 600000", "AT 1000000001000"]);
    let rest = *random.one_of(&[
        "",
        "RETRIES 0",
        "TTL 3 RETRIES -1",
        "LEASE 20 PRIORITY 9",
        "PRIORITY -9",
        "REPLACE",
        "REPLACE MAXWAIT 30",
    ]);
    let count = random.below(4) + 1;
    let lease = *random.one_of(&["", "LEASE 1", "LEASE 30", "LEASE 600000", "NOACK"]);
    let other = *random.one_of(&["x", "y", "z"]);
    match random.below(45) {
        0..=3 => format!("DQ.PUSH {key} payload-{count} ID {id} {delay} {rest}"),
        4 => format!("DQ.PUSH {key} payload {delay}"),
        5 | 6 => format!("DQ.MPUSH {key} 3 x \"\" y IDS {id} {other} z {delay} {rest}"),
        7..=9 => format!("DQ.POP {key} COUNT {count} {lease}"),
        10 => format!("DQ.MPOP {} {} COUNT {count} {lease}", keys.len(), keys.join(" ")),
        11 => format!("DQ.ACK {key} {id} {other}"),
        12 => format!("DQ.NACK {key} {id} ERROR oh {}", random.one_of(&["", "DELAY 0", "DELAY 20", "DEAD"])),
        13 => format!("DQ.NACK {key} {other} DEAD"),
        14 => format!("DQ.EXTEND {key} {id} LEASE {}", random.one_of(&["1", "30", "600000"])),
        15 => format!("DQ.CANCEL {key} {id} {other}"),
        16 => format!("DQ.RESCHEDULE {key} {id} DELAY {}", random.one_of(&["0", "20", "600000"])),
        17 => format!(
            "DQ.REDRIVE {key} {}",
            random.one_of(&["", "COUNT 1", "IDS 2 x y", "DELAY 20", "OLDER 30 REASON retries"])
        ),
        18 => format!("DQ.PURGE {key} {}", random.one_of(&["dead", "delayed", "ready inflight", "ready OLDER 30"])),
        19 => format!("DQ.ALTER {key} {}", random.one_of(&["DEADLEN 2", "DEADLEN -1", "MAXINFLIGHT 9", "TTL 50"])),
        20 => format!("DQ.ALTER {key} {}", random.one_of(&["LEASE 15", "BACKOFF 5 50", "MAXLEN 30", "RETRIES 1"])),
        21 => format!("DQ.PAUSE {key} {}", random.one_of(&["", "FOR 20", "FOR 600000", "IN FOR 20", "ALL FOR 5"])),
        22 => format!("DQ.NACK {key} {id} NOCOUNT {}", random.one_of(&["", "DELAY 20", "ERROR off"])),
        23 => format!("DQ.BURY {key} {id} {}", random.one_of(&["", "ERROR bad"])),
        24 => format!("DQ.PROMOTE {key} {}", random.one_of(&["", "COUNT 1", "COUNT 3"])),
        25 => format!("DQ.RESCHEDULE {key} {id} PRIORITY {}", random.one_of(&["5", "-5", "0 DELAY 20"])),
        26 => format!("DQ.PURGE {key} {} COUNT {count}", random.one_of(&["", "dead", "ready inflight"])),
        27 => format!("DQ.ALTER {key} {}", random.one_of(&["BACKOFF 5 50 JITTER 80", "MAXPAYLOAD 8", "MAXPAYLOAD 0"])),
        28 => format!(
            "DQ.ALTER {key} {}",
            random.one_of(&["DEDUPE 30", "DEDUPE 600000", "DEDUPE 0", "RATE 9 20", "RATE 3 5", "RATE 0 0"])
        ),
        // Time alone never makes a run fail: that would be a decision, which changes the queue.
        29 | 30 => format!(
            "DQ.SCHEDULE {key} s{} payload-{count} EVERY {} RETRIES -1 TTL 0 {}",
            random.below(3),
            random.one_of(&["30", "50 OFFSET 7", "600000"]),
            random.one_of(&["", "TIMES 2", "AT 1000000001000", "PRIORITY 30", "UNTIL 8000000000000"])
        ),
        31 => format!("DQ.ACK {key} s0 s1"),
        32 => {
            format!("DQ.NACK {key} s{} {}", random.below(3), random.one_of(&["DEAD ERROR bad", "DELAY 20", "NOCOUNT"]))
        }
        33 | 34 => {
            format!("DQ.ACKPOP {key} 3 {id} {other} s0 COUNT {count} {}", lease.replace("NOACK", "LEASE 600000"))
        }
        35 => format!("DQ.MEXTEND {key} 2 {id} {other} LEASE {}", random.one_of(&["1", "30", "600000"])),
        36 => format!("DQ.POP {key} COUNT {count} {lease} AS w{}", random.below(3)),
        37 => format!("DQ.RELEASE {key} w{} {}", random.below(3), random.one_of(&["", "COUNT 1", "NOCOUNT"])),
        38 => {
            format!(
                "DQ.MPUSH {key} 2 x y BATCH b{} RETRIES -1 TTL 0 DELAY {}",
                random.below(3),
                random.one_of(&["0", "30", "600000"])
            )
        }
        39 => format!(
            "DQ.BATCH {key} b{} {}",
            random.below(3),
            random.one_of(&["THEN x", "THEN y ID a GROUP g", "CANCEL"])
        ),
        // This is drawn more often than a pause, so that most of a history has deliveries.
        _ => format!("DQ.RESUME {key}"),
    }
}

/// Sends this many commands, each drawn by `line`, some of them in transactions and scripts.
pub fn go_on(c: &mut Client, random: &mut Random, commands: usize, line: impl Fn(&mut Random) -> String) {
    for _ in 0..commands / 10 {
        c.pipeline((0..7).map(|_| line(random)));
        let (first, second) = (line(random), line(random));
        c.multi(&[&first, &second]);
        c.script(&line(random));
    }
}
