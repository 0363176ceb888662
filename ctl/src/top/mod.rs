//! `dqctl top`: queues and their messages, live in the terminal. It only looks.
//!
//! `reader` reads the server in a thread of its own: the queues through the board, and what else the screen shows.
//! `app` has the state and handles keys, with a file for each page: `list`, `messages`, `message` and `findings`.
//! `view` renders the state as lines, and `terminal` shows them. Only `terminal` writes to the terminal, and only text
//! that has been escaped.

mod app;
mod cursor;
mod findings;
mod list;
mod message;
mod messages;
mod reader;
mod terminal;
mod view;

use crate::board::{names, Board, Memory};
use crate::cli::TopArgs;
use crate::server::{Failure, Outcome};
use app::{App, Next};
use crossterm::event::{self, Event};
use dq_client::blocking::Client;
use reader::{Ask, Reader, Update};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::signal_name;
use std::io::{self, IsTerminal};
use std::process;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use terminal::Terminal;

/// How long the screen waits for keys before it looks for new data.
const TURN: Duration = Duration::from_millis(50);
/// How often ages on the screen are redrawn.
const REDRAW: Duration = Duration::from_secs(1);

pub fn top(client: &Client, args: TopArgs) -> Result<Outcome, Failure> {
    // A wrong address and a server without the module are errors, before a screen is shown.
    names::check_any(client)?;
    let server = match client.servers()?.as_slice() {
        [server] => server.to_string(),
        servers => format!("cluster of {} masters", servers.len()),
    };
    let terminal = Terminal::take()?;
    let signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let board = Arc::new(Board::new(client.clone(), args.pattern, Memory::Rates));
    let (asks, asked) = mpsc::channel();
    let (updates, news) = mpsc::channel();
    let reader = Reader { client: client.clone(), board: Arc::clone(&board), every: args.every, updates };
    thread::Builder::new().name("dq-reader".to_owned()).spawn(move || reader.run(&asked))?;
    thread::Builder::new().name("dq-terminal".to_owned()).spawn(move || watch(signals))?;
    run(terminal, App::new(board, server, args.every), &asks, &news)
}

/// Ends the process on a signal, or if its terminal has gone, from which `event::poll` reads for ever.
fn watch(mut signals: Signals) {
    let why = loop {
        thread::sleep(TURN);
        match signals.pending().next().and_then(signal_name) {
            Some(signal) => break format!("it got {signal}"),
            None if !io::stdin().is_terminal() => break "its terminal has gone".to_owned(),
            None => {}
        }
    };
    // A terminal that takes no output must not keep the process alive.
    thread::spawn(move || {
        let _nothing_more_is_drawn = terminal::give_back();
        print_error!("dqctl: top has ended: {why}");
        process::exit(0)
    });
    thread::sleep(4 * TURN);
    process::exit(0);
}

fn run(mut terminal: Terminal, mut app: App, asks: &Sender<Ask>, news: &Receiver<Update>) -> Result<Outcome, Failure> {
    let gone = || Failure::failed("the thread that reads the server has ended");
    let (mut wanted, mut drawn, mut has_changed) = (None, Instant::now(), true);
    loop {
        loop {
            match news.try_recv() {
                Ok(update) => app.update(&update),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Err(gone()),
            }
            has_changed = true;
        }
        if has_changed || drawn.elapsed() >= REDRAW {
            let size = terminal.size();
            terminal.show(view::screen(&mut app, usize::from(size.0), usize::from(size.1)), size)?;
            (drawn, has_changed) = (Instant::now(), false);
            let now = Some(app.wanted());
            if now != wanted {
                asks.send(Ask::Show(now.clone().unwrap_or_default())).map_err(|_| gone())?;
                wanted = now;
            }
        }
        if event::poll(TURN)? {
            has_changed = true;
            let Event::Key(key) = event::read()? else { continue };
            match app.key(key) {
                Next::Leave => return Ok(Outcome::Done),
                Next::Examine => asks.send(Ask::Examine).map_err(|_| gone())?,
                Next::Stay => {}
            }
        }
    }
}
