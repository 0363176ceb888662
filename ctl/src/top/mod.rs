//! `dqctl top`: queues and their messages, live in the terminal.
//!
//! `source` with its `lists` reads the server and executes actions in a thread of its own; `exchange` has what that thread and the
//! screen send each other. `input` reads keys from the terminal. `app` has the state and handles keys, `moves` those that lead elsewhere, `ask` those that change
//! something, each after a `question`, `marked` of several queues, `prompt` those of what is typed, and `alter` those of settings.
//! `view` renders the state as lines with a file for each page (`list` with its `columns`, `findings`, `found`, `queue` with its
//! `head`, `listing`, `message`, `details`), one for the keys and one for the help, and `terminal` shows them. `deaths` and
//! `sources` say how many messages died, and where those that were moved came from, and `recurring` how many of them are schedules.
//! Only `terminal` writes to the terminal, and only text that `text` has escaped.

mod action;
mod alter;
mod app;
mod ask;
mod columns;
mod deaths;
mod details;
mod entries;
mod exchange;
mod findings;
mod found;
mod head;
mod help;
mod input;
mod keys;
mod list;
mod listing;
mod marked;
mod message;
mod moves;
mod prompt;
mod question;
mod queue;
mod queues;
mod recurring;
mod sort;
mod source;
mod sources;
mod terminal;
mod view;

use crate::cli::top::TopArgs;
use crate::failure::{Failure, Outcome};
use crate::queues::check_on;
use app::{App, Next};
use dq_client::{Address, Client, Error};
use exchange::{Ask, Update, Wanted};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use source::Source;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, TryRecvError};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use terminal::Terminal;

/// How long the screen waits for keys before it looks for new data.
const TURN: Duration = Duration::from_millis(50);
/// How often it is checked that the terminal is still there.
const WATCH: Duration = Duration::from_millis(500);
/// How often ages on the screen are redrawn.
const REDRAW: Duration = Duration::from_secs(1);

/// The signals that end `top`.
const SIGNALS: [(i32, &str); 3] = [(SIGTERM, "it got SIGTERM"), (SIGINT, "it got SIGINT"), (SIGHUP, "it got SIGHUP")];
/// What is noted instead of the place of a signal while `top` runs, and if the terminal has gone.
const RUNS: usize = usize::MAX;
const GONE: usize = usize::MAX - 1;

pub fn top(client: &Client, args: TopArgs) -> Result<Outcome, Failure> {
    let servers = client.servers()?;
    check(client, &servers)?;
    let server = match servers.as_slice() {
        [server] => server.to_string(),
        servers => format!("cluster of {} masters", servers.len()),
    };
    let stop = Arc::new(AtomicUsize::new(RUNS));
    for (why, (signal, _)) in SIGNALS.iter().enumerate() {
        signal_hook::flag::register_usize(*signal, Arc::clone(&stop), why)?;
    }
    let terminal = Terminal::take()?;
    watch(Arc::clone(&stop))?;
    let (asks, asked) = mpsc::channel();
    let (updates, news) = mpsc::channel();
    let source = Source::new(client.clone(), args.pattern.clone(), args.every, updates);
    thread::Builder::new().name("dq-source".to_owned()).spawn(move || source.run(&asked))?;
    let outcome = run(terminal, App::new(server, args.pattern, args.every), &asks, &news, &stop);
    say_why(stop.load(Ordering::Acquire));
    outcome
}

/// Says what has ended `top`, if nobody has asked for it with a key. Standard error may have gone, too.
fn say_why(stop: usize) {
    if stop != RUNS {
        let why = SIGNALS.get(stop).map_or("its terminal has gone", |(_, why)| why);
        let _ = writeln!(io::stderr(), "dqctl: top has ended: {why}");
    }
}

/// A wrong address and a server without the module are errors, before a screen is shown. Of a cluster, it is enough that one
/// server answers.
fn check(client: &Client, servers: &[Address]) -> Result<(), Error> {
    let (mut answers, mut silent) = (false, None);
    for server in servers {
        match check_on(client, server) {
            Ok(()) => answers = true,
            Err(error @ Error::NoModule(_)) => return Err(error),
            Err(error) => silent = Some(error),
        }
    }
    silent.filter(|_| !answers).map_or(Ok(()), Err)
}

/// Ends the process if the terminal has gone: reading keys from it would never return, and use a whole core.
fn watch(stop: Arc<AtomicUsize>) -> Result<(), Failure> {
    let watch = move || loop {
        thread::sleep(WATCH);
        if !io::stdin().is_terminal() {
            // A signal that came first is the reason.
            let _ = stop.compare_exchange(RUNS, GONE, Ordering::AcqRel, Ordering::Acquire);
        }
        let why = stop.load(Ordering::Acquire);
        if why != RUNS {
            // If the screen still listens to its keys, it ends by itself.
            thread::sleep(WATCH);
            // If the terminal takes no output, the main thread waits and holds its lock; that must not keep the process alive.
            let (given, is_given) = mpsc::channel();
            let give_back = move || {
                terminal::give_back();
                say_why(why);
                let _ = given.send(());
            };
            if thread::Builder::new().name("dq-give-back".to_owned()).spawn(give_back).is_ok() {
                let _ = is_given.recv_timeout(WATCH);
            }
            std::process::exit(0);
        }
    };
    thread::Builder::new().name("dq-terminal".to_owned()).spawn(watch)?;
    Ok(())
}

fn run(
    mut terminal: Terminal,
    mut app: App,
    asks: &mpsc::Sender<Ask>,
    news: &mpsc::Receiver<Update>,
    stop: &AtomicUsize,
) -> Result<Outcome, Failure> {
    let gone = || Failure::failed("the thread that reads the server has ended");
    let (mut wanted, mut drawn, mut changed) = (Wanted::default(), Instant::now(), true);
    while stop.load(Ordering::Acquire) == RUNS {
        loop {
            match news.try_recv() {
                Ok(update) => app.update(update),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Err(gone()),
            }
            changed = true;
        }
        changed |= app.tick();
        if changed || drawn.elapsed() >= REDRAW {
            let size = terminal.size();
            let lines = view::screen(&mut app, usize::from(size.0), usize::from(size.1));
            terminal.show(lines, size)?;
            (drawn, changed) = (Instant::now(), false);
            let now = app.wanted();
            if now != wanted {
                asks.send(Ask::Show(now.clone())).map_err(|_| gone())?;
                wanted = now;
            }
        }
        let events = input::read(if changed { Duration::ZERO } else { TURN })?;
        changed |= !events.is_empty();
        for key in input::keys(events) {
            match app.key(key) {
                Next::Leave => return Ok(Outcome::Done),
                Next::Do(action) => asks.send(Ask::Do(action)).map_err(|_| gone())?,
                Next::Examine => asks.send(Ask::Examine).map_err(|_| gone())?,
                Next::Find(search) => asks.send(Ask::Find(search)).map_err(|_| gone())?,
                // What was typed for a key that has no use here must not be taken for other keys.
                Next::Refused => break,
                Next::Stay => {}
            }
        }
    }
    Ok(Outcome::Done)
}
