//! A queue with messages in every state, shared by all tests of persistence and replication.

use super::client::Client;
use super::reply::{Fields, Reply};

/// The messages in the queue of `every_state`.
pub struct Cast {
    /// The ids of all messages that the queue holds.
    pub ids: Vec<String>,
    /// The receipt of `held`, which is in flight.
    pub held: String,
    /// The receipt of `lapsed`, whose lease ended with retries left.
    pub lapsed: String,
    /// The receipt of `spent`, which became dead when its lease ended.
    pub spent: String,
    /// The number of messages in each state.
    pub delayed: i64,
    pub ready: i64,
    pub inflight: i64,
    pub dead: i64,
}

/// Makes a queue that holds messages in every state, reached in every way.
pub fn every_state(c: &mut Client, key: &str) -> Cast {
    // These messages are gone. Only the totals and the last id still show them.
    c.push(format!("{key} x ID acked"));
    let acked = c.pop_one(key);
    assert_eq!(c.ack(format!("{key} {}", acked.receipt())), 1);
    c.push(format!("{key} x ID taken"));
    c.pop_one(format!("{key} NOACK"));

    // Ready after a lease ended. Messages that are pushed and popped later have a higher priority.
    c.push(format!("{key} again ID lapsed RETRIES 5"));
    let lapsed = c.pop_one(format!("{key} LEASE 1")).receipt().to_owned();
    c.until_state(key, "lapsed", "ready");

    // Dead because a lease ended, because of a rejection, and because a TTL ended.
    c.push(format!("{key} tired ID spent RETRIES 0 PRIORITY 50"));
    let spent = c.pop_one(format!("{key} LEASE 1")).receipt().to_owned();
    c.until_state(key, "spent", "dead");
    c.push(format!("{key} bad ID rejected PRIORITY 51"));
    c.pop_one(key);
    assert_eq!(c.nack(format!("{key} rejected DEAD ERROR no-such-user")), "dead");
    c.push(format!("{key} old ID expired TTL 1"));
    c.until_state(key, "expired", "dead");

    // Delayed by a nack and by the producer.
    c.push(format!("{key} twice ID retried PRIORITY 52"));
    c.pop_one(key);
    assert_eq!(c.nack(format!("{key} retried DELAY 600000 ERROR boom")), "delayed");
    c.push(format!("{key} later ID later DELAY 500000 LEASE 1234 RETRIES -1"));
    let unnamed = c.push(format!("{key} much-later AT 8000000000000 PRIORITY -128"));

    // In flight with an extended lease.
    c.push(format!("{key} held ID held PRIORITY 127 LEASE 600000 TTL 6000000"));
    let held = c.pop_one(key).receipt().to_owned();
    c.extend(format!("{key} held LEASE 700000"));

    // In flight, with a message that takes its place when the delivery ends.
    c.push(format!("{key} outdated ID outdated PRIORITY 126 LEASE 600000"));
    c.pop_one(key);
    c.push(format!("{key} newer ID outdated DELAY 600000 TTL 6000000 REPLACE LATER"));

    // Ready messages: one that replaced another, and payloads with any bytes, no bytes and many bytes.
    c.push(format!("{key} first ID replaced DELAY 1000000"));
    c.push(format!("{key} second ID replaced REPLACE PRIORITY -1"));
    let bytes: Vec<u8> = (0..=255).collect();
    let binary = c.cmd(&[b"DQ.PUSH", key.as_bytes(), &bytes]).text();
    let empty = c.push(format!("{key} \"\""));
    let large = c.cmd(&[b"DQ.PUSH", key.as_bytes(), &vec![b'L'; 100_000]]).text();

    let named = ["lapsed", "spent", "rejected", "expired", "retried", "later", "held", "outdated", "replaced"];
    let mut ids: Vec<String> = named.map(str::to_owned).to_vec();
    ids.extend([unnamed, binary, empty, large]);
    Cast { ids, held, lapsed, spent, delayed: 3, ready: 5, inflight: 2, dead: 3 }
}

/// Makes queues on which every command was used. Returns everything that can be read of them.
pub fn every_command(c: &mut Client) -> Vec<Reply> {
    let lines = [
        "DQ.CREATE made LEASE 600000 RETRIES 2 BACKOFF 600000 700000 MAXLEN 50 MAXINFLIGHT 20 DEADLEN 6 TTL 6000000",
        "DQ.CREATE plain",
        "DQ.MPUSH made 5 1 2 3 4 5 IDS a b c d e PRIORITY 9",
        "DQ.MPUSH made 4 6 7 8 9 IDS a f g f",
        "DQ.MPUSH made 3 10 11 12 IDS f b f REPLACE TTL 0 LEASE 700000 PRIORITY 8",
        "DQ.MPUSH made 3 x y z DELAY 600000 HEADERS 2 b 1 a 2",
        "DQ.PUSH made x ID h AT 8000000000000",
        "DQ.MPOP 3 absent plain made COUNT 4",
        "DQ.MPOP 2 plain made COUNT 1 NOACK",
        "DQ.NACK made a DEAD ERROR no",
        "DQ.NACK made c DEAD",
        "DQ.NACK made d DELAY 600000 ERROR later",
        "DQ.REDRIVE made IDS 3 a c nobody DELAY 500000",
        "DQ.RESCHEDULE made a DELAY 0",
        "DQ.RESCHEDULE made c AT 7000000000000",
        "DQ.POP made COUNT 2",
        "DQ.EXTEND made a LEASE 800000 CHECKPOINT half",
        "DQ.MEXTEND made 3 a nobody a LEASE 900000",
        "DQ.CANCEL made h e nobody",
        "DQ.ALTER made LEASE 650000 MAXINFLIGHT 15",
        "DQ.ALTER made TTL 0",
        "DQ.MPUSH made 4 1 2 3 4 IDS p q r s PRIORITY 100",
        "DQ.POP made COUNT 4",
        "DQ.NACK made p DEAD",
        "DQ.NACK made q DEAD",
        "DQ.NACK made r DEAD ERROR r",
        "DQ.ACK made s",
        "DQ.ALTER made DEADLEN 2",
        "DQ.REDRIVE made COUNT 1",
        "DQ.PAUSE made",
        "DQ.MPUSH emptied 3 x y z",
        "DQ.POP emptied",
        "DQ.PURGE emptied",
        "DQ.MPUSH purged 3 x y z IDS a b c",
        "DQ.POP purged COUNT 2",
        "DQ.PUSH purged x DELAY 600000",
        "DQ.PURGE purged ready delayed",
        "DQ.PAUSE plain",
        "DQ.PAUSE plain IN FOR 600000",
        "DQ.RESUME plain OUT",
        "DQ.ALTER more MKQUEUE BACKOFF 600000 600000 JITTER 50 DEADTTL 6000000 MAXPAYLOAD 10",
        "DQ.CREATE more BACKOFF 600000 600000 JITTER 50 DEADTTL 6000000 MAXPAYLOAD 10",
        "DQ.ALTER more ERRORS 5",
        "DQ.MPUSH more 6 1 2 3 4 5 6 IDS a b c d e f",
        "DQ.MPUSH more 4 1 2 3 4 IDS i j k l DELAY 500000 PRIORITY -3",
        "DQ.POP more COUNT 4 LEASE 600000",
        "DQ.NACK more a",
        "DQ.NACK more b NOCOUNT ERROR off CHECKPOINT most",
        "DQ.NACK more c NOCOUNT DELAY 600000",
        "DQ.BURY more d ERROR bad",
        "DQ.BURY more e",
        "DQ.BURY more l",
        "DQ.RESCHEDULE more f PRIORITY 9",
        "DQ.RESCHEDULE more i PRIORITY -9 DELAY 100000",
        "DQ.PROMOTE more COUNT 2",
        "DQ.PUSH more x DELAY 1000",
        "DQ.PROMOTE more UNTIL 8000000000000 COUNT 1",
        "DQ.PURGE more dead COUNT 1",
        "DQ.PURGE more dead OLDER 0 COUNT 1",
        "DQ.REDRIVE more REASON rejected OLDER 0 DELAY 600000",
        "DQ.PAUSE more FOR 600000",
        "DQ.CREATE deduped DEDUPE 600000000 DEADLEN 1",
        "DQ.MPUSH deduped 6 1 2 3 4 5 6 IDS a b c d e f",
        "DQ.POP deduped COUNT 2 NOACK",
        "DQ.POP deduped COUNT 3 LEASE 600000",
        "DQ.ACK deduped c",
        "DQ.PUSH deduped x ID j PRIORITY 9",
        "DQ.ACKPOP deduped 1 nobody LEASE 600000",
        "DQ.MPUSH deduped 2 x y IDS k l PRIORITY 9",
        "DQ.ACKPOP deduped 1 j LEASE 600000",
        "DQ.ACKPOP deduped 2 k nobody COUNT 9 LEASE 600000",
        "DQ.NACK deduped d DEAD",
        "DQ.NACK deduped e DEAD",
        "DQ.CANCEL deduped b f",
        "DQ.PUSH deduped x ID a REPLACE DELAY 600000",
        "DQ.PUSH deduped x ID a REPLACE DELAY 700000 MAXWAIT 650000",
        "DQ.MPUSH deduped 2 x y IDS a g REPLACE DELAY 700000 MAXWAIT 660000",
        "DQ.CREATE limited RATE 5 86400000",
        "DQ.MPUSH limited 9 1 2 3 4 5 6 7 8 9",
        "DQ.POP limited COUNT 2 NOACK",
        "DQ.MPOP 1 limited COUNT 2 LEASE 600000",
        "DQ.ALTER limited RATE 4 80000000",
        "DQ.SCHEDULE series waiting x EVERY 86400000 OFFSET 7 UNTIL 8000000000000 TIMES 9 PRIORITY 3 RETRIES 2 \
         LEASE 700000 TTL 600000000",
        "DQ.SCHEDULE series waiting y EVERY 86400000 OFFSET 7 HEADERS 1 a 1",
        "DQ.SCHEDULE series cron x CRON @daily TZ Asia/Tokyo AT 7000000000000",
        "DQ.SCHEDULE series acked x EVERY 86400000 AT 100000000001",
        "DQ.POP series LEASE 600000",
        "DQ.ACK series acked",
        "DQ.SCHEDULE series taken x EVERY 86400000 AT 100000000001",
        "DQ.POP series NOACK",
        "DQ.SCHEDULE series nacked x EVERY 86400000 AT 100000000001 TIMES 3 HEADERS 1 b 2",
        "DQ.POP series LEASE 600000",
        "DQ.NACK series nacked DEAD ERROR boom CHECKPOINT third",
        "DQ.SCHEDULE series buried x EVERY 86400000",
        "DQ.BURY series buried",
        "DQ.SCHEDULE series last x EVERY 86400000 AT 100000000001 TIMES 1",
        "DQ.POP series NOACK",
        "DQ.SCHEDULE series deferred x EVERY 86400000 AT 100000000001",
        "DQ.POP series LEASE 600000",
        "DQ.SCHEDULE series deferred later EVERY 3600000 AT 7000000000000 HEADERS 1 c 3",
        "DQ.SCHEDULE series renewed x EVERY 86400000 AT 100000000001",
        "DQ.POP series LEASE 600000",
        "DQ.SCHEDULE series renewed later EVERY 3600000 TIMES 4",
        "DQ.PUSH series x ID beside",
        "DQ.ACKPOP series 1 renewed LEASE 600000",
        "DQ.PUSH series x ID ordinary",
        "DQ.POP series LEASE 600000",
        "DQ.SCHEDULE series ordinary later EVERY 86400000",
        "DQ.SCHEDULE series moved x EVERY 86400000",
        "DQ.RESCHEDULE series moved DELAY 600000 PRIORITY -3",
        "DQ.SCHEDULE series cancelled x EVERY 5",
        "DQ.CANCEL series cancelled",
        "DQ.SCHEDULE series replaced x EVERY 86400000",
        "DQ.PUSH series x ID replaced REPLACE DELAY 600000",
        "DQ.CREATE later LEASE 600000",
        "DQ.MPUSH later 5 1 2 3 4 5 IDS a b c d e HEADERS 1 d 4",
        "DQ.SCHEDULE later s 6 EVERY 3600000 AT 1000000000000",
        "DQ.POP later COUNT 6",
        "DQ.MPUSH later 4 7 8 9 10 IDS a b c s DELAY 600000 REPLACE LATER MAXWAIT 500000",
        "DQ.SCHEDULE later b 11 EVERY 3600000 TIMES 3",
        "DQ.SCHEDULE later d 12 CRON @yearly",
        "DQ.PUSH later 13 ID d REPLACE LATER DELAY 600000",
        "DQ.EXTEND later a LEASE 700000 CHECKPOINT first",
        "DQ.NACK later c DEAD",
        "DQ.PUSH later 14 ID e DELAY 600000 REPLACE LATER",
        "DQ.BURY later e",
        "DQ.MPUSH named 6 1 2 3 4 5 6 IDS a b c d e f",
        "DQ.POP named COUNT 2 LEASE 600000 AS w1",
        "DQ.MPOP 1 named COUNT 2 LEASE 600000 AS w2",
        "DQ.ACKPOP named 1 a COUNT 2 LEASE 600000 AS w1",
        "DQ.RELEASE named w1 COUNT 1",
        "DQ.RELEASE named w2 COUNT 1 NOCOUNT",
        "DQ.MPUSH batches 4 1 2 3 4 IDS a b c d BATCH open",
        "DQ.MPUSH batches 2 5 6 IDS e f BATCH over RETRIES 3",
        "DQ.BATCH batches open THEN x ID t DELAY 600000 PRIORITY 2 GROUP g RETRIES 2 LEASE 5000 HEADERS 1 a b",
        "DQ.BATCH batches over THEN then ID then",
        "DQ.POP batches COUNT 6 LEASE 600000",
        "DQ.ACK batches a e",
        "DQ.BURY batches b",
        "DQ.CANCEL batches f",
        "DQ.MPUSH batches 2 7 8 BATCH gone",
        "DQ.BATCH batches gone CANCEL",
        "DQ.PUSH batches 9 ID i BATCH idle",
        "DQ.CANCEL batches i",
        "DQ.CREATE forwarding FORWARD LIST target LEFT REGISTER set member",
        "DQ.PAUSE forwarding",
        "DQ.MPUSH forwarding 2 x y IDS a b",
        "DQ.CREATE hospital DEADLEN 7 DEADFORWARD QUEUE morgue",
        "DQ.PUSH hospital x ID a",
        "DQ.CREATE finished RETAIN 600000000 DONELEN 5 DEDUPE 600000000",
        "DQ.MPUSH finished 10 1 2 3 4 5 6 7 8 9 10 IDS a b c d e f g h i j",
        "DQ.PUSH finished x DELAY 600000 RETAIN 0",
        "DQ.PUSH finished x PRIORITY 9 RETAIN 500000000",
        "DQ.POP finished COUNT 2 NOACK",
        "DQ.POP finished COUNT 8 LEASE 600000",
        "DQ.ACK finished b",
        "DQ.COMPLETE finished c RESULT result",
        "DQ.COMPLETE finished d RETAIN 400000000",
        "DQ.COMPLETE finished e RETAIN 0",
        "DQ.ACK finished f g h",
        "DQ.CANCEL finished h",
        "DQ.PUSH finished x ID g REPLACE DELAY 600000 RETAIN 300000000",
        "DQ.PURGE finished done COUNT 1",
        "DQ.SCHEDULE finished s x EVERY 86400000 AT 100000000001",
        "DQ.POP finished COUNT 5 LEASE 600000",
        "DQ.COMPLETE finished s RESULT gone",
    ];
    for (line, reply) in lines.iter().zip(c.pipeline(lines)) {
        assert!(
            !matches!(reply, Reply::Error(_) | Reply::NullArray | Reply::NullBulk | Reply::Int(0)),
            "{line}: {reply:?}"
        );
    }
    c.multi(&[
        "DQ.MPUSH made 2 x y IDS t u",
        "DQ.CANCEL made t",
        "DQ.RESCHEDULE made u DELAY 600000",
        "DQ.PURGE plain",
    ]);
    c.script("DQ.MPUSH made 2 x y IDS t v DELAY 300000");
    c.script("DQ.CANCEL made v");
    known_of_every_command(c)
}

/// Reads everything that can be read of the queues of `every_command`, with their digests.
pub fn known_of_every_command(c: &mut Client) -> Vec<Reply> {
    let mut known = Vec::new();
    let keys = [
        "made",
        "plain",
        "emptied",
        "purged",
        "more",
        "deduped",
        "limited",
        "series",
        "later",
        "forwarding",
        "hospital",
        "finished",
    ];
    for key in keys {
        known.push(c.ask(format!("DEBUG DIGEST-VALUE {key}")));
        for state in ["delayed", "ready", "inflight", "dead", "done"] {
            known.push(c.ask(format!("DQ.PEEK {key} {state} COUNT 100")));
        }
        let settings = c.about(key);
        let fields = ["paused", "lease", "retries", "backoff-base", "ttl", "maxlen", "maxinflight", "deadlen"];
        known.extend(fields.map(|field| settings.get(field).clone()));
        let fields = [
            "paused-until",
            "closed",
            "closed-until",
            "backoff-jitter",
            "deadttl",
            "maxpayload",
            "dedupe",
            "forward",
            "deadforward",
        ];
        known.extend(fields.map(|field| settings.get(field).clone()));
        known.extend(["known", "rate", "rate-period", "next-delivery"].map(|field| settings.get(field).clone()));
    }
    known
}

impl Cast {
    /// The fields that `DQ.GET` returns for each message.
    pub fn portraits(&self, c: &mut Client, key: &str) -> Vec<Fields> {
        self.ids.iter().map(|id| c.get(key, id)).collect()
    }

    /// Checks that the queue continues as if nothing had happened: counts, order and receipts.
    #[track_caller]
    pub fn expect_alive(&self, c: &mut Client, key: &str) {
        let counts = ["delayed", "ready", "inflight", "dead"].map(|state| c.len(&format!("{key} {state}")));
        assert_eq!(counts, [self.delayed, self.ready, self.inflight, self.dead]);
        assert_eq!(c.ack(format!("{key} {}", self.held)), 1, "the delivery in flight can be acked");
        assert_eq!(c.ack(format!("{key} {}", self.spent)), 1, "a late ack counts");
        let next = c.pop_ids(format!("{key} COUNT 10"));
        assert_eq!(next[0], "lapsed", "it kept its place");
        assert_eq!(next.last().map(String::as_str), Some("replaced"), "the lowest priority comes last");
        assert_eq!(next.len(), 5);
        assert_eq!(c.ack(format!("{key} {}", self.lapsed)), 0, "its receipt went stale with the new delivery");
        let newest = c.push(format!("{key} new"));
        assert!(self.ids.iter().all(|id| id != &newest));
        assert!(self.ids.iter().filter_map(|id| sequence(id)).max() < sequence(&newest), "ids go on rising");
    }
}

/// The two numbers of a generated id, or `None` for a name.
pub fn sequence(id: &str) -> Option<(u64, u64)> {
    let (ms, seq) = id.split_once('-')?;
    Some((ms.parse().ok()?, seq.parse().ok()?))
}
