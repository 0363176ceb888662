//! The progress of a command that may take long: a line on the terminal, and a report if it is interrupted.
//!
//! The line is drawn on standard error, if that is a terminal, and only once a command has taken a while. Ctrl-C ends
//! the command with a line that says how far it came and whether it can be repeated, wherever its outputs go.

use super::signal::is_ignored;
use super::Output;
use crate::text::messages;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use signal_hook::consts::SIGINT;
use signal_hook::iterator::Signals;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// After this time, the line is drawn: most commands have ended by then.
const PATIENCE: Duration = Duration::from_millis(700);
/// How often it is drawn again, so that the time goes on while the server is busy.
const REDRAWN: Duration = Duration::from_millis(500);
/// The exit code of a command that SIGINT has ended, as shells have it.
const INTERRUPTED: i32 = 130;

const OF_MESSAGES: &str = "{msg}: {human_pos} of {human_len} ({percent}%), {per_sec}, {eta} left";
const OF_BYTES: &str = "{msg}: {bytes} of {total_bytes} ({percent}%), {bytes_per_sec}, {eta} left";
const OF_QUEUES: &str = "{msg}: queue {human_pos} of {human_len} ({percent}%), {elapsed}";
const BYTES_WITHOUT_TOTAL: &str = "{msg}, {bytes} read, {elapsed}";
const WITHOUT_TOTAL: &str = "{msg}: {human_pos}, {per_sec}, {elapsed}";

/// What is being done.
#[derive(Clone, Copy)]
pub struct Task {
    /// The participle: `purged`.
    pub done: &'static str,
    pub unit: Unit,
    /// Advice after an interruption.
    pub repeat: &'static str,
}

/// In what the position is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Messages,
    /// Bytes of a file.
    Bytes,
    Queues,
}

/// The progress of the command. It ends when this is dropped.
pub struct Progress(Option<Arc<Running>>);

struct Running {
    task: Task,
    bar: ProgressBar,
    begun: Instant,
    is_drawn: AtomicBool,
    may_be_drawn: bool,
    has_total: AtomicBool,
    /// How many messages are done.
    done: AtomicU64,
}

/// What Ctrl-C reports.
static RUNNING: Mutex<Option<Arc<Running>>> = Mutex::new(None);

impl Progress {
    /// Of something that nobody watches.
    pub fn none() -> Progress {
        Progress(None)
    }

    /// Of a command whose result is short, or goes to a file.
    pub fn begin(task: Task, output: &Output) -> Progress {
        Progress::start(task, !output.json && io::stderr().is_terminal())
    }

    /// Of a command that prints messages all the time: no line can be drawn where these go.
    pub fn begin_beside_output(task: Task, output: &Output) -> Progress {
        Progress::start(task, !output.json && io::stderr().is_terminal() && !io::stdout().is_terminal())
    }

    fn start(task: Task, may_be_drawn: bool) -> Progress {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()).with_message(task.done);
        let (is_drawn, has_total) = (AtomicBool::new(false), AtomicBool::new(false));
        let (begun, done) = (Instant::now(), AtomicU64::new(0));
        let running = Arc::new(Running { task, bar, begun, is_drawn, may_be_drawn, has_total, done });
        *lock() = Some(Arc::clone(&running));
        watch_for_interruption();
        Progress(Some(running))
    }

    /// Adds to the position at which it ends.
    pub fn expect(&self, more: u64) {
        if let Some(running) = &self.0 {
            let before = if running.has_total.swap(true, Relaxed) { running.bar.length().unwrap_or(0) } else { 0 };
            running.bar.set_length(before + more);
        }
    }

    /// Notes that `number` more messages are done. Of a command that counts messages, this is its position.
    pub fn done(&self, number: u64) {
        let Some(running) = &self.0 else { return };
        running.done.fetch_add(number, Relaxed);
        if running.task.unit == Unit::Messages {
            running.advance(number);
        } else {
            let text = format!("{} {}", messages(running.done.load(Relaxed)), running.task.done);
            running.bar.set_message(text);
        }
    }

    /// Moves the position, in bytes or queues.
    pub fn advance(&self, by: u64) {
        if let Some(running) = &self.0 {
            running.advance(by);
        }
    }
}

impl Running {
    fn advance(&self, by: u64) {
        self.bar.inc(by);
        if self.may_be_drawn && self.begun.elapsed() >= PATIENCE && !self.is_drawn.swap(true, Relaxed) {
            if let Ok(style) = ProgressStyle::with_template(self.template()) {
                self.bar.set_style(style);
            }
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.bar.enable_steady_tick(REDRAWN);
        }
    }

    fn template(&self) -> &'static str {
        match (self.task.unit, self.has_total.load(Relaxed)) {
            (Unit::Messages, true) => OF_MESSAGES,
            (Unit::Bytes, true) => OF_BYTES,
            (Unit::Queues, true) => OF_QUEUES,
            (Unit::Bytes, false) => BYTES_WITHOUT_TOTAL,
            (Unit::Messages | Unit::Queues, false) => WITHOUT_TOTAL,
        }
    }

    /// What an interrupted command reports. More may have been done than was answered.
    fn interrupted(&self) -> String {
        let Task { done, repeat, .. } = self.task;
        match self.done.load(Relaxed) {
            0 => format!("interrupted: {repeat}"),
            1 => format!("interrupted after at least 1 message was {done}: {repeat}"),
            number => format!("interrupted after at least {} were {done}: {repeat}", messages(number)),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(running) = &self.0 {
            running.bar.finish_and_clear();
            *lock() = None;
        }
    }
}

fn lock() -> std::sync::MutexGuard<'static, Option<Arc<Running>>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the program at SIGINT, with a report of what was being done. Without the thread, the signal ends it as usual.
/// In the background of a shell it is ignored.
fn watch_for_interruption() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        if is_ignored(SIGINT) {
            return;
        }
        let Ok(mut signals) = Signals::new([SIGINT]) else { return };
        let wait = move || {
            if signals.forever().next().is_some() {
                if let Some(running) = lock().as_ref() {
                    running.bar.finish_and_clear();
                    print_error!("dqctl: {}", running.interrupted());
                }
                std::process::exit(INTERRUPTED);
            }
        };
        let _ = thread::Builder::new().name("dq-interrupt".to_owned()).spawn(wait);
    });
}
