//! An AOF that ends anywhere, as after a crash: the server loads what is whole, which is a state that the queue had.
//! And one in which a bit is wrong.

use super::persistence::rewrite_aof;
use crate::support::{any_command, expect_line, writes_in_aof, Client, Random, Reply, Server};
use std::path::PathBuf;

/// The commands of a history. The cuts are in what the last of them wrote.
const COMMANDS: usize = 300;
const CUT_COMMANDS: usize = 200;

/// A state of the server: how long its AOF was, and what it held.
struct State {
    length: usize,
    digest: String,
}

/// Draws a command after which time alone decides nothing, so that a state is what the AOF says at any later time.
pub fn lasting_command(random: &mut Random) -> String {
    loop {
        let line = any_command(random, &["q", "r"]);
        if !["DEADLEN", "DEDUPE", "RATE", "RETAIN"].iter().any(|setting| line.contains(setting)) {
            return line;
        }
    }
}

/// The file of the AOF to which a server writes.
fn growing_aof(server: &Server) -> PathBuf {
    let files = std::fs::read_dir(server.dir().join("appendonlydir")).expect("the folder of the AOF");
    let mut paths = files.map(|file| file.expect("a file").path());
    paths.find(|path| path.to_string_lossy().ends_with(".incr.aof")).expect("the file that grows")
}

/// The digest of the whole data set.
pub fn digest(c: &mut Client) -> String {
    c.ask("DEBUG DIGEST").text()
}

/// Starts a server whose AOF may end anywhere. If the server has cut off its end, the AOF is rewritten, as
/// docs/operations.md says: most servers leave the beginning of a transaction there, and lose at the next start what
/// they have written after it.
pub fn boot_and_rewrite(server: &mut Server) {
    let known = server.log().len();
    server.boot();
    if server.log()[known..].contains("Truncating the AOF") {
        rewrite_aof(&mut server.client());
    }
}

#[test]
fn what_is_written_after_a_cut_transaction_and_a_rewrite_stays() {
    let mut server = Server::with_aof(&["--aof-load-truncated", "yes"]);
    let (mut c, file) = (server.client(), growing_aof(&server));
    c.push("q x ID before");
    c.pipeline(["MULTI", "DQ.PUSH q x ID lost", "DQ.PUSH q x ID lost-too", "EXEC"]);
    server.kill9();
    let whole = std::fs::read(&file).expect("the AOF");
    std::fs::write(&file, &whole[..whole.len() - "*1\r\n$4\r\nEXEC\r\n".len() - 1]).expect("a shorter AOF");
    boot_and_rewrite(&mut server);
    server.client().push("q x ID after");
    server.kill9();
    server.boot();
    assert_eq!(server.client().peek_ids("q ready COUNT 10"), ["before", "after"]);
}

#[test]
fn an_aof_cut_anywhere_loads_as_an_earlier_state() {
    cut(Cuts::Some(40));
}

/// `make soak` runs this.
#[test]
#[ignore = "restarts a server thousands of times"]
fn servers_keep_their_promises_with_an_aof_cut_anywhere() {
    cut(Cuts::EachByte);
}

/// Where the AOF is cut, in what the last commands wrote.
enum Cuts {
    EachByte,
    /// At so many bytes that are drawn.
    Some(usize),
}

fn cut(cuts: Cuts) {
    let mut server = Server::with_aof(&["--aof-load-truncated", "yes"]);
    let (mut c, mut random, file) = (server.client(), Random::seeded(11), growing_aof(&server));
    let mut states = Vec::new();
    for nth in 0..=COMMANDS {
        if nth > 0 {
            c.ask(lasting_command(&mut random));
        }
        let length = std::fs::metadata(&file).expect("the AOF").len() as usize;
        states.push(State { length, digest: digest(&mut c) });
    }
    let whole = std::fs::read(&file).expect("the AOF");
    assert_eq!(whole.len(), states[COMMANDS].length, "time wrote nothing");
    let first = states[COMMANDS - CUT_COMMANDS].length;
    let cuts: Vec<usize> = match cuts {
        Cuts::EachByte => (first..=whole.len()).collect(),
        Cuts::Some(number) => (0..number).map(|_| first + random.below(whole.len() - first)).collect(),
    };
    println!("{} cuts", cuts.len());
    for cut in cuts {
        server.kill9();
        std::fs::write(&file, &whole[..cut]).expect("a shorter AOF");
        server.boot();
        let before = states.iter().rev().find(|state| state.length <= cut).expect("the empty one");
        assert_eq!(digest(&mut server.client()), before.digest, "cut at {cut} of {}", whole.len());
    }
    let digests: std::collections::BTreeSet<&str> = states.iter().map(|state| state.digest.as_str()).collect();
    assert!(digests.len() > COMMANDS / 4, "the history has only {} states", digests.len());
}

/// By default a server goes on without a command of its AOF that fails; the servers of the other tests stop.
#[test]
fn an_effect_with_a_flipped_bit_in_the_aof_is_refused() {
    let mut server = Server::with_aof(&["--propagation-error-behavior", "ignore"]);
    let (mut c, file) = (server.client(), growing_aof(&server));
    c.push("q x ID m");
    let digest = c.digest("q");
    assert_eq!(c.ask("DQ.RESCHEDULE q m DELAY 60000"), Reply::Int(1));
    let effect = writes_in_aof(&server).pop().and_then(|mut words| words.pop()).expect("an effect");
    server.kill9();
    let mut whole = std::fs::read(&file).expect("the AOF");
    let start = whole.len() - effect.len() - 2;
    assert_eq!(whole[start..whole.len() - 2], effect);
    // The last byte of the due time.
    whole[start + effect.len() - 1] ^= 1;
    std::fs::write(&file, whole).expect("the AOF");
    server.boot();
    assert_eq!(server.client().digest("q"), digest);
    expect_line(&server, "the effect was refused: the bytes are damaged");
}
