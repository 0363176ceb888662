//! DQ.SCAN: iterates over a whole queue page by page while other clients change it.

use crate::support::{eventually, every_state, in_both_protocols, Client, Fields, Protocol, Random, Reply, Server};
use std::collections::{BTreeMap, BTreeSet};

/// Scans a queue once, and calls `act` before each page. Returns what was seen of each message, by id.
#[track_caller]
fn round(
    c: &mut Client,
    options: &str,
    count: usize,
    mut others: impl FnMut(&mut Client, usize),
) -> BTreeMap<String, Vec<Fields>> {
    let (mut cursor, mut seen) = ("0".to_owned(), BTreeMap::<String, Vec<Fields>>::new());
    for page in 0.. {
        assert!(page < 100_000, "the round does not end");
        others(c, page);
        let (next, messages) = c.scan(format!("q {cursor} {options}"));
        assert!(messages.len() <= count, "{} messages of at most {count} looked at", messages.len());
        for message in messages {
            seen.entry(message.text("id")).or_default().push(message);
        }
        if next == "0" {
            break;
        }
        cursor = next;
    }
    seen
}

#[test]
fn a_page_is_a_cursor_and_messages_like_get() {
    in_both_protocols(|c| {
        let cast = every_state(c, "q");
        let reply = c.ask("DQ.SCAN q 0 COUNT 100");
        let [cursor, page] = reply.items() else { panic!("two parts, not {reply:?}") };
        assert_eq!(cursor, &Reply::bulk("0"), "all were looked at");
        assert_eq!(page.items().len(), cast.ids.len());
        for item in page.items() {
            assert_eq!(matches!(item, Reply::Map(_)), c.protocol() == Protocol::Resp3, "{item:?}");
            let message = item.fields();
            let id = message.text("id");
            assert_eq!(message, c.get("q", &id), "{id}");
        }
    });
}

#[test]
fn a_scan_is_in_push_order_whatever_the_states_and_names() {
    in_both_protocols(|c| {
        c.ask("DQ.MPUSH q 6 x x x x x x IDS f e d c b a");
        c.push("q x");
        c.ask("DQ.BURY q e");
        c.ask("DQ.ALTER q RETAIN 60000");
        let done = c.ask("DQ.POP q").items()[0].items()[3].text();
        c.ask(format!("DQ.ACK q {done}"));
        let (_, messages) = c.scan("q 0 COUNT 100 SEQUENCE");
        assert!(messages.is_sorted_by_key(|message| message.text("sequence").parse::<u64>().unwrap()));
        let ids: Vec<String> = messages.iter().map(|message| message.text("id")).collect();
        assert_eq!(ids[..6], ["f", "e", "d", "c", "b", "a"]);
        assert_eq!(ids.len(), 7, "{ids:?}");
        c.push("q y ID d REPLACE");
        let pages: Vec<String> = round(c, "COUNT 1", 1, |_, _| {}).into_keys().collect();
        assert_eq!(pages.len(), 7, "{pages:?}");
        assert_eq!(c.scan("q 0 COUNT 100").1.last().map(|last| last.text("id")), Some("d".to_owned()));
        assert!(c.scan("q 0 COUNT 100").1.iter().all(|message| !message.has("sequence")));
    });
}

#[test]
fn scanning_an_empty_queue_ends_at_once() {
    in_both_protocols(|c| {
        c.create("empty");
        c.push("emptied x ID m");
        c.cancel("emptied m");
        for key in ["absent", "empty", "emptied"] {
            for options in ["", " COUNT 1", " STATE dead", " COUNT 5 STATE ready"] {
                let nothing = Reply::Array(vec![Reply::bulk("0"), Reply::Array(vec![])]);
                assert_eq!(c.ask(format!("DQ.SCAN {key} 0{options}")), nothing, "{key}{options}");
            }
        }
        assert_eq!(c.ask("EXISTS absent"), Reply::Int(0));
    });
}

#[test]
fn a_scan_shows_every_message_whatever_the_page_size() {
    let server = Server::start();
    let mut c = server.client();
    let cast = every_state(&mut c, "q");
    c.pipeline((0..2_000).map(|n| format!("DQ.PUSH q x ID m{n:04} PRIORITY {} DELAY {}", n % 9 - 4, n % 2 * 600_000)));
    let mut expected: Vec<String> = (0..2_000).map(|n| format!("m{n:04}")).chain(cast.ids).collect();
    expected.sort_unstable();
    for options in ["COUNT 1", "COUNT 3", "", "COUNT 10", "COUNT 1000", "COUNT 2147483647"] {
        assert_eq!(c.scan_ids("q", options), expected, "{options}: each once where nobody else works");
    }
}

#[test]
fn without_a_count_ten_messages_are_examined() {
    let server = Server::start();
    let mut c = server.client();
    c.pipeline((0..100).map(|n| format!("DQ.PUSH q x DELAY {}", n * 600_000)));
    let seen = round(&mut c, "", 10, |_, _| {});
    assert_eq!(seen.len(), 100);
    assert_ne!(c.scan("q 0").0, "0", "a page is not the whole");
}

#[test]
fn only_the_state_asked_for_is_shown() {
    in_both_protocols(|c| {
        let cast = every_state(c, "q");
        for (state, count) in
            [("delayed", cast.delayed), ("ready", cast.ready), ("inflight", cast.inflight), ("DEAD", cast.dead)]
        {
            for pages in ["COUNT 1", "COUNT 3", "COUNT 10", "COUNT 1000"] {
                for options in [format!("STATE {state} {pages}"), format!("{pages} state {state}")] {
                    let seen = round(c, &options, 1000, |_, _| {});
                    assert_eq!(seen.len() as i64, count, "{options}");
                    let states = seen.values().flatten().map(|message| message.text("state"));
                    assert!(states.into_iter().all(|shown| shown == state.to_lowercase()), "{options}");
                }
            }
        }
    });
}

#[test]
fn who_stays_is_shown_whatever_the_others_do() {
    for (count, state) in [(1, ""), (3, ""), (10, ""), (1000, ""), (1, "ready"), (3, "delayed"), (10, "ready")] {
        let server = Server::start();
        let mut c = server.client();
        let mut random = Random::seeded(count as u64);
        // The messages that stay are before, between and after those that will be removed.
        let number = count.max(10) * 30;
        c.pipeline((0..number).flat_map(|n| {
            [
                format!("DQ.PUSH q x ID stays{n} DELAY {} PRIORITY {}", n % 2 * 600_000, n % 3),
                format!("DQ.PUSH q x ID goes{n} DELAY {} PRIORITY {}", n % 2 * 600_000, n % 5),
            ]
        }));
        let work = |c: &mut Client, page: usize| {
            let n = random.below(number);
            match random.below(6) {
                // The pushes stop at some page: a scan of a queue that grows as fast as it is read may never end.
                0 if page < 500 => drop(c.push_many("q 5 x x x x x PRIORITY 3")),
                1 => drop(c.cancel(format!("q goes{n} goes{} goes{}", (n + 1) % number, (n + 2) % number))),
                2 => drop(c.reschedule(format!("q goes{n} DELAY {}", n % 2 * 700_000))),
                3 => drop(c.ask(format!("DQ.PUSH q y ID goes{n} REPLACE"))),
                4 => {
                    c.push(format!("q x ID worked{page} PRIORITY 127"));
                    assert_eq!(c.pop_ids("q LEASE 600000"), [format!("worked{page}")]);
                    assert_eq!(c.ack(format!("q worked{page}")), 1);
                }
                _ => (),
            }
        };
        let options = if state.is_empty() { format!("COUNT {count}") } else { format!("COUNT {count} STATE {state}") };
        let seen = round(&mut c, &options, count, work);
        let stays = |n: &usize| state.is_empty() || (n % 2 == 0) == (state == "ready");
        let missed: Vec<usize> =
            (0..number).filter(stays).filter(|n| !seen.contains_key(&format!("stays{n}"))).collect();
        assert!(missed.is_empty(), "{options}: never shown: {missed:?}");
        let strangers = seen.values().flatten().find(|message| !state.is_empty() && message.text("state") != state);
        assert!(strangers.is_none(), "{options}: {strangers:?}");
    }
}

#[test]
fn a_round_ends_while_less_is_pushed_than_looked_at() {
    for count in [11, 100] {
        let server = Server::start();
        let mut c = server.client();
        c.pipeline((0..100).map(|n| format!("DQ.PUSH q x ID stays{n} DELAY 600000")));
        let mut pages = 0;
        let seen = round(&mut c, &format!("COUNT {count}"), count, |c, page| {
            pages = page;
            assert!(pages < 2_000, "COUNT {count}: the round runs after what is pushed, and never ends");
            c.push_many(format!("q 10 {}", "x ".repeat(10)));
            if page > 0 {
                assert_eq!(c.pop("q COUNT 10 NOACK").len(), 10);
            }
        });
        assert!((0..100).all(|n| seen.contains_key(&format!("stays{n}"))), "COUNT {count}, {pages} pages");
    }
}

#[test]
fn who_moves_through_the_states_is_shown_all_the_same() {
    for count in [1, 3, 10, 1000] {
        let server = Server::start();
        let mut c = server.client();
        c.create("q RETRIES -1");
        let number = 300;
        c.pipeline((0..number).map(|n| format!("DQ.PUSH q x ID m{n} DELAY {}", n % 2 * 600_000)));
        let mut random = Random::seeded(7 + count as u64);
        let seen = round(&mut c, &format!("COUNT {count}"), count, |c, _| {
            let n = random.below(number);
            match random.below(4) {
                0 => drop(c.pop(format!("q COUNT 3 LEASE {}", 1 + random.below(600_000)))),
                1 => drop(c.ask(format!("DQ.NACK q m{n} DELAY {}", n % 3 * 100_000))),
                2 => drop(c.ask(format!("DQ.NACK q m{n} DEAD"))),
                _ => drop((c.reschedule(format!("q m{n} DELAY {}", n % 3 * 100_000)), c.redrive("q COUNT 1"))),
            }
        });
        let ids: BTreeSet<&String> = seen.keys().collect();
        assert_eq!(ids.len(), number, "COUNT {count}");
    }
}

#[test]
fn who_was_gone_before_the_round_is_not_shown() {
    let server = Server::start();
    let mut c = server.client();
    c.pipeline((0..500).map(|n| format!("DQ.PUSH q x ID m{n}")));
    let gone: Vec<String> = (0..500).filter(|n| n % 3 != 0).map(|n| format!("m{n}")).collect();
    c.cancel(format!("q {}", gone.join(" ")));
    for options in ["COUNT 1", "COUNT 7", "COUNT 1000"] {
        assert_eq!(c.scan_ids("q", options).len(), 167, "{options}");
    }
}

#[test]
fn several_rounds_at_once_do_not_disturb_each_other() {
    let server = Server::start();
    let mut c = server.client();
    c.pipeline((0..100).map(|n| format!("DQ.PUSH q x ID m{n}")));
    let mut rounds: Vec<(String, BTreeSet<String>)> = vec![("0".to_owned(), BTreeSet::new()); 4];
    for step in 0.. {
        assert!(step < 1_000, "the rounds do not end");
        for (n, (cursor, seen)) in rounds.iter_mut().enumerate() {
            if step > 0 && cursor == "0" {
                continue;
            }
            let (next, page) = c.scan(format!("q {cursor} COUNT {}", 1 + n * 4));
            seen.extend(page.iter().map(|message| message.text("id")));
            *cursor = next;
        }
        if rounds.iter().all(|(cursor, _)| cursor == "0") {
            break;
        }
    }
    assert!(rounds.iter().all(|(_, seen)| seen.len() == 100));
}

#[test]
fn a_cursor_outlives_what_it_stood_at() {
    let server = Server::start();
    let mut c = server.client();
    c.pipeline((0..50).map(|n| format!("DQ.PUSH q x ID m{n}")));
    let (cursor, _) = c.scan("q 0 COUNT 20");
    assert_ne!(cursor, "0");
    c.purge("q");
    c.push("q x ID after");
    let reply = c.ask(format!("DQ.SCAN q {cursor} COUNT 1000"));
    assert_eq!(reply.items()[0], Reply::bulk("0"));
    c.ask("DEL q");
    assert_eq!(c.scan(format!("q {cursor}")), ("0".to_owned(), vec![]));
    c.push("q x");
    assert!(!matches!(c.ask(format!("DQ.SCAN q {cursor}")), Reply::Error(_)), "another queue of that name");
}

#[test]
fn an_invalid_cursor_is_refused() {
    in_both_protocols(|c| {
        c.push("q x");
        for cursor in ["x", "\"\"", "-1", "+0", "1.5", "0x10", "99999999999999999999999999", "m", "0-0-0"] {
            for key in ["q", "absent"] {
                let reply = c.ask(format!("DQ.SCAN {key} {cursor}"));
                assert!(reply.error().starts_with("ERR invalid cursor"), "{cursor}: {reply:?}");
            }
        }
    });
}

#[test]
fn the_states_are_exact_before_the_timer_has_looked() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID lapsed PRIORITY 1");
    c.push("q x ID spent RETRIES 0 PRIORITY 1");
    let replies = c.pipeline([
        "DQ.POP q LEASE 5 COUNT 2",
        "DQ.PUSH q x ID due DELAY 5",
        "DQ.PUSH q x ID expired TTL 5",
        "DEBUG SLEEP 0.05",
        "DQ.SCAN q 0 STATE delayed",
        "DQ.SCAN q 0 STATE inflight",
        "DQ.SCAN q 0 STATE ready",
        "DQ.SCAN q 0 STATE dead",
        "DQ.SCAN q 0",
    ]);
    let of = |reply: &Reply| -> Vec<(String, String)> {
        let messages = reply.items()[1].items().iter().map(Reply::fields);
        let mut seen: Vec<_> = messages.map(|message| (message.text("id"), message.text("state"))).collect();
        seen.sort();
        seen
    };
    let seen = |id: &str, state: &str| (id.to_owned(), state.to_owned());
    let ready = [seen("due", "ready"), seen("lapsed", "ready")];
    let dead = [seen("expired", "dead"), seen("spent", "dead")];
    assert!(of(&replies[4]).is_empty() && of(&replies[5]).is_empty(), "{replies:?}");
    assert_eq!((of(&replies[6]).as_slice(), of(&replies[7]).as_slice()), (ready.as_slice(), dead.as_slice()));
    let [due, lapsed] = ready;
    let [expired, spent] = dead;
    assert_eq!(of(&replies[8]), [due, expired, lapsed, spent]);
}

#[test]
fn scanning_changes_nothing() {
    let server = Server::start();
    let (mut c, mut watcher, mut waiting) = (server.client(), server.client(), server.client());
    let cast = every_state(&mut c, "q");
    c.push("paused x");
    c.pause("paused");
    waiting.wait_for_message("paused");
    c.until_blocked(1);
    let (digest, about, portraits) = (c.digest("q"), c.about_but_time("q"), cast.portraits(&mut c, "q"));
    let (changes, offset) = (c.changes(), c.info("replication", "master_repl_offset"));
    watcher.ask("WATCH q").ok();
    for options in ["COUNT 1", "COUNT 3 STATE dead", "", "STATE ready", "COUNT 1000"] {
        c.scan_ids("q", options);
        c.scan_ids("paused", options);
    }
    assert_eq!(watcher.multi(&["PING"]), [Reply::Simple("PONG".into())]);
    assert_eq!((c.changes(), c.info("replication", "master_repl_offset")), (changes, offset));
    assert_eq!((c.digest("q"), c.about_but_time("q")), (digest, about));
    assert_eq!(cast.portraits(&mut c, "q"), portraits);
    c.until_blocked(1);
    cast.expect_alive(&mut c, "q");
}

#[test]
fn a_replica_can_be_scanned() {
    let master = Server::start();
    let mut c = master.client();
    every_state(&mut c, "q");
    let replica = Server::replica_of(&master, &[]);
    let mut r = replica.client();
    eventually("the replica shows the same", || r.scan_ids("q", "COUNT 2") == c.scan_ids("q", "COUNT 3"));
}

#[test]
fn it_works_in_transactions_and_scripts() {
    in_both_protocols(|c| {
        let replies = c.multi(&["DQ.PUSH q x ID a", "DQ.SCAN q 0 STATE ready", "DQ.SCAN q bad"]);
        assert_eq!(replies[1].items()[1].items()[0].fields().text("id"), "a");
        assert!(replies[2].error().starts_with("ERR invalid cursor"));
        assert_eq!(c.script("DQ.SCAN q 0").items()[1].items()[0].fields().text("id"), "a");
    });
}

#[test]
fn an_id_that_is_constantly_replaced_is_never_missed() {
    in_both_protocols(|c| {
        // More than is pushed between two pages.
        for count in [4, 10, 1_000] {
            c.ask("DEL q");
            for nth in 0..40 {
                c.push(format!("q x ID n{nth} DELAY 600000"));
                c.push("q x DELAY 600000");
            }
            let (mut shown, mut cursor) = (Vec::new(), "0".to_owned());
            loop {
                let (next, page) = c.scan(format!("q {cursor} COUNT {count}"));
                shown.extend(page.iter().map(|message| message.text("id")));
                // Two messages are replaced after each page, and one is new.
                for id in ["n0", "n39"] {
                    c.push(format!("q y ID {id} REPLACE DELAY 600000"));
                }
                c.push("q z DELAY 600000");
                cursor = next;
                if cursor == "0" {
                    break;
                }
            }
            for nth in 0..40 {
                let id = format!("n{nth}");
                let times = shown.iter().filter(|shown| **shown == id).count();
                let is_right = if nth == 0 || nth == 39 { times >= 1 } else { times == 1 };
                assert!(is_right, "{id} is shown {times} times at COUNT {count}");
            }
        }
    });
}
