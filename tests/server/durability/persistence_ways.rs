//! Persistence of random histories: a queue is the same after a restart, whatever was done with it before.

use crate::support::{any_command, history, Client, Random, Reply, Server};

const KEYS: [&str; 3] = ["a", "b", "c"];

/// Sends a number of random commands.
fn go_on(c: &mut Client, random: &mut Random, commands: usize) {
    history::go_on(c, random, commands, |random| any_command(random, &KEYS));
}

/// The digests of all queues. No queue drops its dead messages by itself: that would be a decision, and change its
/// digest.
fn digests(c: &mut Client) -> Reply {
    for key in KEYS {
        c.ask(format!("DQ.ALTER {key} DEADLEN -1"));
    }
    c.ask(format!("DEBUG DIGEST-VALUE {}", KEYS.join(" ")))
}

/// Rewrites the AOF while the history goes on.
fn rewrite(c: &mut Client, random: &mut Random, preamble: &str) {
    c.configure("aof-use-rdb-preamble", preamble);
    c.ask("BGREWRITEAOF");
    go_on(c, random, 100);
    c.until_rewritten();
    go_on(c, random, 20);
}

#[test]
fn a_random_history_survives_every_way_to_persist() {
    let mut server = Server::with_aof(&[]);
    let mut random = Random::seeded(23);
    for round in 0..12 {
        let mut c = server.client();
        go_on(&mut c, &mut random, 150);
        match round % 6 {
            2 => rewrite(&mut c, &mut random, "yes"),
            3 => rewrite(&mut c, &mut random, "no"),
            _ => {}
        }
        let before = digests(&mut c);
        match round % 6 {
            0 => c.ask("DEBUG RELOAD").ok(),
            1 => c.ask("DEBUG LOADAOF").ok(),
            4 => {
                server.kill9();
                server.boot();
            }
            5 => {
                for key in KEYS {
                    let dump = c.ask(format!("DUMP {key}"));
                    if dump.is_null() {
                        continue;
                    }
                    c.cmd(&[b"RESTORE".as_slice(), key.as_bytes(), b"0", dump.bytes(), b"REPLACE"]).ok();
                    assert_eq!(c.ask(format!("COPY {key} copy REPLACE")).int(), 1);
                    assert_eq!(c.digest("copy"), c.digest(key));
                }
            }
            _ => server.restart_from_aof(),
        }
        let mut c = server.client();
        assert_eq!(digests(&mut c), before, "round {round}");
    }
}

#[test]
fn a_random_history_survives_an_rdb_file() {
    let mut server = Server::start();
    let mut random = Random::seeded(29);
    for round in 0..4 {
        let mut c = server.client();
        go_on(&mut c, &mut random, 200);
        let before = digests(&mut c);
        server.restart_from_rdb();
        assert_eq!(digests(&mut server.client()), before, "round {round}");
    }
}

#[test]
fn a_truncated_aof_keeps_everything_before_the_cut() {
    let mut server = Server::with_aof(&["--aof-use-rdb-preamble", "no", "--aof-load-truncated", "yes"]);
    let mut c = server.client();
    go_on(&mut c, &mut Random::seeded(31), 200);
    c.ask("DQ.RESUME a");
    let before = digests(&mut c);
    c.push("a last");
    server.kill9();
    let folder = server.dir().join("appendonlydir");
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let log = names.into_iter().find(|path| path.to_string_lossy().ends_with(".incr.aof")).unwrap();
    let length = std::fs::metadata(&log).unwrap().len();
    std::fs::OpenOptions::new().write(true).open(&log).unwrap().set_len(length - 7).unwrap();
    server.boot();
    assert_eq!(digests(&mut server.client()), before);
}
