//! `dqctl load`: pushes what `dqctl dump` wrote.
//!
//! Every message is pushed under an id, so a load that was interrupted is simply repeated: messages that the queue already
//! holds are not pushed again. The lines are read and pushed a batch at a time.

mod headers;
mod ids;

use crate::cli::LoadArgs;
use crate::dump::line::{self, Line, QueueLine, What};
use crate::failure::{Failure, Outcome};
use crate::name::shown;
use crate::output::Output;
use crate::progress::Progress;
use crate::queues;
use crate::transfer::{get_all, is_generated, push_all, type_of, NewMessage, Pushed, Refused, BATCH, BATCH_BYTES};
use crate::wording::messages;
use dq_client::{cmd, Client, Error, Resend};
use serde_json::json;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::path::Path;

pub fn load(client: &Client, args: &LoadArgs, output: &Output) -> Result<Outcome, Failure> {
    let mut lines = open(args.file.as_deref())?;
    queues::check(client)?;
    let mut load = Load::new(client, args.queue.as_ref().map(|queue| queue.as_bytes().to_vec()));
    let mut text = Vec::new();
    let mut number = 0;
    loop {
        text.clear();
        if lines.read_until(b'\n', &mut text).map_err(|error| load.unreadable(args, number, &error))? == 0 {
            break;
        }
        number += 1;
        let trimmed = text.trim_ascii();
        if trimmed.is_empty() {
            continue;
        }
        match line::read(trimmed) {
            Ok(line) => load.take(number, line)?,
            Err(what) => {
                load.flush()?;
                return Err(load.stopped(number, &what));
            }
        }
    }
    load.flush()?;
    drop(load.progress);
    let (loaded, held) = (load.loaded, load.held);
    if load.trimmed > 0 {
        say!(
            "dqctl: loaded without some of their headers: {}, because a push takes at most 64, of 16384 bytes \
             together; those that the server had added (dq-…) were left out first",
            messages(load.trimmed)
        );
    }
    let known = if held > 0 { format!("; {held} were there already") } else { String::new() };
    output.result(&format!("loaded {loaded}{known}"), json!({ "loaded": loaded, "already": held }))?;
    Ok(Outcome::Done)
}

fn open(file: Option<&Path>) -> Result<Box<dyn BufRead>, Failure> {
    match file {
        Some(path) if path != Path::new("-") => {
            let file = File::open(path).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
            Ok(Box::new(BufReader::with_capacity(1 << 20, file)))
        }
        None if io::stdin().is_terminal() => {
            Err(Failure::usage("nothing to load: name a file, or pipe the output of dqctl dump into dqctl"))
        }
        _ => Ok(Box::new(BufReader::with_capacity(1 << 20, io::stdin().lock()))),
    }
}

struct Load<'a> {
    client: &'a Client,
    /// The queue into which everything is loaded, instead of those that the lines name.
    target: Option<Vec<u8>>,
    queue: Vec<u8>,
    batch: Vec<NewMessage>,
    /// The lines of the batch, the generated ids that their messages had, and its size.
    numbers: Vec<u64>,
    generated: Vec<Option<Vec<u8>>>,
    bytes: usize,
    loaded: u64,
    held: u64,
    /// Messages of which some headers were left out.
    trimmed: u64,
    progress: Progress,
}

impl<'a> Load<'a> {
    fn new(client: &'a Client, target: Option<Vec<u8>>) -> Load<'a> {
        Load {
            client,
            target,
            queue: Vec::new(),
            batch: Vec::new(),
            numbers: Vec::new(),
            generated: Vec::new(),
            bytes: 0,
            loaded: 0,
            held: 0,
            trimmed: 0,
            progress: Progress::new("loaded"),
        }
    }

    fn take(&mut self, number: u64, line: Line) -> Result<(), Failure> {
        let queue = self.target.clone().unwrap_or_else(|| line.queue.clone());
        if queue != self.queue {
            self.flush()?;
            self.queue = queue;
        }
        let (mut trimmed, mut generated) = (false, None);
        let mut named = |mut message: NewMessage| {
            trimmed = headers::fit(&mut message.headers);
            if is_generated(&message.id) {
                let id = ids::derived(&line.queue, &message.id, &message.payload);
                generated = Some(std::mem::replace(&mut message.id, id));
            }
            message
        };
        let taken = match line.what {
            What::Queue(queue) => {
                self.flush()?;
                self.create(&queue).map_err(|error| self.stopped(number, &error))
            }
            What::Schedule(message, rule) => {
                self.flush()?;
                self.declare(&message, &rule).map_err(|error| self.stopped(number, &error))
            }
            What::Message(message) => {
                let message = named(message);
                self.numbers.push(number);
                self.generated.push(generated.take());
                self.bytes += message.size();
                self.batch.push(message);
                self.flush_if_full()
            }
        };
        self.trimmed += u64::from(trimmed);
        taken
    }

    fn flush_if_full(&mut self) -> Result<(), Failure> {
        if self.numbers.len() >= BATCH || self.bytes >= BATCH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Leaves out the messages with generated ids that the queue still holds under these: it is the one that was dumped.
    fn leave_out_held(&mut self) -> Result<(), Failure> {
        let generated = std::mem::take(&mut self.generated);
        let ids: Vec<&[u8]> = generated.iter().flatten().map(Vec::as_slice).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let mut held = get_all(self.client, &self.queue, &ids)?.into_iter();
        // The same id on another server is that of another message.
        let mut is_held = |generated: &Option<Vec<u8>>, message: &NewMessage| {
            let held = generated.as_ref().and_then(|_| held.next()).flatten();
            held.is_some_and(|held| held.bytes("payload") == message.payload)
        };
        let stays: Vec<bool> = generated.iter().zip(&self.batch).map(|(id, message)| !is_held(id, message)).collect();
        self.held += stays.iter().filter(|stays| !**stays).count() as u64;
        retain(&mut self.numbers, &stays);
        retain(&mut self.batch, &stays);
        Ok(())
    }

    /// Pushes the batch.
    fn flush(&mut self) -> Result<(), Failure> {
        self.leave_out_held()?;
        let numbers = std::mem::take(&mut self.numbers);
        self.bytes = 0;
        let (outcomes, error) = match push_all(self.client, &self.queue, &std::mem::take(&mut self.batch)) {
            Ok(outcomes) => (outcomes, None),
            Err(Refused { before, error }) => (before, Some(error)),
        };
        let new = outcomes.iter().filter(|pushed| **pushed == Pushed::New).count();
        self.loaded += new as u64;
        self.held += (outcomes.len() - new) as u64;
        self.progress.at(self.loaded + self.held);
        match error {
            None => Ok(()),
            Some(error) => {
                let line = numbers.get(outcomes.len()).copied().unwrap_or_default();
                Err(self.stopped(line, &Failure::from(error)))
            }
        }
    }

    fn unreadable(&self, args: &LoadArgs, line: u64, error: &io::Error) -> Failure {
        let file = args.file.as_deref().filter(|path| *path != Path::new("-"));
        let name = file.map_or_else(|| "standard input".to_owned(), |path| path.display().to_string());
        self.stopped(line + 1, &format!("{name}: {error}; name a file that dqctl dump wrote"))
    }

    fn stopped(&self, line: u64, why: &dyn std::fmt::Display) -> Failure {
        Failure::failed(format!(
            "line {line}: {why}; loaded before it: {}; repeat the load to continue",
            messages(self.loaded)
        ))
    }

    /// Creates the queue with its settings, unless it exists: its settings are then left as they are.
    fn create(&mut self, queue: &QueueLine) -> Result<(), Failure> {
        let exists = type_of(self.client, &self.queue)? != "none";
        let mut create = cmd("DQ.CREATE");
        create.arg(&self.queue).arg(&queue.settings);
        if exists {
            return match self.client.call(&create, Resend::Harmless) {
                Err(Error::Server(text)) if text.contains("other settings") => {
                    say!(
                        "dqctl: the queue {} exists with other settings than the dump's, and keeps them",
                        shown(&self.queue)
                    );
                    Ok(())
                }
                other => {
                    other?;
                    Ok(())
                }
            };
        }
        if queue.is_paused && queue.paused_until.is_none_or(|until| until > crate::time::now_ms()) {
            let mut pause = cmd("DQ.PAUSE");
            pause.arg(&self.queue);
            if let Some(until) = queue.paused_until {
                pause.arg("FOR").arg(until - crate::time::now_ms());
            }
            // In one step, so that a load that is interrupted does not leave a queue that delivers.
            for reply in self.client.transaction(&[create, pause])? {
                reply?;
            }
            return Ok(());
        }
        self.client.call(&create, Resend::Harmless)?;
        Ok(())
    }

    /// Declares a schedule, unless the queue has a message of its id: that may have been changed since the dump.
    fn declare(&mut self, message: &NewMessage, rule: &[(&'static str, String)]) -> Result<(), Failure> {
        let held = get_all(self.client, &self.queue, &[&message.id])?;
        if held.iter().any(Option::is_some) {
            self.held += 1;
            return Ok(());
        }
        let mut command = cmd("DQ.SCHEDULE");
        command.arg(&self.queue).arg(&message.id).arg(&message.payload);
        for (option, value) in rule {
            command.arg(*option).arg(value);
        }
        let numbers =
            [("AT", message.due), ("RETRIES", message.retries), ("LEASE", message.lease), ("TTL", message.ttl)];
        for (option, value) in numbers {
            if let Some(value) = value {
                command.arg(option).arg(value);
            }
        }
        if message.priority != 0 {
            command.arg("PRIORITY").arg(message.priority);
        }
        message.write_marks(&mut command);
        self.client.call(&command, Resend::Harmless)?;
        self.loaded += 1;
        Ok(())
    }
}

/// Keeps the items that stay.
fn retain<T>(items: &mut Vec<T>, stays: &[bool]) {
    let mut stays = stays.iter();
    items.retain(|_| stays.next().is_none_or(|stays| *stays));
}
