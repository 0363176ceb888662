//! `dqctl load`: pushes what `dqctl dump` wrote.
//!
//! Every message is pushed under an id, so a load that was interrupted is simply repeated: messages that the queue
//! already holds are not pushed again. The lines are read and pushed a batch at a time.

use super::line::{self, Line, QueueLine, What};
use super::pause::Pause;
use super::push::{is_generated, push_all, type_of, NewMessage, Pushed, BATCH};
use crate::board::names;
use crate::cli::LoadArgs;
use crate::output::{Output, Progress, Task, Unit};
use crate::server::{get_all, info, quoted, Failure, Outcome, BATCH_BYTES};
use crate::text::{messages, now_ms, shown};
use dq_client::{blocking::Client, cmd, Resend};
use ring::digest::{Context, SHA256};
use serde_json::json;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::path::Path;

const LOAD: Task = Task {
    done: "loaded",
    unit: Unit::Bytes,
    repeat: "repeat the load to go on, since it leaves out what the queue holds already",
};

pub fn load(client: &Client, args: &LoadArgs, output: &Output) -> Result<Outcome, Failure> {
    let (mut lines, size) = open(args.file.as_deref())?;
    names::check(client)?;
    let mut load = Load {
        client,
        target: args.queue.as_ref().map(|queue| queue.as_bytes().to_vec()),
        is_dry: args.dry_run,
        progress: Progress::begin(LOAD, output),
        queue: Vec::new(),
        batch: Vec::new(),
        bytes: 0,
        loaded: 0,
        held: 0,
        closed: Vec::new(),
    };
    if let Some(size) = size {
        load.progress.expect(size);
    }
    let (mut text, mut number) = (Vec::new(), 0);
    loop {
        text.clear();
        number += 1;
        let read = lines.read_until(b'\n', &mut text).map_err(|error| load.stopped(number, &error))?;
        load.progress.advance(read as u64);
        match line::read(text.trim_ascii()) {
            _ if read == 0 => break,
            _ if text.trim_ascii().is_empty() => {}
            Ok(line) => load.take(number, line)?,
            Err(what) => {
                load.flush()?;
                return Err(load.stopped(number, &what));
            }
        }
    }
    load.flush()?;
    let open = load.close()?;
    let Load { loaded, held, progress, .. } = load;
    drop(progress);
    report(args, loaded, held, &open, output)
}

fn report(args: &LoadArgs, loaded: u64, held: u64, open: &[String], output: &Output) -> Result<Outcome, Failure> {
    let known = if held > 0 { format!("; {held} were there already") } else { String::new() };
    if args.dry_run {
        let object = json!({ "would-load": loaded, "already": held });
        output.result(&format!("would load {loaded}{known}"), object)?;
    } else {
        output.result(&format!("loaded {loaded}{known}"), json!({ "loaded": loaded, "already": held }))?;
    }
    let Some(first) = open.first() else { return Ok(Outcome::Done) };
    Err(Failure::failed(format!(
        "closed when dumped, and open here, since they were there before this load: {}; dqctl pause {} in closes the \
         first",
        open.join(", "),
        quoted(first)
    )))
}

/// The lines, and their size in bytes if they are those of a file.
type Lines = (Box<dyn BufRead>, Option<u64>);

fn open(file: Option<&Path>) -> Result<Lines, Failure> {
    match file {
        Some(path) if path != Path::new("-") => {
            let file = File::open(path).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
            let size = file.metadata().ok().filter(|about| about.is_file()).map(|about| about.len());
            Ok((Box::new(BufReader::with_capacity(1 << 20, file)), size))
        }
        None if io::stdin().is_terminal() => {
            Err(Failure::usage("nothing to load: name a file, or pipe the output of dqctl dump into dqctl"))
        }
        Some(_) | None => Ok((Box::new(BufReader::with_capacity(1 << 20, io::stdin().lock())), None)),
    }
}

/// A message of the batch, its line, and the generated id that it had.
type Waiting = (NewMessage, u64, Option<Vec<u8>>);

struct Load<'a> {
    client: &'a Client,
    /// The queue into which everything is loaded, instead of those that the lines name.
    target: Option<Vec<u8>>,
    /// Nothing is changed: the messages that would be loaded are counted.
    is_dry: bool,
    progress: Progress,
    queue: Vec<u8>,
    batch: Vec<Waiting>,
    bytes: usize,
    loaded: u64,
    held: u64,
    /// The queues that were closed when they were dumped, with that pause, and whether they were there before this
    /// load.
    closed: Vec<(Vec<u8>, Pause, bool)>,
}

impl Load<'_> {
    fn take(&mut self, number: u64, line: Line) -> Result<(), Failure> {
        let queue = self.target.clone().unwrap_or_else(|| line.queue.clone());
        if queue != self.queue || !matches!(line.what, What::Message(_)) {
            self.flush()?;
            self.queue = queue;
        }
        match line.what {
            What::Queue(queue) => self.create(&queue).map_err(|error| self.stopped(number, &error)),
            What::Schedule(message, rule) => {
                self.declare(&message, &rule).map_err(|error| self.stopped(number, &error))
            }
            What::Message(mut message) => {
                let id = is_generated(&message.id).then(|| derived(&line.queue, &message.id, &message.payload));
                let generated = id.map(|id| std::mem::replace(&mut message.id, id));
                self.bytes += message.size();
                self.batch.push((message, number, generated));
                if self.batch.len() >= BATCH || self.bytes >= BATCH_BYTES {
                    self.flush()?;
                }
                Ok(())
            }
        }
    }

    /// Leaves out the messages with generated ids that the queue still holds under these: they are the ones that were
    /// dumped.
    fn leave_out_held(&mut self) -> Result<(), Failure> {
        let ids: Vec<&[u8]> = self.batch.iter().filter_map(|(.., generated)| generated.as_deref()).collect();
        let mut held = get_all(self.client, &self.queue, &ids)?.into_iter();
        let before = self.batch.len();
        self.batch.retain(|(message, _, generated)| {
            let held = generated.as_ref().and_then(|_| held.next()).flatten();
            // The same id on another server is that of another message.
            held.is_none_or(|held| held.payload() != message.payload)
        });
        self.held += (before - self.batch.len()) as u64;
        Ok(())
    }

    /// Pushes the batch.
    fn flush(&mut self) -> Result<(), Failure> {
        self.leave_out_held()?;
        self.bytes = 0;
        let batch = std::mem::take(&mut self.batch);
        let (numbers, messages): (Vec<u64>, Vec<NewMessage>) =
            batch.into_iter().map(|(message, number, _)| (number, message)).unzip();
        if self.is_dry {
            return self.count(&messages);
        }
        let (outcomes, error) = push_all(self.client, &self.queue, &messages);
        let new = outcomes.iter().filter(|pushed| **pushed == Pushed::New).count();
        self.add(new as u64);
        self.held += (outcomes.len() - new) as u64;
        let line = numbers.get(outcomes.len()).copied().unwrap_or_default();
        error.map_or(Ok(()), |error| Err(self.stopped(line, &Failure::from(error))))
    }

    /// Counts the messages that would be pushed.
    fn count(&mut self, messages: &[NewMessage]) -> Result<(), Failure> {
        let ids: Vec<&[u8]> = messages.iter().map(|message| message.id.as_slice()).collect();
        let held = get_all(self.client, &self.queue, &ids)?.into_iter().flatten().count();
        self.add((messages.len() - held) as u64);
        self.held += held as u64;
        Ok(())
    }

    fn add(&mut self, number: u64) {
        self.loaded += number;
        self.progress.done(number);
    }

    fn stopped(&self, line: u64, why: &dyn std::fmt::Display) -> Failure {
        Failure::failed(format!(
            "line {line}: {why}; loaded before it: {}; repeat the load to continue",
            messages(self.loaded)
        ))
    }

    /// Creates the queue with its settings and its pauses, unless it exists. In one step, so that a load that is
    /// interrupted does not leave a queue that delivers.
    fn create(&mut self, queue: &QueueLine) -> Result<(), Failure> {
        let exists = type_of(self.client, &self.queue)? == "DQ--queue";
        let (closing, pauses): (Vec<&Pause>, Vec<&Pause>) = queue.pauses.iter().partition(|pause| pause.closes());
        if let Some(closing) = closing.first() {
            self.closed.push((self.queue.clone(), (*closing).clone(), exists));
        }
        if exists || self.is_dry {
            return Ok(());
        }
        let now = now_ms();
        let mut commands = vec![cmd("DQ.CREATE").arg(&self.queue).arg(&queue.settings).clone()];
        commands.extend(pauses.into_iter().filter_map(|pause| pause.command(&self.queue, now)));
        for answer in self.client.transaction(&commands)? {
            answer?;
        }
        Ok(())
    }

    /// Closes the queues that were closed when they were dumped, now that all their messages are loaded. Queues that
    /// existed before the load are left alone, since somebody may rely on them. Returns those of them that are open: an
    /// earlier load may have been interrupted before it closed them.
    fn close(&self) -> Result<Vec<String>, Failure> {
        let mut open = Vec::new();
        if self.is_dry {
            return Ok(open);
        }
        for (queue, closing, existed) in &self.closed {
            let Some(command) = closing.command(queue, now_ms()) else { continue };
            if !existed {
                self.client.call(&command, Resend::Harmless)?;
            } else if info::read(self.client, queue)?.is_none_or(|info| !info.closed) {
                open.push(shown(queue).to_string());
            }
        }
        Ok(open)
    }

    /// Declares a schedule, unless the queue has a message of its id: that may have been changed since the dump.
    fn declare(&mut self, message: &NewMessage, rule: &[(&'static str, Vec<u8>)]) -> Result<(), Failure> {
        let held = get_all(self.client, &self.queue, &[&message.id])?;
        if held.iter().any(Option::is_some) {
            self.held += 1;
            return Ok(());
        }
        if !self.is_dry {
            self.client.call(&message.schedule(&self.queue, rule), Resend::Harmless)?;
        }
        self.add(1);
        Ok(())
    }
}

/// The id under which a message is pushed whose id the server generated, since such an id cannot be pushed. A message
/// always gets the same one, so that a load can be repeated; the hash of the queue's name and the payload distinguishes
/// it from a message of another queue with the same generated id.
fn derived(queue: &[u8], id: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut hash = Context::new(&SHA256);
    hash.update(&(queue.len() as u64).to_le_bytes());
    hash.update(queue);
    hash.update(payload);
    let hash: String = hash.finish().as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    [b"load:", id, b":", hash.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::derived;

    #[test]
    fn derived_ids_tell_queues_and_payloads_apart() {
        let id = |queue: &str, payload: &str| derived(queue.as_bytes(), b"1795272127819-0", payload.as_bytes());
        assert_eq!(id("q", "x"), id("q", "x"));
        assert!(id("q", "x") != id("p", "x") && id("q", "x") != id("q", "y") && id("qx", "") != id("q", "x"));
        assert!(id("q", "x").starts_with(b"load:1795272127819-0:"));
    }
}
