//! Short names for the queue commands that tests use.

use super::client::Client;
use super::reply::{Fields, Reply};
use super::wait::{eventually, late_ms};

/// A lease that outlives the test.
const LONG_LEASE_MS: i64 = 600_000;

/// A message that was delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub id: String,
    pub payload: Vec<u8>,
    pub attempt: i64,
    /// The receipt; `None` after `NOACK`.
    pub receipt: Option<String>,
}

impl Message {
    #[track_caller]
    fn from(reply: &Reply) -> Message {
        let [id, payload, attempt, receipt] = reply.items() else {
            panic!("a message is [id, payload, attempt, receipt], not {reply:?}");
        };
        Message {
            id: id.text(),
            payload: payload.bytes().to_vec(),
            attempt: attempt.int(),
            receipt: (!receipt.is_null()).then(|| receipt.text()),
        }
    }

    /// The messages in a reply of `DQ.POP`.
    #[track_caller]
    pub fn all(reply: &Reply) -> Vec<Message> {
        reply.items().iter().map(Message::from).collect()
    }

    /// The receipt of a delivery that was not made with `NOACK`.
    #[track_caller]
    pub fn receipt(&self) -> &str {
        self.receipt.as_deref().expect("a receipt")
    }
}

/// The key and the messages in a reply of `DQ.MPOP`.
#[track_caller]
fn from_any(reply: &Reply) -> (String, Vec<Message>) {
    let [key, messages] = reply.items() else { panic!("[key, [message ...]], not {reply:?}") };
    (key.text(), Message::all(messages))
}

impl Client {
    /// `DQ.PUSH` with this line. Returns the id.
    #[track_caller]
    pub fn push(&mut self, line: impl AsRef<str>) -> String {
        self.ask(format!("DQ.PUSH {}", line.as_ref())).text()
    }

    /// `DQ.POP` with this line. Returns no message if nothing is ready.
    #[track_caller]
    pub fn pop(&mut self, line: impl AsRef<str>) -> Vec<Message> {
        let reply = self.ask(format!("DQ.POP {}", line.as_ref()));
        if reply.is_null() {
            return Vec::new();
        }
        Message::all(&reply)
    }

    /// `DQ.POP` with this line, which must return exactly one message.
    #[track_caller]
    pub fn pop_one(&mut self, line: impl AsRef<str>) -> Message {
        let mut messages = self.pop(line);
        assert_eq!(messages.len(), 1, "one message, not {messages:?}");
        messages.remove(0)
    }

    /// `DQ.POP` with this line. Returns the ids in the order of delivery.
    #[track_caller]
    pub fn pop_ids(&mut self, line: impl AsRef<str>) -> Vec<String> {
        self.pop(line).into_iter().map(|message| message.id).collect()
    }

    /// Blocks on `key` for one message, with a lease that outlives the test.
    #[track_caller]
    pub fn wait_for_message(&mut self, key: &str) {
        self.send(format!("DQ.POP {key} BLOCK 0 LEASE {LONG_LEASE_MS}"));
    }

    /// Returns the message for which this client was blocked.
    #[track_caller]
    pub fn served(&mut self) -> Message {
        let reply = self.receive();
        assert_eq!(reply.items().len(), 1, "one message, not {reply:?}");
        Message::from(&reply.items()[0])
    }

    /// `DQ.ACK` with this line. Returns how many were removed.
    #[track_caller]
    pub fn ack(&mut self, line: impl AsRef<str>) -> i64 {
        self.ask(format!("DQ.ACK {}", line.as_ref())).int()
    }

    /// `DQ.NACK` with this line. Returns the new state.
    #[track_caller]
    pub fn nack(&mut self, line: impl AsRef<str>) -> String {
        self.ask(format!("DQ.NACK {}", line.as_ref())).text()
    }

    /// `DQ.EXTEND` with this line. Returns the new deadline.
    #[track_caller]
    pub fn extend(&mut self, line: impl AsRef<str>) -> i64 {
        self.ask(format!("DQ.EXTEND {}", line.as_ref())).int()
    }

    /// `DQ.MPUSH` with this line. Returns an id for each payload, `None` for a duplicate.
    #[track_caller]
    pub fn push_many(&mut self, line: impl AsRef<str>) -> Vec<Option<String>> {
        let reply = self.ask(format!("DQ.MPUSH {}", line.as_ref()));
        reply.items().iter().map(|id| (!id.is_null()).then(|| id.text())).collect()
    }

    /// `DQ.MPOP` with this line. Returns the key and its messages, `None` if nothing is ready.
    #[track_caller]
    pub fn pop_any(&mut self, line: impl AsRef<str>) -> Option<(String, Vec<Message>)> {
        let reply = self.ask(format!("DQ.MPOP {}", line.as_ref()));
        (!reply.is_null()).then(|| from_any(&reply))
    }

    /// Blocks on several keys for one message, with a lease that outlives the test.
    #[track_caller]
    pub fn wait_for_any(&mut self, keys: &[&str]) {
        self.send(format!("DQ.MPOP {} {} BLOCK 0 LEASE {LONG_LEASE_MS}", keys.len(), keys.join(" ")));
    }

    /// Returns the key and the message for which this client was blocked.
    #[track_caller]
    pub fn served_from_any(&mut self) -> (String, Message) {
        let (key, mut messages) = from_any(&self.receive());
        assert_eq!(messages.len(), 1, "one message, not {messages:?}");
        (key, messages.remove(0))
    }

    /// `DQ.CANCEL` with this line. Returns the former state of each, `absent` for missing messages.
    #[track_caller]
    pub fn cancel(&mut self, line: impl AsRef<str>) -> Vec<String> {
        let reply = self.ask(format!("DQ.CANCEL {}", line.as_ref()));
        reply.items().iter().map(|state| if state.is_null() { "absent".to_owned() } else { state.text() }).collect()
    }

    /// `DQ.RESCHEDULE` with this line. Returns 1 if it was moved.
    #[track_caller]
    pub fn reschedule(&mut self, line: impl AsRef<str>) -> i64 {
        self.ask(format!("DQ.RESCHEDULE {}", line.as_ref())).int()
    }

    /// `DQ.REDRIVE` with this line. Returns how many were redriven.
    #[track_caller]
    pub fn redrive(&mut self, line: impl AsRef<str>) -> i64 {
        self.ask(format!("DQ.REDRIVE {}", line.as_ref())).int()
    }

    /// `DQ.PURGE` with this line. Returns how many were removed.
    #[track_caller]
    pub fn purge(&mut self, line: impl AsRef<str>) -> i64 {
        self.ask(format!("DQ.PURGE {}", line.as_ref())).int()
    }

    /// `DQ.PEEK` with this line. Returns the fields of each message.
    #[track_caller]
    pub fn peek(&mut self, line: impl AsRef<str>) -> Vec<Fields> {
        self.ask(format!("DQ.PEEK {}", line.as_ref())).items().iter().map(Reply::fields).collect()
    }

    /// `DQ.PEEK` with this line. Returns the ids in order.
    #[track_caller]
    pub fn peek_ids(&mut self, line: impl AsRef<str>) -> Vec<String> {
        self.peek(line).iter().map(|message| message.text("id")).collect()
    }

    /// `DQ.SCAN` with this line. Returns the cursor of the next page, and this page.
    #[track_caller]
    pub fn scan(&mut self, line: impl AsRef<str>) -> (String, Vec<Fields>) {
        let reply = self.ask(format!("DQ.SCAN {}", line.as_ref()));
        let [cursor, page] = reply.items() else { panic!("a page is [cursor, [message ...]], not {reply:?}") };
        (cursor.text(), page.items().iter().map(Reply::fields).collect())
    }

    /// Scans the whole queue with these options. Returns the ids, sorted.
    #[track_caller]
    pub fn scan_ids(&mut self, key: &str, options: &str) -> Vec<String> {
        let (mut cursor, mut ids) = ("0".to_owned(), Vec::new());
        loop {
            let (next, page) = self.scan(format!("{key} {cursor} {options}"));
            ids.extend(page.iter().map(|message| message.text("id")));
            if next == "0" {
                break;
            }
            cursor = next;
        }
        ids.sort_unstable();
        ids
    }

    /// `DQ.CREATE` with this line.
    #[track_caller]
    pub fn create(&mut self, line: impl AsRef<str>) {
        self.ask(format!("DQ.CREATE {}", line.as_ref())).ok();
    }

    /// `DQ.ALTER` with this line.
    #[track_caller]
    pub fn alter(&mut self, line: impl AsRef<str>) {
        self.ask(format!("DQ.ALTER {}", line.as_ref())).ok();
    }

    /// `DQ.PAUSE` of a queue.
    #[track_caller]
    pub fn pause(&mut self, key: &str) {
        self.ask(format!("DQ.PAUSE {key}")).ok();
    }

    /// `DQ.RESUME` of a queue.
    #[track_caller]
    pub fn resume(&mut self, key: &str) {
        self.ask(format!("DQ.RESUME {key}")).ok();
    }

    /// Pushes messages and nacks each with `DEAD` at once, so that they become dead in this order.
    #[track_caller]
    pub fn bury(&mut self, key: &str, ids: &[&str]) {
        for id in ids {
            self.push(format!("{key} x ID {id} PRIORITY 127 DELAY 0"));
            assert_eq!(self.pop_ids(key), [*id], "the one just pushed comes first");
            assert_eq!(self.nack(format!("{key} {id} DEAD")), "dead");
        }
    }

    /// The numbers of delayed, ready, in-flight and dead messages.
    #[track_caller]
    pub fn counts(&mut self, key: &str) -> [i64; 4] {
        ["delayed", "ready", "inflight", "dead"].map(|state| self.len(&format!("{key} {state}")))
    }

    /// The number of changes since the last save, as the server counts them.
    #[track_caller]
    pub fn changes(&mut self) -> String {
        self.info("persistence", "rdb_changes_since_last_save")
    }

    /// Runs a command in a script. Its nulls arrive as null bulk strings.
    #[track_caller]
    pub fn script(&mut self, line: &str) -> Reply {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut args = vec!["EVAL", "return redis.call(unpack(ARGV))", "0"];
        args.extend(words);
        self.cmd(&args)
    }

    /// `DQ.GET` of a message that exists.
    #[track_caller]
    pub fn get(&mut self, key: &str, id: &str) -> Fields {
        self.ask(format!("DQ.GET {key} {id}")).fields()
    }

    /// The state of a message, `absent` if there is none with this id.
    #[track_caller]
    pub fn state(&mut self, key: &str, id: &str) -> String {
        let reply = self.ask(format!("DQ.GET {key} {id}"));
        if reply.is_null() {
            "absent".to_owned()
        } else {
            reply.fields().text("state")
        }
    }

    /// Waits until a message is in a state.
    #[track_caller]
    pub fn until_state(&mut self, key: &str, id: &str, state: &str) {
        eventually(&format!("{id} is {state}"), || self.state(key, id) == state);
    }

    /// `DQ.LEN` with this line.
    #[track_caller]
    pub fn len(&mut self, line: &str) -> i64 {
        self.ask(format!("DQ.LEN {line}")).int()
    }

    /// `DQ.INFO` of a queue that exists.
    #[track_caller]
    pub fn about(&mut self, key: &str) -> Fields {
        self.ask(format!("DQ.INFO {key}")).fields()
    }

    /// `DQ.INFO` of a queue without the fields that time alone changes.
    #[track_caller]
    pub fn about_but_time(&mut self, key: &str) -> Fields {
        self.about(key).without(&[
            "oldest-ready",
            "oldest-inflight",
            "oldest-dead",
            "newest-dead",
            "last-death",
            "last-delivery",
        ])
    }

    /// The digest of the records, settings and counters of a queue. Equal content has equal digests.
    #[track_caller]
    pub fn digest(&mut self, key: &str) -> String {
        self.ask(format!("DEBUG DIGEST-VALUE {key}")).items()[0].text()
    }

    /// The time of the server's clock, in Unix ms.
    #[track_caller]
    pub fn now(&mut self) -> i64 {
        let time = self.ask("TIME");
        let part = |n: usize| time.items()[n].text().parse::<i64>().expect("a number");
        part(0) * 1000 + part(1) / 1000
    }

    /// The latest time that the server can have seen so far, for a check that something is not early.
    #[track_caller]
    pub fn latest_now(&mut self) -> i64 {
        self.now() + self.clock_error()
    }

    /// How far two readings of the server's clock may contradict each other, in ms. That of Valkey 9.1 may run ahead by
    /// up to a millisecond and then step back, unless it is that of POSIX: see docs/internals/faults.md.
    #[track_caller]
    fn clock_error(&mut self) -> i64 {
        i64::from(!self.info("server", "monotonic_clock").starts_with("POSIX"))
    }

    /// Waits until no rewrite of the AOF is running or scheduled.
    #[track_caller]
    pub fn until_rewritten(&mut self) {
        eventually("the AOF is rewritten", || {
            // The order matters: a rewrite that is no longer scheduled has begun, and is in progress until it ends.
            let fields = ["aof_rewrite_scheduled", "aof_rewrite_in_progress"];
            fields.iter().all(|field| self.info("persistence", field) == "0")
        });
    }

    /// Waits until the server's clock has passed an instant.
    #[track_caller]
    pub fn until_after(&mut self, instant: i64) {
        eventually("the clock has passed an instant", || self.now() > instant);
    }

    /// Checks that `act` returns an instant that is `ms` after the server's time during the call. Returns this instant.
    #[track_caller]
    pub fn expect_ms_from_now(&mut self, ms: i64, act: impl FnOnce(&mut Client) -> i64) -> i64 {
        let before = self.now() - self.clock_error();
        let instant = act(self);
        let after = self.latest_now();
        assert!(before + ms <= instant && instant <= after + ms, "{before} + {ms} <= {instant} <= {after} + {ms}");
        instant
    }

    /// Checks that a message that is now leased to `wait_for_message` was delivered at `due` or at most `late_ms`
    /// later, according to the server's clock and to its deadline.
    #[track_caller]
    pub fn expect_delivered_at(&mut self, key: &str, id: &str, due: i64) {
        let now = self.latest_now();
        assert!(now >= due, "{id} was delivered {} ms early by the clock", due - now);
        let delivered = self.get(key, id).int("deadline") - LONG_LEASE_MS;
        assert!(delivered >= due, "{id} was delivered {} ms early", due - delivered);
        assert!(delivered <= due + late_ms(), "{id} was delivered {} ms late", delivered - due);
    }

    /// One field of a section of `INFO`, or an empty string if there is none.
    #[track_caller]
    pub fn info(&mut self, section: &str, field: &str) -> String {
        let text = self.ask(format!("INFO {section}")).text();
        let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        value.unwrap_or_default().trim().to_owned()
    }

    /// Waits until this many clients of the server are blocked.
    #[track_caller]
    pub fn until_blocked(&mut self, clients: usize) {
        let clients = clients.to_string();
        eventually("clients are blocked", || self.info("clients", "blocked_clients") == clients);
    }

    /// `CONFIG SET`, which must succeed.
    #[track_caller]
    pub fn configure(&mut self, parameter: &str, value: impl ToString) {
        self.cmd(&["CONFIG", "SET", parameter, &value.to_string()]).ok();
    }
}
