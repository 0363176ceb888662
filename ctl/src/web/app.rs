//! What all requests share.

use super::refreshed::Refreshed;
use super::servers;
use crate::board::history::APART;
use crate::board::{Board, Memory};
use crate::findings::{self, Finding};
use crate::server::failure::Failure;
use crate::text::time::now_ms;
use dq_client::blocking::Client;
use maud::Markup;
use serde_json::{json, Value as Json};
use std::sync::Arc;

pub struct App {
    pub client: Client,
    pub allow_writes: bool,
    pub board: Arc<Board>,
    pub doctor: Refreshed<Examined>,
}

/// What `dqctl doctor` finds, and when it looked, in Unix ms.
pub struct Examined {
    pub looked: i64,
    pub findings: Vec<Finding>,
}

/// What the page shows below its head.
pub struct View {
    pub title: String,
    pub body: Markup,
}

impl App {
    pub fn start(client: &Client, allow_writes: bool) -> Result<App, Failure> {
        let board = Arc::new(Board::new(client.clone(), None, Memory::Hour));
        board.start(|client| servers::sample(&servers::read(client)))?;
        let examined = client.clone();
        let doctor = Refreshed::new(move || Ok(Examined { looked: now_ms(), findings: findings::examine(&examined)? }));
        Ok(App { client: client.clone(), allow_writes, board, doctor })
    }

    /// The history of a queue, or of all together, for charts; null if there is none.
    pub fn samples(&self, queue: Option<&[u8]>) -> Json {
        // A queue that was read meanwhile is on another server of the cluster.
        let least = if queue.is_some() { 2 * APART } else { 0 };
        json!(self.board.history(queue, |history, interruptions| history.samples(interruptions, least)))
    }
}
