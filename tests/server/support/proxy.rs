//! A proxy in front of a server, which delays or drops what passes in either direction, as a broken network does.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The direction of traffic, seen from the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    In,
    Out,
}

/// What happens to traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    Passes,
    /// Each piece is held for so many ms.
    Delayed(u64),
    /// Nothing arrives, the end of a connection neither. A connection that has lost bytes is closed when the proxy is
    /// mended.
    Dropped,
}

/// A port of this machine that leads to a server. On drop all its connections are closed.
pub struct Proxy {
    port: u16,
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// The port of the server.
    target: u16,
    /// What happens to traffic in and out.
    traffic: [Traffic; 2],
    /// What happens instead to the traffic of those who connect from these addresses.
    of_source: HashMap<IpAddr, [Traffic; 2]>,
    pairs: Vec<Arc<Pair>>,
    over: bool,
}

/// A connection to the proxy, the one from the proxy to the server, and what has become of them.
struct Pair {
    source: IpAddr,
    client: TcpStream,
    server: TcpStream,
    fate: Mutex<Fate>,
}

#[derive(Default)]
struct Fate {
    /// Whether bytes have been lost.
    damaged: bool,
    hung_up: bool,
    /// How many of its two directions have ended.
    ended: usize,
}

impl Proxy {
    /// A port that leads nowhere yet.
    pub fn new() -> Proxy {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let state = State {
            target: 0,
            traffic: [Traffic::Passes; 2],
            of_source: HashMap::new(),
            pairs: Vec::new(),
            over: false,
        };
        let inner = Arc::new(Inner { state: Mutex::new(state), changed: Condvar::new() });
        let accepting = Arc::clone(&inner);
        std::thread::spawn(move || accepting.accept(&listener));
        Proxy { port, inner }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Makes new connections lead to the server at this port.
    pub fn lead_to(&self, port: u16) {
        self.inner.state().target = port;
    }

    /// Sets what happens to traffic in one direction from now on.
    pub fn set(&self, way: Way, traffic: Traffic) {
        self.inner.state().traffic[way as usize] = traffic;
        self.inner.changed.notify_all();
    }

    /// The same for the connections from an address alone.
    pub fn set_from(&self, source: IpAddr, way: Way, traffic: Traffic) {
        self.inner.state().of_source.entry(source).or_insert([Traffic::Passes; 2])[way as usize] = traffic;
        self.inner.changed.notify_all();
    }

    /// Lets all traffic pass again, and closes the connections that have lost bytes.
    pub fn mend(&self) {
        let mut state = self.inner.state();
        state.traffic = [Traffic::Passes; 2];
        state.of_source.clear();
        let damaged = |pair: &&Arc<Pair>| pair.fate().damaged;
        state.pairs.iter().filter(damaged).for_each(|pair| pair.hang_up());
        self.inner.changed.notify_all();
    }

    /// Closes all connections. A client sees this only after the server has carried out what it had received from it,
    /// so a call without a reply takes no effect later.
    pub fn hang_up(&self) {
        self.inner.state().pairs.iter().for_each(|pair| pair.hang_up());
        self.inner.changed.notify_all();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.inner.state().over = true;
        self.hang_up();
        // This wakes the thread that accepts connections.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: &Arc<Inner>, listener: &TcpListener) {
        for client in listener.incoming() {
            let mut state = self.state();
            if state.over {
                return;
            }
            let (Ok(client), Ok(server)) = (client, TcpStream::connect(("127.0.0.1", state.target))) else { continue };
            let Ok(address) = client.peer_addr() else { continue };
            let _ = (client.set_nodelay(true), server.set_nodelay(true));
            let pair = Arc::new(Pair { source: address.ip(), client, server, fate: Mutex::default() });
            for way in [Way::In, Way::Out] {
                let (inner, pair) = (Arc::clone(self), Arc::clone(&pair));
                std::thread::spawn(move || inner.carry(&pair, way));
            }
            state.pairs.push(pair);
        }
    }

    /// Carries what is sent in one direction until the connection ends.
    fn carry(&self, pair: &Arc<Pair>, way: Way) {
        let (mut from, mut to) = match way {
            Way::In => (&pair.client, &pair.server),
            Way::Out => (&pair.server, &pair.client),
        };
        let mut buffer = [0; 16_384];
        let mut lost = false;
        loop {
            let read = from.read(&mut buffer).unwrap_or(0);
            lost |= read > 0 && !self.passes(pair, way);
            if read == 0 {
                self.until_it_may_end(pair, way);
                break;
            }
            if !lost && to.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(if way == Way::In { Shutdown::Write } else { Shutdown::Both });
        let both_ended = {
            let mut fate = pair.fate();
            fate.ended += 1;
            fate.ended == 2
        };
        if both_ended {
            self.state().pairs.retain(|other| !Arc::ptr_eq(other, pair));
        }
    }

    /// Whether a piece that has just been read may be sent on, after its delay. Otherwise it is lost.
    fn passes(&self, pair: &Pair, way: Way) -> bool {
        let (start, mut state) = (Instant::now(), self.state());
        loop {
            let left = match state.traffic(pair, way) {
                Traffic::Passes => return true,
                Traffic::Dropped => {
                    pair.fate().damaged = true;
                    return false;
                }
                Traffic::Delayed(ms) => Duration::from_millis(ms).saturating_sub(start.elapsed()),
            };
            if left.is_zero() {
                return true;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until the end of a connection may be seen on the other side.
    fn until_it_may_end(&self, pair: &Pair, way: Way) {
        let is_hidden = |state: &mut State| {
            let fate = pair.fate();
            state.traffic(pair, way) == Traffic::Dropped && !fate.hung_up && !state.over
        };
        drop(self.changed.wait_while(self.state(), is_hidden).unwrap_or_else(PoisonError::into_inner));
    }
}

impl State {
    fn traffic(&self, pair: &Pair, way: Way) -> Traffic {
        self.of_source.get(&pair.source).unwrap_or(&self.traffic)[way as usize]
    }
}

impl Pair {
    fn fate(&self) -> MutexGuard<'_, Fate> {
        self.fate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the server that nothing follows. When the server has read this it closes the connection, and only then the
    /// client is told.
    fn hang_up(&self) {
        self.fate().hung_up = true;
        let _ = self.server.shutdown(Shutdown::Write);
    }
}
