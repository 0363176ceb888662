//! Commands whose reply was lost: those that can be repeated are, and report what the first one did.

use crate::dqctl::{command, run, Ran};
use crate::support::Server;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;

/// Stands between `dqctl` and a server, and cuts the connection in place of the first reply to a command.
fn cutting(server: &Server, name: &'static str) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let (port, is_cut) = (server.port(), Arc::new(AtomicBool::new(false)));
    thread::spawn(move || {
        for client in listener.incoming() {
            let (client, server) = (client.unwrap(), TcpStream::connect(("127.0.0.1", port)).unwrap());
            let cuts = Arc::new(AtomicBool::new(false));
            let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            let (is_cut, cuts_next) = (Arc::clone(&is_cut), Arc::clone(&cuts));
            thread::spawn(move || {
                pass_on(from, to, |bytes| {
                    let is_meant = bytes.windows(name.len()).any(|window| window == name.as_bytes());
                    if is_meant && !is_cut.swap(true, Ordering::SeqCst) {
                        cuts_next.store(true, Ordering::SeqCst);
                    }
                    true
                });
            });
            thread::spawn(move || pass_on(server, client, |_| !cuts.load(Ordering::SeqCst)));
        }
    });
    url
}

/// Passes bytes on until there are none, or one must not pass.
fn pass_on(mut from: TcpStream, mut to: TcpStream, passes: impl Fn(&[u8]) -> bool) {
    let mut bytes = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        if !passes(&bytes[..read]) || to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

fn cut(server: &Server, name: &'static str, args: &[&str]) -> Ran {
    let mut command = command(server, args);
    command.env("DQ_URL", cutting(server, name));
    run(command)
}

#[test]
fn a_burial_whose_reply_was_lost_is_made() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x", "ID", "m"]);
    let ran = cut(&server, "DQ.BURY", &["bury", "q", "m"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "m\n", ""), "{ran:?}");
    let again = cut(&server, "DQ.BURY", &["bury", "q", "none"]);
    assert_eq!(again.code, 1, "{again:?}");
}

#[test]
fn a_push_with_an_id_whose_reply_was_lost_is_made_once() {
    let server = Server::start();
    let ran = cut(&server, "DQ.PUSH", &["push", "q", "x", "--id", "m"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "m\n", ""), "{ran:?}");
    assert_eq!(server.text(&["DQ.LEN", "q"]), "1");
    // Nobody can tell whether these were made.
    for args in [&["push", "q", "x"][..], &["push", "q", "x", "--id", "m", "--replace"]] {
        let ran = cut(&server, "DQ.PUSH", args);
        assert!(ran.code == 3 && ran.err.contains("unknown"), "{ran:?}");
    }
}

#[test]
fn a_repeated_push_does_not_claim_the_message_of_another() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "other", "ID", "m"]);
    let ran = cut(&server, "DQ.PUSH", &["push", "q", "x", "--id", "m"]);
    assert!(ran.code == 1 && ran.err.contains("duplicate"), "{ran:?}");
    server.ask(&["DQ.BURY", "q", "m"]);
    let ran = cut(&server, "DQ.PUSH", &["push", "q", "x", "--id", "m"]);
    assert!(ran.code == 3 && !ran.err.contains("unknown"), "{ran:?}");
    // The id is remembered, and nothing says whose it was.
    server.ask(&["DQ.CREATE", "d", "DEDUPE", "3600000"]);
    server.ask(&["DQ.PUSH", "d", "other", "ID", "m"]);
    server.ask(&["DQ.POP", "d", "NOACK"]);
    let ran = cut(&server, "DQ.PUSH", &["push", "d", "x", "--id", "m"]);
    assert!(ran.code == 3 && ran.err.contains("unknown"), "{ran:?}");
}
