//! A network between a client and a server that a test can disturb.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A proxy to a server. It ends with the process.
pub struct Proxy {
    pub port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// The word in the commands whose replies are cut, after how many bytes, and how many are left to be cut.
    cut: Mutex<(&'static str, usize, usize)>,
    /// Connections up to this number pass nothing on.
    silent: AtomicUsize,
    connections: AtomicUsize,
    held: AtomicBool,
}

impl Proxy {
    pub fn to(server: u16) -> Proxy {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let (port, shared) = (listener.local_addr().unwrap().port(), Arc::new(Shared::default()));
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                accepting.begin(client.unwrap(), server);
            }
        });
        Proxy { port, shared }
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The replies to the next `count` commands with this word end after `bytes`, and their connections with them.
    pub fn cut_replies(&self, word: &'static str, bytes: usize, count: usize) {
        *self.shared.cut.lock().unwrap() = (word, bytes, count);
    }

    /// How many replies are still to be cut.
    pub fn left_to_cut(&self) -> usize {
        self.shared.cut.lock().unwrap().2
    }

    /// The connections that are open stay open, but nothing passes any more. New ones work.
    pub fn fall_silent(&self) {
        self.shared.silent.store(self.shared.connections.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    /// Whether replies wait.
    pub fn hold(&self, held: bool) {
        self.shared.held.store(held, Ordering::SeqCst);
    }
}

impl Shared {
    fn begin(self: &Arc<Self>, client: TcpStream, server: TcpStream) {
        let number = self.connections.fetch_add(1, Ordering::SeqCst) + 1;
        // After how many bytes of the next reply the connection ends, if it does.
        let cut = Arc::new(Mutex::new(None));
        let (shared, noted) = (Arc::clone(self), Arc::clone(&cut));
        let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        thread::spawn(move || shared.pass(number, from, to, |shared, commands| shared.note(commands, &noted)));
        let shared = Arc::clone(self);
        thread::spawn(move || {
            shared.pass(number, server, client, |shared, replies| {
                while shared.held.load(Ordering::SeqCst) {
                    thread::sleep(Duration::from_millis(2));
                }
                let kept = cut.lock().unwrap().take();
                kept.map_or(replies.len(), |kept: usize| kept.min(replies.len()))
            });
        });
    }

    /// Notes whether the reply to a command is to be cut. All of the command passes.
    fn note(&self, commands: &[u8], noted: &Mutex<Option<usize>>) -> usize {
        let mut cut = self.cut.lock().unwrap();
        let (word, bytes, left) = *cut;
        if left > 0 && String::from_utf8_lossy(commands).contains(word) {
            cut.2 -= 1;
            *noted.lock().unwrap() = Some(bytes);
        }
        commands.len()
    }

    /// Passes bytes on until `look` keeps some of them back, which ends the connection.
    fn pass(&self, number: usize, mut from: TcpStream, mut to: TcpStream, look: impl Fn(&Shared, &[u8]) -> usize) {
        let mut buffer = [0; 65536];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if number <= self.silent.load(Ordering::SeqCst) {
                continue;
            }
            let passed = look(self, &buffer[..length]);
            if to.write_all(&buffer[..passed]).is_err() || passed < length {
                break;
            }
        }
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    }
}
