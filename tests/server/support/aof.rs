//! Reads the commands that a server wrote to its AOF.

use super::client::Client;
use super::scenario::every_state;
use super::server::Server;

/// Returns the effects that a queue `q` with messages in every state leaves in the AOF, and the queue's digest.
pub fn effects_of_every_state() -> (Vec<Vec<u8>>, String) {
    let mut digest = String::new();
    let effects = effects_of(|c| {
        every_state(c, "q");
        digest = c.digest("q");
    });
    assert!(effects.len() > 10, "what clients decide is replicated as effects");
    (effects, digest)
}

/// Returns the effects that the calls of `act` leave in the AOF.
pub fn effects_of(act: impl FnOnce(&mut Client)) -> Vec<Vec<u8>> {
    let server = Server::with_aof(&[]);
    act(&mut server.client());
    let mut commands = writes_in_aof(&server);
    commands.retain(|args| args[0].eq_ignore_ascii_case(b"DQ.E"));
    commands.into_iter().map(|mut args| args.pop().unwrap()).collect()
}

/// Returns the commands that a server has written to its AOF since it started.
pub fn writes_in_aof(server: &Server) -> Vec<Vec<Vec<u8>>> {
    let dir = server.dir().join("appendonlydir");
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with(".incr.aof"));
    commands(&std::fs::read(&files[0]).unwrap())
}

/// Returns the commands in an AOF without an RDB preamble.
fn commands(mut log: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let mut commands = Vec::new();
    while !log.is_empty() {
        let count = length(&mut log, b'*');
        commands.push((0..count).map(|_| word(&mut log)).collect());
    }
    commands
}

fn length(log: &mut &[u8], kind: u8) -> usize {
    let end = log.iter().position(|byte| *byte == b'\n').unwrap();
    assert_eq!(log[0], kind);
    let number = std::str::from_utf8(&log[1..end - 1]).unwrap().parse().unwrap();
    *log = &log[end + 1..];
    number
}

fn word(log: &mut &[u8]) -> Vec<u8> {
    let len = length(log, b'$');
    let word = log[..len].to_vec();
    *log = &log[len + 2..];
    word
}
