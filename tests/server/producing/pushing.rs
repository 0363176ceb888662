//! DQ.PUSH: ids, due times and the other options of a push.

use crate::support::{in_both_protocols, sequence, Reply, Server};

#[test]
fn a_push_answers_with_an_id_of_milliseconds_and_sequence() {
    in_both_protocols(|c| {
        let before = c.now();
        let reply = c.ask("DQ.PUSH q hello");
        let after = c.now();
        assert!(matches!(reply, Reply::Bulk(_)), "a bulk string, not {reply:?}");
        let (ms, _) = sequence(&reply.text()).expect("digits, a dash and digits");
        assert!((before..=after).contains(&i64::try_from(ms).unwrap()), "{before} <= {ms} <= {after}");
        assert_eq!(c.get("q", &reply.text()).text("payload"), "hello");
    });
}

#[test]
fn generated_ids_rise_strictly() {
    let server = Server::start();
    let mut c = server.client();
    let lines = (0..3000).map(|n| match n % 3 {
        0 => "DQ.PUSH q x",
        1 => "DQ.PUSH q x DELAY 100000",
        _ => "DQ.PUSH q x PRIORITY 9 AT 1000000000005",
    });
    let ids: Vec<_> = c.pipeline(lines).iter().map(|reply| sequence(&reply.text()).unwrap()).collect();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
}

#[test]
fn generated_ids_do_not_repeat_after_the_queue_is_gone() {
    let mut server = Server::start();
    let mut c = server.client();
    let mut last = sequence(&c.push("q x")).unwrap();
    for line in ["DQ.POP q NOACK", "DEL q", "UNLINK q", "FLUSHALL", "RENAME q elsewhere", "DEBUG RELOAD"] {
        c.ask(line);
        let next = sequence(&c.push("q x")).unwrap();
        assert!(last < next, "after {line}: {last:?} < {next:?}");
        last = next;
    }
    server.restart_from_rdb();
    assert!(last < sequence(&server.client().push("q x")).unwrap());
}

#[test]
fn ids_restored_from_a_dump_are_not_used_again() {
    let server = Server::start();
    let mut c = server.client();
    let old = sequence(&c.push("q x")).unwrap();
    let dump = c.ask("DUMP q");
    c.ask("DEL q");
    c.cmd(&[b"RESTORE", b"q".as_slice(), b"0", dump.bytes()]).ok();
    assert!(old < sequence(&c.push("q y")).unwrap());
}

#[test]
fn a_producer_may_name_a_message_itself() {
    in_both_protocols(|c| {
        assert_eq!(c.ask("DQ.PUSH q hello ID order:17"), Reply::bulk("order:17"));
        assert_eq!(c.get("q", "order:17").text("payload"), "hello");
        let message = c.pop_one("q");
        assert_eq!(message.id, "order:17");
        assert!(message.receipt().starts_with("order:17#"), "{message:?}");
    });
}

#[test]
fn a_name_may_hold_any_byte_but_the_hash() {
    let server = Server::start();
    let mut c = server.client();
    let longest = [b'n'; 255];
    let almost_generated = [
        b"1-".as_slice(),
        b"-1",
        b"1-2-3",
        b"1-2x",
        b"12",
        b"-",
        b"1_2",
        b"1001-5",
        b"2024-01",
        b"99999999999-0",
        b"100000000000-",
        b"100000000000-2x",
        b"100000000000-2-3",
    ];
    let odd = [b"\0".as_slice(), b"\r\n", b" ", b"\xff\xfe\x00\x80", "ключ".as_bytes(), &longest];
    for name in almost_generated.into_iter().chain(odd) {
        assert_eq!(c.cmd(&[b"DQ.PUSH", b"q".as_slice(), b"x", b"ID", name]), Reply::bulk(name));
        assert_eq!(c.cmd(&[b"DQ.GET", b"q".as_slice(), name]).fields().get("id"), &Reply::bulk(name));
        let popped = c.ask("DQ.POP q");
        let message = popped.items()[0].items();
        assert_eq!(message[0], Reply::bulk(name));
        assert_eq!(c.cmd(&[b"DQ.ACK", b"q".as_slice(), message[3].bytes()]), Reply::Int(1), "by its receipt");
    }
}

#[test]
fn an_id_that_resembles_a_generated_one_is_refused() {
    let server = Server::start();
    let mut c = server.client();
    let too_long = [b'n'; 256];
    let refused = [
        b"".as_slice(),
        b"#",
        b"a#1",
        b"a#",
        b"#1",
        b"100000000000-2",
        b"000000000000-0",
        b"1786000000000-0",
        b"001786000000-1",
        &too_long,
    ];
    for name in refused {
        let reply = c.cmd(&[b"DQ.PUSH", b"q".as_slice(), b"x", b"ID", name]);
        assert!(reply.error().starts_with("ERR "), "{reply:?}");
    }
    assert_eq!(c.ask("EXISTS q"), Reply::Int(0), "a refused push creates nothing");
}

#[test]
fn a_duplicate_id_answers_null_and_changes_nothing() {
    in_both_protocols(|c| {
        c.push("q first ID m PRIORITY 3 RETRIES 2");
        let (digest, about) = (c.digest("q"), c.about_but_time("q"));
        assert_eq!(c.ask("DQ.PUSH q second ID m DELAY 5000 PRIORITY 4 TTL 1"), c.null());
        assert_eq!(c.digest("q"), digest);
        assert_eq!(c.about("q").int("duplicates"), 1);
        assert_eq!(c.about_but_time("q").without(&["duplicates"]), about.without(&["duplicates"]));
        assert_eq!(c.pop_one("q").payload, b"first");
    });
}

#[test]
fn an_id_is_taken_in_every_state_of_its_message() {
    let server = Server::start();
    let mut c = server.client();
    let duplicate = |c: &mut crate::support::Client| assert!(c.ask("DQ.PUSH q y ID m").is_null());
    let dead = "DEADID message m is dead: REPLACE it, or DQ.REDRIVE or DQ.CANCEL it first";
    c.push("q x ID m DELAY 50");
    duplicate(&mut c);
    c.until_state("q", "m", "ready");
    duplicate(&mut c);
    let receipt = c.pop_one("q").receipt().to_owned();
    duplicate(&mut c);
    assert_eq!(c.nack(format!("q {receipt} DEAD")), "dead");
    assert_eq!(c.ask("DQ.PUSH q y ID m").error(), dead, "a dead one does not look like success");
    c.ask("DEL q");
    assert_eq!(c.push("q x ID m"), "m");
    c.pop_one("q NOACK");
    assert_eq!(c.push("q x ID m"), "m", "once it is gone, its name is free");
}

#[test]
fn the_same_id_may_stand_in_two_queues() {
    let server = Server::start();
    let mut c = server.client();
    assert_eq!(c.push("here x ID m"), "m");
    assert_eq!(c.push("there x ID m"), "m");
    assert_eq!((c.len("here"), c.len("there")), (1, 1));
}

#[test]
fn a_payload_is_any_bytes_none_and_many_included() {
    in_both_protocols(|c| {
        let every: Vec<u8> = (0..=255).collect();
        let large: Vec<u8> = (0..5_000_000_u32).map(|n| (n * 31) as u8).collect();
        for payload in [b"".as_slice(), b"\0", b"\r\n$-1\r\n", &every, &large] {
            let id = c.cmd(&[b"DQ.PUSH", b"q".as_slice(), payload]).text();
            assert_eq!(c.get("q", &id).get("payload").bytes(), payload);
            assert_eq!(c.pop_one("q NOACK").payload, payload);
        }
    });
}

#[test]
fn a_payload_may_look_like_an_option() {
    let server = Server::start();
    let mut c = server.client();
    for payload in ["DELAY", "ID", "REPLACE"] {
        c.push(format!("q {payload}"));
        assert_eq!(c.pop_one("q NOACK").payload, payload.as_bytes());
    }
}

#[test]
fn options_come_in_any_order_and_any_case() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x priority 5 delay 100000 Id m rEtRiEs 3 ttl 70 lease 80");
    let message = c.get("q", "m");
    let numbers = ["priority", "retries", "ttl", "lease"].map(|name| message.int(name));
    assert_eq!(numbers, [5, 3, 70, 80]);
    assert_eq!(message.text("state"), "delayed");
}

#[test]
fn delay_counts_from_the_push() {
    let server = Server::start();
    let mut c = server.client();
    c.expect_ms_from_now(40_000, |c| {
        c.push("q x ID m DELAY 40000");
        c.get("q", "m").int("due")
    });
    let message = c.get("q", "m");
    assert_eq!(message.int("due"), message.int("created") + 40_000);
    assert_eq!(message.text("state"), "delayed");
}

#[test]
fn the_longest_delay_and_the_last_time_are_kept_exactly() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID long DELAY 4398046511103");
    let long = c.get("q", "long");
    assert_eq!(long.int("due"), long.int("created") + 4_398_046_511_103);
    c.push("q x ID last AT 8796093022207");
    assert_eq!(c.get("q", "last").int("due"), 8_796_093_022_207);
}

#[test]
fn sums_beyond_the_last_time_end_there() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m AT 8796093022207 TTL 4398046511103");
    c.push("q x ID n DELAY 4398046511103 TTL 4398046511103");
    assert_eq!(["m", "n"].map(|id| c.get("q", id).int("ttl")), [4_398_046_511_103; 2]);
    assert_eq!(["m", "n"].map(|id| c.state("q", id)), ["delayed"; 2]);
    let digest = c.digest("q");
    c.ask("DEBUG RELOAD").ok();
    assert_eq!(c.digest("q"), digest);
}

#[test]
fn at_names_the_instant_itself() {
    let server = Server::start();
    let mut c = server.client();
    let at = c.now() + 60_000;
    c.push(format!("q x ID m AT {at}"));
    assert_eq!(c.get("q", "m").int("due"), at);
    assert_eq!(c.state("q", "m"), "delayed");
}

#[test]
fn a_zero_delay_or_past_time_is_ready_at_once() {
    let server = Server::start();
    let mut c = server.client();
    for options in ["", "DELAY 0", "AT 100000000000", "AT 1000000000000"] {
        let id = c.push(format!("q x {options}"));
        assert_eq!(c.state("q", &id), "ready", "{options}");
        assert_eq!(c.len("q ready"), 1, "{options}");
        assert_eq!(c.pop_one("q NOACK").id, id, "{options}");
    }
}

#[test]
fn a_time_past_keeps_its_place_in_the_order() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID now");
    c.push("q x ID later AT 1000000002000");
    c.push("q x ID sooner AT 1000000001000");
    assert_eq!(c.get("q", "sooner").int("due"), 1_000_000_001_000, "nothing is clamped in silence");
    assert_eq!(c.pop_ids("q COUNT 3"), ["sooner", "later", "now"]);
}

#[test]
fn what_a_push_does_not_say_the_queue_says() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID plain");
    let plain = c.get("q", "plain");
    let numbers = ["priority", "attempt", "retries", "lease", "ttl"].map(|name| plain.int(name));
    assert_eq!(numbers, [0, 0, 16, 30_000, 0]);
    c.push("q x ID own PRIORITY -128 RETRIES -1 LEASE 1 TTL 4398046511103");
    let own = c.get("q", "own");
    let numbers = ["priority", "attempt", "retries", "lease", "ttl"].map(|name| own.int(name));
    assert_eq!(numbers, [-128, 0, -1, 1, 4_398_046_511_103]);
}

#[test]
fn a_dead_duplicate_is_told_apart_and_changes_nothing() {
    in_both_protocols(|c| {
        c.bury("q", &["m"]);
        let dead = "DEADID message m is dead: REPLACE it, or DQ.REDRIVE or DQ.CANCEL it first";
        let (digest, changes, about) = (c.digest("q"), c.changes(), c.about_but_time("q"));
        assert_eq!(c.ask("DQ.PUSH q x ID m DELAY 5").error(), dead);
        assert_eq!(c.ask("DQ.MPUSH q 1 x IDS m"), Reply::Array(vec![Reply::Error(dead.to_owned())]));
        assert_eq!((c.digest("q"), c.changes(), c.about_but_time("q")), (digest, changes, about));
        // The rest of the batch is pushed, however the batch is sent.
        let expected = Reply::Array(vec![Reply::bulk("a"), Reply::Error(dead.to_owned()), Reply::bulk("b")]);
        assert_eq!(c.multi(&["DQ.MPUSH q 3 1 2 3 IDS a m b"]), [expected]);
        let script = "local r = redis.call('DQ.MPUSH', 'q', '2', '1', '2', 'IDS', 'm', 'c') \
                      return {type(r[1]), r[1].err, r[2]}";
        match c.cmd(&["EVAL", script, "0"]) {
            // Valkey 9.1 treats a reply that contains an error as an error. The batch was pushed nevertheless.
            Reply::Error(error) => assert!(error.starts_with(dead), "{error}"),
            reply => {
                let [kind, error, id] = reply.items() else { panic!("{reply:?}") };
                assert_eq!((kind.text().as_str(), id), ("table", &Reply::bulk("c")));
                assert!(error.text().starts_with(dead), "{error:?}");
            }
        }
        assert_eq!(c.counts("q"), [0, 3, 0, 1]);
        assert_eq!(c.push("q x ID m REPLACE"), "m");
    });
}

#[test]
fn a_dead_duplicate_is_told_though_the_queue_is_full() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q MAXLEN 1");
    c.bury("q", &["m"]);
    c.push("q x");
    assert!(c.ask("DQ.PUSH q x ID m").error().starts_with("DEADID "));
    assert_eq!(c.ask("DQ.PUSH q x ID new").error(), "QUEUEFULL queue holds 1 message (MAXLEN)");
}

#[test]
fn ids_that_could_not_be_generated_ones_survive_a_restart() {
    let mut server = Server::with_aof(&[]);
    let mut c = server.client();
    for id in ["1001-5", "2024-01", "99999999999-0", "0-0"] {
        assert_eq!(c.push(format!("q {id} ID {id} PRIORITY 9")), id);
        let receipt = c.pop_one("q").receipt().to_owned();
        assert_eq!(receipt.split_once('#').unwrap().0, id);
        assert_eq!(c.ack(format!("q {receipt}")), 1, "{id}");
        c.push(format!("q {id} ID {id}"));
        assert!(c.ask(format!("DQ.PUSH q x ID {id}")).is_null(), "{id}");
    }
    let digest = c.digest("q");
    server.restart_from_aof();
    let mut c = server.client();
    assert_eq!(c.digest("q"), digest);
    for id in ["1001-5", "2024-01", "99999999999-0", "0-0"] {
        assert_eq!(c.get("q", id).text("payload"), id);
        assert_eq!(c.cancel(format!("q {id}")), ["ready"]);
    }
}
