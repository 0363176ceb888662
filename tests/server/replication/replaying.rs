//! An AOF that is piped into another server: while that server accepts effects from clients, it decides nothing by
//! time.

use crate::support::{eventually, writes_in_aof, Client, Server};

/// The queues of the source, and the stream to which one of them forwards.
const KEYS: [&str; 4] = ["forwards", "runs", "dying", "s"];

/// Makes decisions of clients and of time in turn. At the end nothing changes any more, and a run has failed that time
/// could not end yet.
fn live(c: &mut Client) {
    c.create("forwards FORWARD STREAM s");
    c.create("dying DEADLEN 1 RETRIES 0");
    for nth in 0..20 {
        c.push(format!("forwards x ID m{nth} DELAY {}", nth * 5));
    }
    c.ask("DQ.SCHEDULE runs s x EVERY 20 RETRIES 0 AT 100000000001");
    for run in 1..=5 {
        c.ask("DQ.POP runs LEASE 1 BLOCK 0");
        eventually("time has ended the run", || c.get("runs", "s").int("runs") == run);
        c.push("runs x ID between");
        c.cancel("runs between");
        c.push(format!("dying x ID m{run}"));
        c.pop_one("dying LEASE 1");
    }
    eventually("they have died", || c.counts("dying")[3] == 1);
    eventually("they are forwarded", || c.about("forwards").int("forwarded") == 20);
    c.push_many("forwards 2 x y IDS later last DELAY 3600000");
    c.until_state("runs", "s", "ready");
    c.at_once(["DQ.POP runs LEASE 1", "CLIENT PAUSE 600000 WRITE"]);
}

/// Returns once the timer has run.
fn let_time_act(server: &Server, c: &mut Client) {
    let mut waiting = server.client();
    waiting.wait_for_message("probe");
    c.push("probe x DELAY 2");
    waiting.served();
}

#[test]
fn a_piped_aof_gives_the_same_queues() {
    let source = Server::with_aof(&[]);
    let mut s = source.client();
    live(&mut s);
    let server = Server::with(&["--dq.allow-effects", "yes"]);
    let (mut c, mut pipe) = (server.client(), server.client());
    assert_eq!(c.info("dq", "dq_decides_by_time"), "0");
    assert!(server.log().contains("dq.allow-effects is yes"));
    for words in writes_in_aof(&source) {
        let reply = pipe.cmd(&words);
        assert!(!reply.is_error(), "{reply:?}");
        let_time_act(&server, &mut c);
    }
    assert_eq!(KEYS.map(|key| c.digest(key)), KEYS.map(|key| s.digest(key)));
    let runs = c.get("runs", "s").int("runs");
    c.configure("dq.allow-effects", "no");
    assert_eq!(c.info("dq", "dq_decides_by_time"), "1");
    eventually("time ends the run", || c.get("runs", "s").int("runs") == runs + 1);
}
