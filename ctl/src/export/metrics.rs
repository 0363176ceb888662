//! Reads the metrics of all queues and servers. What can be read is exported, though some servers of a cluster do not
//! answer.

use super::counters::Counters;
use super::queue;
use crate::board::names;
use crate::cli::ExportArgs;
use crate::http::prometheus::{Metric, Text};
use crate::server::{reply, Failure, Fields};
use crate::text::labels;
use dq_client::{blocking::Client, cmd, Address, Cmd, Error, Value};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

const UP: Metric = ("dq_up", "gauge", "Whether the last reading reached all servers, and they have loaded the module.");
const SERVER_UP: Metric = ("dq_server_up", "gauge", "Whether the last reading reached the server.");
const LIMITED: Metric = ("dq_queues_limited", "gauge", "Whether there are more queues than --max-queues.");

/// Fields of `INFO dq`, and the value of one unit of each.
const SERVER: [(&str, Metric, f64); 8] = [
    ("dq_timer_runs", ("dq_timer_runs_total", "counter", "Runs of the timer."), 1.0),
    ("dq_timer_punctual", ("dq_timer_punctual_total", "counter", "Runs that began at the due time."), 1.0),
    ("dq_timer_moved", ("dq_timer_moved_total", "counter", "Messages that the timer made ready or dead."), 1.0),
    ("dq_timer_over_budget", ("dq_timer_over_budget_total", "counter", "Runs that left work to the next run."), 1.0),
    ("dq_timer_last_us", ("dq_timer_last_seconds", "gauge", "Duration of the last run."), 1e-6),
    ("dq_timer_longest_us", ("dq_timer_longest_seconds", "gauge", "Duration of the longest run."), 1e-6),
    (
        "dq_decides_by_time",
        (
            "dq_decides_by_time",
            "gauge",
            "Whether the server decides what time does: 0 with dq.allow-effects, and on a replica.",
        ),
        1.0,
    ),
    (
        "dq_unsound_queues",
        ("dq_unsound_queues", "gauge", "Queues that are not served after an error of the module."),
        1.0,
    ),
];

/// Queues that are asked for in one batch.
const BATCH: usize = 100;

/// Reads metrics, one reading at a time.
pub struct Exporter {
    client: Client,
    args: ExportArgs,
    /// Locked for a whole reading, so that many readers do not multiply the work of the server.
    state: Mutex<State>,
}

/// Results of earlier readings.
#[derive(Default)]
struct State {
    found: Option<FoundQueues>,
    counters: Counters,
    /// The last reading, and when it ended.
    last: Option<(String, Instant)>,
}

/// The queues that were found.
struct FoundQueues {
    names: Vec<Vec<u8>>,
    /// There are more.
    is_limited: bool,
    /// Where they were searched for, and when.
    servers: BTreeSet<Address>,
    at: Instant,
}

/// A reading, and the failures of its missing parts.
#[derive(Default)]
struct Reading {
    text: Text,
    failures: Vec<Failure>,
}

impl Exporter {
    pub fn new(client: Client, args: ExportArgs) -> Exporter {
        Exporter { client, args, state: Mutex::default() }
    }

    /// The metrics at this instant, as far as they can be read.
    pub fn metrics(&self) -> String {
        let asked = Instant::now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((text, ended)) = &state.last {
            // This reading was under way when it was asked for. If a server hangs, the next one would take as long.
            if *ended > asked {
                return text.clone();
            }
        }
        let mut reading = Reading::default();
        self.read(&mut state, &mut reading);
        for failure in reading.failures.iter().map(ToString::to_string).collect::<BTreeSet<_>>() {
            print_error!("dqctl: {failure}");
        }
        reading.text.add(UP, "", f64::from(u8::from(reading.failures.is_empty())));
        let text = reading.text.finish();
        state.last = Some((text.clone(), Instant::now()));
        text
    }

    fn read(&self, state: &mut State, reading: &mut Reading) {
        let servers = match self.client.servers() {
            Ok(servers) => servers,
            Err(error) => return reading.failures.push(error.into()),
        };
        let mut reached = BTreeSet::new();
        for server in &servers {
            match self.server(server, &mut reading.text) {
                Ok(()) => _ = reached.insert(server.clone()),
                Err(failure) => reading.failures.push(failure),
            }
        }
        let is_fresh = |found: &FoundQueues| found.servers == reached && found.at.elapsed() < self.args.every;
        let fresh = state.found.take().filter(is_fresh);
        let found = fresh.unwrap_or_else(|| self.find(&reached, &mut reading.failures));
        for server in &servers {
            let labels = labels(&[("server", &server.to_string())]);
            reading.text.add(SERVER_UP, &labels, f64::from(u8::from(found.servers.contains(server))));
        }
        if found.servers.is_empty() {
            return;
        }
        for names in found.names.chunks(BATCH) {
            self.queues(names, &mut state.counters, reading);
        }
        reading.text.add(LIMITED, "", f64::from(u8::from(found.is_limited)));
        if reading.failures.is_empty() {
            state.counters.keep(&found.names);
        }
        state.found = Some(found);
    }

    /// Adds the metrics of a server.
    fn server(&self, server: &Address, text: &mut Text) -> Result<(), Failure> {
        // Before the numbers: a server without the module answers as one without queues.
        names::check_on(&self.client, server)?;
        let info = self.client.call_on(server, cmd("INFO").arg("dq"))?;
        let info = reply::text(&info).unwrap_or_default();
        let labels = labels(&[("server", &server.to_string())]);
        for (field, metric, unit) in SERVER {
            let value = |line: &str| line.strip_prefix(field)?.strip_prefix(':')?.trim().parse::<f64>().ok();
            if let Some(value) = info.lines().find_map(value) {
                text.add(metric, &labels, value * unit);
            }
        }
        Ok(())
    }

    /// Searches for queues on these servers. Those that fail, because they load their data for example, are not among
    /// the servers of the result.
    fn find(&self, servers: &BTreeSet<Address>, failures: &mut Vec<Failure>) -> FoundQueues {
        let ExportArgs { pattern, queues, max_queues, .. } = &self.args;
        let (mut found, mut searched) = (BTreeSet::new(), servers.clone());
        if queues.is_empty() || pattern.is_some() {
            for server in servers {
                match names::find_on(&self.client, server, pattern.as_deref()) {
                    Ok(names) => found.extend(names),
                    Err(failure) => {
                        searched.remove(server);
                        failures.push(failure);
                    }
                }
            }
        }
        let is_limited = found.len() > *max_queues;
        let mut names: Vec<Vec<u8>> = found.into_iter().take(*max_queues).filter(|name| !self.is_named(name)).collect();
        names.extend(queues.iter().map(|name| name.as_bytes().to_vec()).collect::<BTreeSet<_>>());
        FoundQueues { names, is_limited, servers: searched, at: Instant::now() }
    }

    /// Whether the command line names the queue.
    fn is_named(&self, name: &[u8]) -> bool {
        self.args.queues.iter().any(|named| named.as_bytes() == name)
    }

    /// Adds the metrics of some queues. They are asked for together, so that a server that does not answer is waited
    /// for once.
    fn queues(&self, names: &[Vec<u8>], counters: &mut Counters, reading: &mut Reading) {
        let of_each = |command: &'static str| names.iter().map(move |name| cmd(command).arg(name).clone());
        let mut infos = self.client.batch(&of_each("DQ.INFO").chain(of_each("DQ.STATS")).collect::<Vec<Cmd>>());
        let stats = infos.split_off(names.len());
        let mut failure = None;
        for ((name, info), stats) in names.iter().zip(infos).zip(stats) {
            let read = self.queue(name, info, counters, &mut reading.text);
            let read = read.and_then(|()| {
                if let Some(stats) = Fields::read(stats?)? {
                    queue::add_stats(&mut reading.text, name, &stats);
                }
                Ok(())
            });
            match read {
                Ok(()) => {}
                // Its key was replaced since it was found, or the user has no right to it.
                Err(denied) if denied.is_of_key() => {}
                Err(error) => failure = Some(error),
            }
        }
        reading.failures.extend(failure);
    }

    /// Adds what `DQ.INFO` replied for a queue.
    fn queue(
        &self,
        name: &[u8],
        info: Result<Value, Error>,
        counters: &mut Counters,
        text: &mut Text,
    ) -> Result<(), Failure> {
        match Fields::read(info?)? {
            Some(info) => queue::add_info(text, counters, name, &info),
            // What reads the metrics of this queue cannot tell none from an exporter that is down.
            None if self.is_named(name) => queue::add_info(text, counters, name, &queue::zeros()),
            // It was deleted since it was found.
            None => {}
        }
        Ok(())
    }
}
