//! DQ.MPUSH: pushes many messages in one command, either all of them or none.

use crate::support::{effects_of, in_both_protocols, sequence, Client, Protocol, Reply, Server};

/// Ids as `push_many` returns them; `-` stands for null.
fn ids(list: &str) -> Vec<Option<String>> {
    list.split_whitespace().map(|id| (id != "-").then(|| id.to_owned())).collect()
}

#[test]
fn a_batch_answers_an_id_for_each_payload_in_order() {
    in_both_protocols(|c| {
        let reply = c.ask("DQ.MPUSH q 3 a b c");
        let ids: Vec<String> = reply.items().iter().map(Reply::text).collect();
        assert_eq!(ids.len(), 3);
        let sequences: Vec<_> = ids.iter().map(|id| sequence(id).expect("a generated id")).collect();
        assert!(sequences.windows(2).all(|pair| pair[0] < pair[1]), "{ids:?}");
        let messages = c.pop("q COUNT 5");
        let got: Vec<_> = messages.iter().map(|m| (m.id.clone(), m.payload.clone())).collect();
        let pushed = ids.into_iter().zip([b"a", b"b", b"c"].map(|payload| payload.to_vec()));
        assert_eq!(got, pushed.collect::<Vec<_>>(), "delivered in the order of the batch");
        assert_eq!(c.about("q").int("pushed"), 3);
    });
}

#[test]
fn a_batch_of_one_is_a_push() {
    in_both_protocols(|c| {
        assert_eq!(c.ask("DQ.MPUSH q 1 x IDS m"), Reply::Array(vec![Reply::bulk("m")]));
        assert_eq!(c.ask("DQ.MPUSH q 1 x IDS m"), Reply::Array(vec![c.null()]));
        assert_eq!(c.len("q"), 1);
    });
}

#[test]
fn a_batch_names_its_messages_itself() {
    let server = Server::start();
    let mut c = server.client();
    assert_eq!(c.push_many("q 2 one two IDS a b"), ids("a b"));
    assert_eq!(["a", "b"].map(|id| c.get("q", id).text("payload")), ["one", "two"]);
    assert_eq!(c.push_many("q 2 one two ids c d delay 600000"), ids("c d"), "options in any case");
    assert_eq!(c.state("q", "d"), "delayed");
}

#[test]
fn payloads_and_ids_of_a_batch_may_look_like_options() {
    let server = Server::start();
    let mut c = server.client();
    assert_eq!(c.push_many("q 3 DELAY 5 IDS IDS IDS REPLACE TTL"), ids("IDS REPLACE TTL"));
    assert_eq!(["IDS", "REPLACE", "TTL"].map(|id| c.get("q", id).text("payload")), ["DELAY", "5", "IDS"]);
}

#[test]
fn a_batch_skips_duplicates_and_pushes_the_rest() {
    in_both_protocols(|c| {
        c.bury("q", &["dead"]);
        c.push("q old ID flying");
        c.pop_one("q LEASE 600000");
        c.push("q old ID delayed DELAY 600000");
        let reply = c.ask("DQ.MPUSH q 4 1 2 3 4 IDS delayed new flying dead");
        let dead = "DEADID message dead is dead: REPLACE it, or DQ.REDRIVE or DQ.CANCEL it first";
        let dead = Reply::Error(dead.to_owned());
        assert_eq!(reply, Reply::Array(vec![c.null(), Reply::bulk("new"), c.null(), dead]));
        let about = c.about("q");
        assert_eq!((about.int("duplicates"), about.int("pushed")), (2, 4));
        assert_eq!(c.get("q", "delayed").text("payload"), "old");
        assert_eq!(c.counts("q"), [1, 1, 1, 1]);
    });
}

#[test]
fn an_id_given_twice_in_a_batch_is_a_duplicate() {
    in_both_protocols(|c| {
        assert_eq!(c.push_many("q 4 1 2 3 4 IDS a b a a"), ids("a b - -"));
        assert_eq!(c.get("q", "a").text("payload"), "1", "the first stands");
        assert_eq!((c.len("q"), c.about("q").int("duplicates")), (2, 2));
    });
}

#[test]
fn of_an_id_given_twice_with_replace_the_later_stands() {
    in_both_protocols(|c| {
        c.push("q old ID a");
        assert_eq!(c.push_many("q 3 1 2 3 IDS a b a REPLACE"), ids("a b a"));
        assert_eq!(c.get("q", "a").text("payload"), "3");
        let about = c.about("q");
        assert_eq!((about.int("pushed"), about.int("duplicates"), c.len("q")), (4, 0, 2));
        assert_eq!(about.int("payload-bytes"), 2);
        assert_eq!(c.pop_ids("q COUNT 5"), ["b", "a"], "at the later's place");
    });
}

#[test]
fn a_replacing_batch_makes_the_receipts_of_replaced_messages_stale() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q old ID a");
    let receipt = c.pop_one("q LEASE 600000").receipt().to_owned();
    c.bury("q", &["b"]);
    assert_eq!(c.push_many("q 3 1 2 3 IDS a b c REPLACE DELAY 600000"), ids("a b c"));
    assert_eq!(c.counts("q"), [3, 0, 0, 0]);
    assert_eq!(c.ack(format!("q {receipt}")), 0);
}

#[test]
fn all_of_a_batch_fits_or_none_is_pushed() {
    in_both_protocols(|c| {
        c.create("q MAXLEN 4");
        c.push("q x ID held");
        c.push("q x");
        let (digest, about) = (c.digest("q"), c.about_but_time("q"));
        assert_eq!(c.ask("DQ.MPUSH q 3 1 2 3").error(), "QUEUEFULL queue holds 2 messages (MAXLEN)");
        assert_eq!(c.ask("DQ.MPUSH q 4 1 2 3 4 IDS held a b c").error(), "QUEUEFULL queue holds 2 messages (MAXLEN)");
        assert_eq!(c.digest("q"), digest);
        assert_eq!(c.about_but_time("q").without(&["rejected-full"]), about.without(&["rejected-full"]));
        assert!(c.about("q").int("rejected-full") > 0);
        assert_eq!(c.push_many("q 2 1 2").len(), 2);
        assert_eq!(c.len("q"), 4);
    });
}

#[test]
fn only_what_a_batch_would_add_needs_room() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q MAXLEN 3");
    c.push_many("q 2 x x IDS a b");
    assert_eq!(c.push_many("q 4 1 2 3 4 IDS a b c c"), ids("- - c -"), "duplicates need none");
    assert_eq!(c.push_many("q 2 1 2 IDS a b"), ids("- -"), "in a full queue too");
    assert_eq!(c.push_many("q 4 1 2 3 4 IDS a b c a REPLACE"), ids("a b c a"), "what counts already neither");
    assert_eq!(c.len("q"), 3);
    assert_eq!(c.about("q").int("rejected-full"), 0);
}

#[test]
fn a_dead_message_that_a_batch_replaces_needs_room() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q MAXLEN 2");
    c.bury("q", &["dead"]);
    c.push("q x ID a");
    let digest = c.digest("q");
    let full = "QUEUEFULL queue holds 1 message (MAXLEN)";
    assert_eq!(c.ask("DQ.MPUSH q 3 1 2 3 IDS a dead b REPLACE").error(), full);
    assert_eq!(c.digest("q"), digest);
    assert_eq!(c.push_many("q 4 1 2 3 4 IDS dead a dead dead REPLACE"), ids("dead a dead dead"), "room for one");
    assert_eq!(c.counts("q"), [0, 2, 0, 0]);
    assert_eq!(c.get("q", "dead").text("payload"), "4");
}

#[test]
fn a_refused_batch_makes_no_queue() {
    let server = Server::start();
    let mut c = server.client();
    c.configure("dq.default-maxlen", 2);
    let changes = c.changes();
    assert_eq!(c.ask("DQ.MPUSH q 3 1 2 3").error(), "QUEUEFULL queue holds 0 messages (MAXLEN)");
    for line in ["q 2 1 2 IDS ok 100000000000-1", "q 2 1 2 IDS ok a#b", "q 1 x DELAY -1", "q 2 x", "q 1 x REPLACE"] {
        assert!(matches!(c.ask(format!("DQ.MPUSH {line}")), Reply::Error(_)), "{line}");
    }
    assert_eq!(c.ask("EXISTS q"), Reply::Int(0));
    assert_eq!(c.changes(), changes);
    assert_eq!(c.push_many("q 2 1 2").len(), 2);
}

#[test]
fn one_bad_id_refuses_the_whole_batch() {
    in_both_protocols(|c| {
        c.push("q x ID held");
        let digest = c.digest("q");
        let long = "n".repeat(256);
        for bad in ["\"\"", "a#b", "123456789012-34", &long] {
            for place in 0..3 {
                let mut names = ["a", "b", "held"];
                names[place] = bad;
                for options in ["", " REPLACE"] {
                    let line = format!("DQ.MPUSH q 3 1 2 3 IDS {}{options}", names.join(" "));
                    assert!(c.ask(&line).error().starts_with("ERR "), "{line}");
                }
            }
        }
        assert_eq!(c.digest("q"), digest);
        assert_eq!(c.len("q"), 1);
    });
}

#[test]
fn the_options_of_a_batch_apply_to_every_message() {
    in_both_protocols(|c| {
        c.expect_ms_from_now(600_000, |c| {
            c.push_many("q 2 x y IDS a b DELAY 600000 PRIORITY -7 RETRIES 3 LEASE 4000 TTL 5000");
            c.get("q", "a").int("due")
        });
        assert_eq!(c.push_many("q 2 x y AT 8000000000000 IDS c d PRIORITY 9"), ids("c d"), "in any order");
        for id in ["a", "b"] {
            let message = c.get("q", id);
            let numbers = ["priority", "retries", "lease", "ttl"].map(|name| message.int(name));
            assert_eq!(numbers, [-7, 3, 4000, 5000], "{id}");
        }
        for id in ["c", "d"] {
            let message = c.get("q", id);
            assert_eq!((message.int("due"), message.int("priority")), (8_000_000_000_000, 9), "{id}");
        }
        assert_eq!(c.get("q", "a").int("due"), c.get("q", "b").int("due"), "one command has one now");
    });
}

#[test]
fn payloads_of_a_batch_are_any_bytes() {
    in_both_protocols(|c| {
        let all: Vec<u8> = (0..=255).collect();
        let large = vec![b'L'; 200_000];
        let payloads: [&[u8]; 4] = [&all, b"", b"\r\n", &large];
        let mut args: Vec<&[u8]> = vec![b"DQ.MPUSH", b"q", b"4"];
        args.extend(payloads);
        args.extend([b"IDS".as_slice(), b"\x00\xff", b" ", b"\r\n", b"name"]);
        let reply = c.cmd(&args);
        assert_eq!(reply.items()[0], Reply::bulk(b"\x00\xff"));
        assert_eq!(reply.items()[2], Reply::bulk(b"\r\n"));
        let popped = c.ask("DQ.POP q COUNT 4");
        let got: Vec<&[u8]> = popped.items().iter().map(|message| message.items()[1].bytes()).collect();
        assert_eq!(got, payloads);
    });
}

#[test]
fn a_batch_may_be_large() {
    let server = Server::start();
    let mut c = server.client();
    let numbers: Vec<String> = (0..20_000).map(|n| n.to_string()).collect();
    assert_eq!(c.push_many(format!("q 20000 {}", numbers.join(" "))).len(), 20_000);
    let payloads: Vec<String> =
        c.pop("q COUNT 20000").into_iter().map(|m| String::from_utf8(m.payload).expect("a number")).collect();
    assert_eq!(payloads, numbers);
}

#[test]
fn a_batch_is_one_effect_and_a_refused_one_none() {
    let effects = effects_of(|c| {
        c.push_many("q 5 1 2 3 4 5 IDS a b c d e TTL 600000");
        assert_eq!(c.push_many("q 2 1 2 IDS a b"), ids("- -"));
        assert!(matches!(c.ask("DQ.MPUSH q 2 1 2 IDS f 100000000000-1"), Reply::Error(_)));
        c.push_many("q 4 1 2 3 4 IDS a b a z REPLACE");
    });
    assert_eq!(effects.len(), 2);
}

#[test]
fn a_batch_replays_as_it_was() {
    let mut server = Server::with_aof(&[]);
    let mut c = server.client();
    c.push_many("q 3 1 2 3");
    c.push_many("q 4 1 2 3 4 IDS a b a c PRIORITY 3 DELAY 600000");
    c.push_many("q 4 1 2 3 4 IDS a d a b REPLACE TTL 600000");
    let digest = c.digest("q");
    server.restart_from_aof();
    assert_eq!(server.client().digest("q"), digest);
}

#[test]
fn a_batch_of_duplicates_alone_changes_nothing() {
    let server = Server::start();
    let mut c = server.client();
    c.push_many("q 2 1 2 IDS a b");
    let (changes, offset) = (c.changes(), c.info("replication", "master_repl_offset"));
    let mut watcher = server.client();
    watcher.ask("WATCH q").ok();
    assert_eq!(c.push_many("q 2 1 2 IDS a b"), ids("- -"));
    assert_eq!(watcher.multi(&["PING"]), [Reply::Simple("PONG".into())]);
    assert_eq!((c.changes(), c.info("replication", "master_repl_offset")), (changes, offset));
}

#[test]
fn a_watcher_sees_a_batch() {
    let server = Server::start();
    let (mut c, mut watcher) = (server.client(), server.client());
    watcher.ask("WATCH q").ok();
    c.push_many("q 2 1 2");
    watcher.ask("MULTI").ok();
    watcher.ask("PING");
    assert!(watcher.ask("EXEC").is_null());
}

#[test]
fn a_batch_serves_blocked_clients_in_their_order() {
    let server = Server::start();
    let mut c = server.client();
    let mut waiting: Vec<Client> = (0..4).map(|_| server.client_with(Protocol::Resp3)).collect();
    for (n, client) in waiting.iter_mut().enumerate() {
        client.wait_for_message("q");
        c.until_blocked(n + 1);
    }
    c.push_many("q 5 x x x x x IDS a b c d e");
    let served: Vec<String> = waiting.iter_mut().map(|client| client.served().id).collect();
    assert_eq!(served, ["a", "b", "c", "d"]);
    assert_eq!(c.counts("q"), [0, 1, 4, 0]);
}

#[test]
fn a_batch_works_in_a_transaction_and_in_a_script() {
    in_both_protocols(|c| {
        let replies =
            c.multi(&["DQ.MPUSH q 2 1 2 IDS a b", "DQ.MPUSH q 2 1 2 IDS b c", "DQ.MPUSH q 1 1 IDS 100000000000-1"]);
        assert_eq!(replies[0], Reply::Array(vec![Reply::bulk("a"), Reply::bulk("b")]));
        assert_eq!(replies[1], Reply::Array(vec![c.null(), Reply::bulk("c")]));
        assert!(replies[2].error().starts_with("ERR "));
        let reply = c.script("DQ.MPUSH q 3 1 2 3 IDS c d a");
        assert_eq!(reply, Reply::Array(vec![c.null(), Reply::bulk("d"), c.null()]));
        assert_eq!(c.len("q"), 4);
    });
}

#[test]
fn a_batch_needs_memory() {
    let server = Server::start();
    let mut c = server.client();
    c.configure("maxmemory", 1);
    assert!(c.ask("DQ.MPUSH q 2 1 2").error().starts_with("OOM "));
    assert_eq!(c.ask("EXISTS q"), Reply::Int(0));
}
