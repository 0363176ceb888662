//! What all requests share.

use crate::board::{history::APART, Board, Memory, Sample};
use crate::findings::{self, Finding};
use crate::server::Failure;
use crate::text::now_ms;
use dq_client::blocking::Client;
use maud::Markup;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The shortest time between two looks of the doctor, and the share of the time that it looks at most.
const DOCTOR: Duration = Duration::from_secs(5);
const SHARE: u32 = 20;
/// For how long findings are shown after the next look was due.
const FRESH: Duration = Duration::from_secs(30);

pub struct App {
    pub client: Client,
    pub allow_writes: bool,
    pub board: Arc<Board>,
    /// The channel that asks the doctor to look, and its last findings.
    asks: SyncSender<()>,
    examined: Arc<Mutex<Option<Examined>>>,
}

/// What `dqctl doctor` finds, or why it could not look, and when it looked, in Unix ms.
pub struct Examined {
    pub looked: i64,
    /// Until when it is shown: a page that is opened after a pause begins with a new look.
    shown_until: Instant,
    pub findings: Result<Vec<Finding>, Failure>,
}

/// What the page shows below its head.
pub struct View {
    pub title: String,
    pub body: Markup,
}

impl App {
    pub fn start(client: &Client, allow_writes: bool) -> Result<App, Failure> {
        let board = Arc::new(Board::new(client.clone(), None, Memory::Hour));
        board.start()?;
        let (asks, asked) = mpsc::sync_channel(1);
        let (examined, client) = (Arc::default(), client.clone());
        let app = App { client: client.clone(), allow_writes, board, asks, examined: Arc::clone(&examined) };
        thread::Builder::new().name("dq-doctor".to_owned()).spawn(move || examine(&client, &asked, &examined))?;
        app.examined(|_| {});
        Ok(app)
    }

    /// The last findings of the doctor; `None` if it has not looked lately. It is asked to look again.
    pub fn examined<T>(&self, read: impl FnOnce(Option<&Examined>) -> T) -> T {
        // If it has been asked already, it looks once for both.
        let _ = self.asks.try_send(());
        let examined = self.examined.lock().unwrap_or_else(PoisonError::into_inner);
        read(examined.as_ref().filter(|examined| Instant::now() < examined.shown_until))
    }

    /// The servers, for the head of the page.
    pub fn servers(&self) -> String {
        match self.client.servers() {
            Ok(servers) if self.client.is_cluster() => format!("Cluster of {} masters", servers.len()),
            Ok(servers) => servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
            Err(_) => String::new(),
        }
    }

    /// The history of a queue, or of all together, for charts.
    pub fn samples(&self, queue: Option<&[u8]>) -> Vec<(i64, Option<Sample>)> {
        // A queue that was read meanwhile is on another server of the cluster.
        let least = if queue.is_some() { 2 * APART } else { 0 };
        let samples = self.board.history(queue, |history, interruptions| history.samples(interruptions, least));
        samples.unwrap_or_default()
    }
}

/// Looks when it is asked to, for as long as the process runs.
fn examine(client: &Client, asked: &Receiver<()>, examined: &Mutex<Option<Examined>>) {
    while asked.recv().is_ok() {
        let (looked, began) = (now_ms(), Instant::now());
        let findings = findings::examine(client);
        let took = began.elapsed();
        let pause = DOCTOR.max(took * SHARE);
        let shown_until = Instant::now() + 2 * (pause + took) + FRESH;
        *examined.lock().unwrap_or_else(PoisonError::into_inner) = Some(Examined { looked, shown_until, findings });
        thread::sleep(pause);
    }
}
