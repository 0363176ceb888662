//! Limits: MAXLEN, MAXINFLIGHT and DEADLEN hold, and a queue keeps the settings with which it was created.

use crate::support::{eventually, in_both_protocols, setting_parameters, Parameter, Reply, Server};

#[test]
fn a_full_queue_refuses_a_push_and_says_why() {
    in_both_protocols(|c| {
        c.configure("dq.default-maxlen", 2);
        c.push("q x");
        c.push("q x");
        let (digest, about) = (c.digest("q"), c.about_but_time("q"));
        assert_eq!(c.ask("DQ.PUSH q x").error(), "QUEUEFULL queue holds 2 messages (MAXLEN)");
        assert_eq!(c.ask("DQ.PUSH q x ID named DELAY 5 REPLACE").error(), "QUEUEFULL queue holds 2 messages (MAXLEN)");
        assert_eq!(c.digest("q"), digest);
        assert_eq!(c.about("q").int("rejected-full"), 2);
        assert_eq!(c.about_but_time("q").without(&["rejected-full"]), about.without(&["rejected-full"]));
    });
}

#[test]
fn maxlen_counts_pending_messages_and_not_the_dead() {
    let server = Server::start();
    let mut c = server.client();
    c.configure("dq.default-maxlen", 3);
    c.push("q x ID dead");
    c.pop_one("q");
    assert_eq!(c.nack("q dead DEAD"), "dead");
    c.push("q x ID flying");
    c.pop_one("q");
    c.push("q x ID delayed DELAY 600000");
    c.push("q x ID ready");
    assert_eq!(c.ask("DQ.PUSH q x").error(), "QUEUEFULL queue holds 3 messages (MAXLEN)");
    assert_eq!(c.ack("q flying"), 1);
    c.push("q x ID room-again");
}

#[test]
fn a_duplicate_is_a_duplicate_in_a_full_queue_too() {
    in_both_protocols(|c| {
        c.configure("dq.default-maxlen", 1);
        c.push("q x ID m");
        assert_eq!(c.ask("DQ.PUSH q y ID m"), c.null());
        let about = c.about("q");
        assert_eq!((about.int("duplicates"), about.int("rejected-full")), (1, 0));
    });
}

#[test]
fn a_message_that_comes_back_is_never_refused() {
    let server = Server::start();
    let mut c = server.client();
    c.configure("dq.default-maxlen", 1);
    c.push("q x ID m");
    c.pop_one("q");
    assert_eq!(c.nack("q m DELAY 0"), "ready");
    c.pop_one("q LEASE 1");
    c.until_state("q", "m", "ready");
    assert_eq!(c.pop_one("q").attempt, 3);
}

#[test]
fn no_more_leases_live_than_maxinflight() {
    in_both_protocols(|c| {
        c.configure("dq.default-maxinflight", 2);
        for id in ["a", "b", "c", "d"] {
            c.push(format!("q x ID {id}"));
        }
        assert_eq!(c.pop_ids("q COUNT 10"), ["a", "b"]);
        assert_eq!(c.ask("DQ.POP q"), c.null_array());
        assert_eq!(c.ask("DQ.POP q NOACK"), c.null_array(), "without an ack too");
        assert_eq!(c.ack("q a"), 1);
        assert_eq!(c.pop_ids("q COUNT 10"), ["c"]);
        assert_eq!(c.len("q inflight"), 2);
        c.push("q x ID e");
        assert_eq!(c.ack("q b"), 1);
        assert_eq!(c.pop_ids("q COUNT 10 NOACK"), ["d", "e"], "what is not leased takes no room");
    });
}

#[test]
fn one_at_a_time_is_strict_order() {
    let server = Server::start();
    let mut c = server.client();
    c.configure("dq.default-maxinflight", 1);
    for id in ["a", "b", "c"] {
        c.push(format!("q x ID {id} AT 1000000001000"));
    }
    for id in ["a", "b", "c"] {
        assert_eq!(c.pop_ids("q COUNT 3"), [id]);
        assert!(c.pop("q").is_empty());
        assert_eq!(c.nack(format!("q {id} DELAY 0")), "ready");
        // A nack makes it due again, after those that have waited longer.
    }
    assert_eq!(c.pop_ids("q"), ["a"]);
}

#[test]
fn a_lease_that_ran_out_makes_room_under_maxinflight() {
    let server = Server::start();
    let mut c = server.client();
    c.configure("dq.default-maxinflight", 1);
    c.push("q x ID a");
    c.pop_one("q LEASE 30");
    eventually("it is delivered again", || c.pop_ids("q") == ["a"]);
}

#[test]
fn a_queue_that_keeps_no_dead_drops_them_at_once() {
    in_both_protocols(|c| {
        c.configure("dq.default-deadlen", 0);
        c.push("q x ID m");
        c.pop_one("q");
        assert_eq!(c.ask("DQ.NACK q m DEAD"), Reply::bulk("dead"), "the reply is still dead");
        assert_eq!(c.state("q", "m"), "absent");
        let about = c.about("q");
        assert_eq!((about.int("dead"), about.int("died")), (0, 1));
        assert_eq!(c.push("q x ID m"), "m", "its name is free");
    });
}

#[test]
fn the_dead_of_time_are_dropped_too() {
    let server = Server::start();
    let mut c = server.client();
    c.configure("dq.default-deadlen", 0);
    c.push("q x ID spent RETRIES 0");
    c.pop_one("q LEASE 1");
    c.push("q x ID expired TTL 1");
    eventually("both are gone", || c.state("q", "spent") == "absent" && c.state("q", "expired") == "absent");
    eventually("both are counted", || c.about("q").int("died") == 2);
    assert_eq!(c.len("q dead"), 0);
}

#[test]
fn the_oldest_of_the_dead_go_first() {
    let server = Server::start();
    let mut c = server.client();
    c.configure("dq.default-deadlen", 2);
    for id in ["a", "b", "c", "d"] {
        c.push(format!("q x ID {id}"));
        c.pop_one("q");
        assert_eq!(c.nack(format!("q {id} DEAD")), "dead");
    }
    assert_eq!(["a", "b", "c", "d"].map(|id| c.state("q", id)), ["absent", "absent", "dead", "dead"]);
    assert_eq!(c.len("q dead"), 2);
    assert_eq!(c.about("q").int("died"), 4);
}

#[test]
fn all_dead_messages_are_kept_by_default() {
    let server = Server::start();
    let mut c = server.client();
    for n in 0..50 {
        c.push(format!("q x ID m{n}"));
        c.pop_one("q");
        c.nack(format!("q m{n} DEAD"));
    }
    assert_eq!(c.len("q dead"), 50);
}

#[test]
fn a_queue_has_the_documented_defaults() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x");
    let about = c.about("q");
    let shown = c.ask("CONFIG GET dq.default-*").fields();
    let documented = setting_parameters();
    assert_eq!(shown.0.len(), documented.len(), "each parameter is documented: {shown:?}");
    for Parameter { name, field, default, .. } in documented {
        let shown_value = match about.get(&field) {
            Reply::Int(number) => number.to_string(),
            word => word.text(),
        };
        assert_eq!(shown_value, default, "{field}");
        assert_eq!(shown.text(&name), default, "{name}");
    }
    assert_eq!(c.ask("CONFIG GET dq.timer-budget").fields().text("dq.timer-budget"), "1000");
    assert_eq!(c.ask("CONFIG GET dq.allow-effects").fields().text("dq.allow-effects"), "no");
}

#[test]
fn a_later_config_set_touches_no_existing_queue() {
    let server = Server::start();
    let mut c = server.client();
    c.push("old x");
    let settings = [
        ("dq.default-lease", "lease", 777),
        ("dq.default-retries", "retries", 3),
        ("dq.default-backoff-base", "backoff-base", 5),
        ("dq.default-backoff-max", "backoff-max", 50),
        ("dq.default-ttl", "ttl", 888_888),
        ("dq.default-maxlen", "maxlen", 99),
        ("dq.default-maxinflight", "maxinflight", 9),
        ("dq.default-deadlen", "deadlen", 7),
    ];
    let before = c.about_but_time("old");
    for (parameter, _, value) in settings {
        c.configure(parameter, value);
    }
    assert_eq!(c.about_but_time("old"), before);
    c.push("new x ID m");
    let about = c.about("new");
    for (_, field, value) in settings {
        assert_eq!(about.int(field), value, "{field}");
    }
    let message = c.get("new", "m");
    assert_eq!(["lease", "retries", "ttl"].map(|name| message.int(name)), [777, 3, 888_888]);
}

#[test]
fn a_default_has_the_documented_range() {
    let server = Server::start();
    let mut c = server.client();
    for Parameter { name, default, range, .. } in setting_parameters() {
        let Some((min, max)) = range else { continue };
        let default: i64 = default.parse().expect("a number");
        for outside in [min - 1, max + 1] {
            assert!(c.ask(format!("CONFIG SET {name} {outside}")).error().starts_with("ERR "), "{name} {outside}");
        }
        for inside in [min, max, default] {
            // The backoff and the rates have a further constraint, which the error names.
            let reply = c.ask(format!("CONFIG SET {name} {inside}"));
            let refused = |text: &str| {
                text.contains("dq.default-backoff-base") && text.contains("must not be above")
                    || text.contains("rate-period") && text.contains("must both be 0")
            };
            assert!(
                matches!(&reply, Reply::Error(text) if refused(text)) || reply == Reply::Simple("OK".into()),
                "{reply:?}"
            );
        }
    }
}

#[test]
fn a_default_out_of_range_is_refused_without_effect() {
    let server = Server::start();
    let mut c = server.client();
    for (parameter, bad) in [
        ("dq.default-lease", "0"),
        ("dq.default-lease", "4398046511104"),
        ("dq.default-retries", "-2"),
        ("dq.default-ttl", "-1"),
        ("dq.default-maxlen", "-1"),
        ("dq.default-maxinflight", "-1"),
        ("dq.default-deadlen", "-2"),
        ("dq.default-deadlen", "9007199254740992"),
        ("dq.default-maxlen", "many"),
        ("dq.default-backoff-base", "3600001"),
        ("dq.default-backoff-max", "999"),
        ("dq.timer-budget", "-1"),
        ("dq.allow-effects", "perhaps"),
    ] {
        let old = c.ask(format!("CONFIG GET {parameter}"));
        assert!(c.ask(format!("CONFIG SET {parameter} {bad}")).error().starts_with("ERR "), "{parameter} {bad}");
        assert_eq!(c.ask(format!("CONFIG GET {parameter}")), old);
    }
}

#[test]
fn a_changed_default_can_be_written_to_the_configuration_file() {
    let server = Server::start();
    let mut c = server.client();
    c.configure("dq.default-lease", 777);
    c.configure("dq.allow-effects", "yes");
    c.ask("CONFIG REWRITE").ok();
    let file = std::fs::read_to_string(server.dir().join("conf")).unwrap();
    for line in ["dq.default-lease 777", "dq.allow-effects yes"] {
        assert!(file.lines().any(|written| written == line), "{line} in\n{file}");
    }
}
