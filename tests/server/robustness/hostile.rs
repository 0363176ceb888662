//! Hostile input: no dump, effect or argument crashes the server, however it was made.

use crate::support::{effects_of_every_state, eventually, every_state, Client, Random, Reply, Server};

/// The version of the RDB format and the checksum, which end every dump.
const FOOTER: usize = 10;

/// The type of the value and the low bytes of the module type's id, where its encoding version is.
const HEADER: usize = 9;

/// A server that does not verify the checksums of dumps; the types still check their own data.
fn trusting_server() -> Server {
    let server = Server::with(&["--sanitize-dump-payload", "yes", "--dq.allow-effects", "yes"]);
    server.client().ask("DEBUG SET-SKIP-CHECKSUM-VALIDATION 1").ok();
    server
}

fn restore(c: &mut Client, dump: &[u8]) -> Reply {
    c.cmd(&[b"RESTORE", b"hurt".as_slice(), b"0", dump, b"REPLACE"])
}

/// Does everything that can be done with a key. The server must survive it.
fn exercise(c: &mut Client, key: &str) {
    for line in [
        "DQ.INFO {q}",
        "DQ.STATS {q}",
        "DQ.LEN {q}",
        "DQ.LEN {q} dead",
        "DQ.GET {q} held",
        "DQ.GET {q} rejected",
        "DQ.GET {q} 1-1",
        "MEMORY USAGE {q}",
        "DEBUG DIGEST-VALUE {q}",
        "DQ.ACK {q} spent lapsed",
        "DQ.PUSH {q} x ID held REPLACE",
        "DQ.PUSH {q} x PRIORITY 5 DELAY 1",
        "DQ.PEEK {q} delayed COUNT 5",
        "DQ.PEEK {q} dead COUNT 1000",
        "DQ.SCAN {q} 0 COUNT 3",
        "DQ.SCAN {q} 9223372036854775809 COUNT 1000",
        "DQ.RESCHEDULE {q} later DELAY 0",
        "DQ.REDRIVE {q} IDS 2 spent rejected DELAY 1",
        "DQ.CANCEL {q} retried replaced nobody",
        "DQ.MPUSH {q} 3 x y z IDS a held b REPLACE TTL 5",
        "DQ.SCAN {q} 0 RECURRING SEQUENCE",
        "DQ.SCHEDULE {q} later x EVERY 5 TIMES 2",
        "DQ.SCHEDULE {q} spent y CRON @hourly",
        "DQ.BURY {q} spent",
        "DQ.PROMOTE {q}",
        "DQ.PAUSE {q}",
        "DQ.ALTER {q} RETRIES 2 BACKOFF 1 2 MAXINFLIGHT 0 MAXLEN 0 RATE 0 0",
        "DQ.RESUME {q}",
        "DQ.POP {q} COUNT 3 LEASE 1",
        "DQ.NACK {q} held ERROR e",
        "DQ.EXTEND {q} held LEASE 1",
        "DQ.POP {q} COUNT 1000",
        "DQ.POP {q} COUNT 1000 NOACK",
        "DQ.PUSH {q} x ID expired REPLACE TTL 1",
        "DQ.REDRIVE {q}",
        "DQ.MPOP 2 nobody {q} COUNT 2",
        "DQ.PURGE {q} inflight dead",
        "DUMP {q}",
        "COPY {q} copy REPLACE",
        "DQ.INFO copy",
        "DQ.LEN {q} ready",
        "INFO dq",
    ] {
        c.ask(line.replace("{q}", key));
    }
}

/// Checks that the value of a key can be saved and loaded: a server must never keep what it cannot load.
#[track_caller]
fn expect_storable(c: &mut Client, key: &str, made_by: &[u8]) {
    // Between two looks the timer may drop dead messages above the limit in the damaged settings.
    eventually(&format!("what was made by {made_by:02x?} is stored as it is"), || {
        let dump = c.ask(format!("DUMP {key}"));
        if dump.is_null() {
            return true;
        }
        let reply = c.cmd(&[b"RESTORE", b"again".as_slice(), b"0", dump.bytes(), b"REPLACE"]);
        assert_eq!(reply, Reply::Simple("OK".into()), "made by {made_by:02x?}");
        c.digest("again") == c.digest(key)
    });
}

/// Makes a queue with a log of deliveries, known ids, and schedules that wait, run, or are declared again meanwhile.
fn limits_and_schedules(c: &mut Client, key: &str) {
    c.create(format!("{key} RATE 9 600000 DEDUPE 600000000 DEADLEN 3"));
    c.push_many(format!("{key} 3 x y z IDS a b held"));
    c.pop(format!("{key} COUNT 2 NOACK"));
    c.ask(format!("DQ.SCHEDULE {key} later x CRON @daily TZ Europe/Berlin UNTIL 8000000000000 TTL 600000"));
    c.ask(format!("DQ.SCHEDULE {key} spent x EVERY 77 AT 100000000001 TIMES 9 RETRIES 0 PRIORITY 9"));
    c.pop(format!("{key} LEASE 600000"));
    c.ask(format!("DQ.SCHEDULE {key} spent another EVERY 600000 OFFSET 7 LEASE 5"));
    c.pop(format!("{key} LEASE 600000"));
}

/// Dumps of a queue with a message in every state, small and large.
fn dumps(c: &mut Client) -> Vec<Vec<u8>> {
    every_state(c, "q");
    let all = c.ask("DUMP q").bytes().to_vec();
    c.push("small x ID held");
    c.pop_one("small");
    limits_and_schedules(c, "limited");
    vec![c.ask("DUMP small").bytes().to_vec(), all, c.ask("DUMP limited").bytes().to_vec()]
}

#[test]
fn a_dump_cut_short_anywhere_is_refused() {
    let server = trusting_server();
    let mut c = server.client();
    for dump in dumps(&mut c) {
        let (body, footer) = dump.split_at(dump.len() - FOOTER);
        // This goes byte by byte through the structure, and with longer steps through the large payload.
        let step = |at: usize| if body.len() > 5_000 && (2_000..body.len() - 2_000).contains(&at) { 997 } else { 1 };
        let mut len = 0;
        while len < body.len() {
            let cut = [&body[..len], footer].concat();
            let reply = restore(&mut c, &cut);
            assert!(matches!(reply, Reply::Error(_)), "cut at {len} of {}: {reply:?}", body.len());
            len += step(len);
        }
        restore(&mut c, &dump).ok();
    }
    assert_eq!(c.ask("PING"), Reply::Simple("PONG".into()));
}

#[test]
fn a_dump_with_a_wrong_byte_is_refused_or_harmless() {
    let server = trusting_server();
    let mut c = server.client();
    let mut random = Random::seeded(3);
    for dump in dumps(&mut c) {
        let body = dump.len() - FOOTER;
        for _ in 0..4_000 {
            // The structure is at both ends; the rest is mostly one large payload.
            let window = body.min(1_500);
            let place = random.below(window);
            let place = if random.below(2) == 0 { place } else { body - 1 - place };
            if place < HEADER {
                continue;
            }
            let mut hurt = dump.clone();
            hurt[place] = match random.below(5) {
                0 => 0,
                1 => 0xff,
                2 => 0x7f,
                3 => hurt[place] ^ (1 << random.below(8)),
                _ => random.any() as u8,
            };
            if !matches!(restore(&mut c, &hurt), Reply::Error(_)) {
                expect_storable(&mut c, "hurt", &[]);
                exercise(&mut c, "hurt");
                expect_storable(&mut c, "hurt", &[]);
            }
        }
    }
    assert_eq!(c.ask("PING"), Reply::Simple("PONG".into()));
}

#[test]
fn a_dump_of_another_encoding_is_refused() {
    let server = trusting_server();
    let mut c = server.client();
    for dump in dumps(&mut c) {
        for version in 0..=255 {
            let mut other = dump.clone();
            if other[HEADER] != version {
                other[HEADER] = version;
                assert!(matches!(restore(&mut c, &other), Reply::Error(_)), "version {version}");
            }
        }
    }
}

#[test]
fn a_dump_of_noise_is_refused() {
    let server = trusting_server();
    let mut c = server.client();
    let mut random = Random::seeded(4);
    let dump = dumps(&mut c).remove(0);
    for _ in 0..3_000 {
        let len = random.below(300);
        let noise = random.bytes(len);
        let noisy = [&dump[..=HEADER], &noise, &dump[dump.len() - FOOTER..]].concat();
        assert!(matches!(restore(&mut c, &noisy), Reply::Error(_)));
    }
}

/// Sends an effect with the checksum that it must have, so that what is behind it is looked at.
fn apply(c: &mut Client, key: &str, effect: &[u8]) -> Reply {
    let mut sealed = effect.to_vec();
    dq_queue::wire::seal(&mut sealed);
    c.cmd(&[b"DQ.E", key.as_bytes(), &sealed])
}

#[test]
fn effects_out_of_order_are_refused_or_harmless() {
    let server = trusting_server();
    let mut c = server.client();
    let mut random = Random::seeded(8);
    let (mut effects, _) = effects_of_every_state();
    effects.retain(|effect| effect.len() < 2_000);
    for _ in 0..150 {
        c.ask("DEL q");
        for _ in 0..3 * effects.len() {
            let effect = random.one_of(&effects);
            if !matches!(apply(&mut c, "q", effect), Reply::Error(_)) {
                expect_storable(&mut c, "q", effect);
            }
        }
        exercise(&mut c, "q");
    }
}

#[test]
fn an_effect_cut_short_anywhere_is_refused() {
    let server = trusting_server();
    let mut c = server.client();
    for effect in effects_of_every_state().0 {
        let digest = c.ask("DEBUG DIGEST-VALUE q");
        for len in (0..effect.len()).filter(|len| *len < 300 || effect.len() - len < 300) {
            let reply = apply(&mut c, "q", &effect[..len]);
            assert!(matches!(reply, Reply::Error(_)), "cut at {len} of {}: {reply:?}", effect.len());
        }
        assert_eq!(c.ask("DEBUG DIGEST-VALUE q"), digest, "what is refused changes nothing");
        apply(&mut c, "q", &effect);
    }
}

#[test]
fn an_effect_with_a_wrong_byte_is_refused_or_harmless() {
    let server = trusting_server();
    let mut c = server.client();
    let mut random = Random::seeded(5);
    let (effects, _) = effects_of_every_state();
    for round in 0..4_000 {
        let mut effect = random.one_of(&effects).clone();
        for _ in 0..=random.below(3) {
            let place = random.below(effect.len().min(200));
            let noise = random.any() as u8;
            effect[place] = *random.one_of(&[0, 1, 0x7f, 0x80, 0xcf, 0xd3, 0xdf, 0xff, noise]);
        }
        if !matches!(apply(&mut c, "hurt", &effect), Reply::Error(_)) {
            expect_storable(&mut c, "hurt", &effect);
        }
        if round % 100 == 0 {
            exercise(&mut c, "hurt");
            expect_storable(&mut c, "hurt", &effect);
        }
        if round % 500 == 0 {
            c.ask("DEL hurt");
        }
    }
    assert_eq!(c.ask("PING"), Reply::Simple("PONG".into()));
}

#[test]
fn an_effect_of_noise_is_refused() {
    let server = trusting_server();
    let mut c = server.client();
    every_state(&mut c, "q");
    let digest = c.digest("q");
    let mut random = Random::seeded(6);
    for _ in 0..5_000 {
        let len = random.below(60);
        let noise = random.bytes(len);
        apply(&mut c, "q", &noise);
        apply(&mut c, "absent", &noise);
    }
    for first in 0..=255 {
        // Huge lengths of every MessagePack form, with no data after them.
        apply(&mut c, "q", &[first, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        apply(&mut c, "q", &[1, 0x92, first, 0xdd, 0xff, 0xff, 0xff, 0xff, 0xc6, 0xff, 0xff, 0xff, 0xff]);
    }
    assert_eq!(c.digest("q"), digest);
    let memory: u64 = c.info("memory", "used_memory_peak").parse().unwrap();
    assert!(memory < 200_000_000, "nothing large was allocated: {memory}");
}

#[test]
fn no_mix_of_words_brings_the_server_down() {
    let server = Server::start();
    let mut c = server.client();
    let mut random = Random::seeded(7);
    let names = ["DQ.PUSH", "DQ.POP", "DQ.ACK", "DQ.NACK", "DQ.EXTEND", "DQ.LEN", "DQ.GET", "DQ.INFO", "DQ.E", "DEL"];
    let words = [
        "q",
        "r",
        "m",
        "n",
        "m#1",
        "1-1",
        "ID",
        "DELAY",
        "AT",
        "PRIORITY",
        "RETRIES",
        "LEASE",
        "TTL",
        "REPLACE",
        "COUNT",
        "NOACK",
        "ERROR",
        "DEAD",
        "ready",
        "dead",
        "0",
        "1",
        "-1",
        "5",
        "127",
        "-128",
        "100",
        "2147483647",
        "4398046511103",
        "8796093022207",
        "9007199254740991",
        "9223372036854775807",
        "-9223372036854775808",
        "\"\"",
        "#",
        "%s%n%d",
        "\u{fffd}",
    ];
    for _ in 0..30 {
        let lines: Vec<String> = (0..1_000)
            .map(|_| {
                let mut line = format!("{} {}", random.one_of(&names), random.one_of(&["q", "q", "q", "r"]));
                for _ in 0..random.below(7) {
                    line = format!("{line} {}", random.one_of(&words));
                }
                line
            })
            .collect();
        c.pipeline(lines);
        c.ask("DEBUG RELOAD").ok();
    }
    c.push("q x ID end REPLACE");
    assert_eq!(c.state("q", "end"), "ready");
}

#[test]
fn a_count_far_beyond_what_is_there_costs_nothing() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x");
    assert_eq!(c.pop("q COUNT 2147483647").len(), 1);
    assert!(c.pop("q COUNT 2147483647").is_empty());
    let memory: u64 = c.info("memory", "used_memory_peak").parse().unwrap();
    assert!(memory < 100_000_000, "{memory}");
}
