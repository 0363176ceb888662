//! Reads the metrics of all queues, and of the timers of the servers.

use crate::board::names;
use crate::cli::ExportArgs;
use crate::http::prometheus::{Metric, Text};
use crate::server::{reply, Failure, Fields};
use crate::text::{labels, shown};
use dq_client::{blocking::Client, cmd, Error, Raw, Resend, Totals, Value};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

const UP: Metric = ("dq_up", "gauge", "Whether the last reading reached all servers, and they have loaded the module.");
const LIMITED: Metric = ("dq_queues_limited", "gauge", "Whether there are more queues than --max-queues.");
const MESSAGES: Metric = ("dq_messages", "gauge", "Messages by state.");
const EVENTS: Metric = ("dq_events_total", "counter", "What has happened since the queue was created.");
/// Fields of `DQ.INFO`, and the value of one unit of each. What is null counts as zero. One number for each queue: a label for
/// each group or consumer could be millions.
const FIELDS: [(&str, Metric, f64); 11] = [
    ("oldest-ready", ("dq_oldest_ready_seconds", "gauge", "How long the oldest ready message is due; 0: none."), 1e-3),
    ("waiting-clients", ("dq_waiting_clients", "gauge", "Clients that are blocked on the queue."), 1.0),
    ("paused", ("dq_paused", "gauge", "Whether delivery is suspended."), 1.0),
    ("closed", ("dq_closed", "gauge", "Whether pushes are refused, as somebody asked."), 1.0),
    ("maxlen", ("dq_maxlen", "gauge", "The most messages that are not dead; 0: no limit."), 1.0),
    ("payload-bytes", ("dq_payload_bytes", "gauge", "The size of all payloads."), 1.0),
    ("groups", ("dq_groups", "gauge", "Groups that have a message which is not dead."), 1.0),
    ("blocked", ("dq_blocked_messages", "gauge", "Messages that are due and wait for their group."), 1.0),
    ("batches", ("dq_batches", "gauge", "Batches that have not ended."), 1.0),
    ("consumers", ("dq_consumers", "gauge", "Consumers that gave a name and hold messages."), 1.0),
    ("oldest-inflight", ("dq_oldest_inflight_seconds", "gauge", "How long the oldest delivery lasts; 0: none."), 1e-3),
];
/// Fields that say since when something fails, if it does.
const FAILING: [(&str, Metric); 2] = [
    ("forward-failing-since", ("dq_forward_failing", "gauge", "Whether messages cannot be forwarded.")),
    ("deadforward-failing-since", ("dq_deadforward_failing", "gauge", "Whether dead messages cannot be forwarded.")),
];
const NEXT_DUE: Metric = ("dq_next_due_timestamp_seconds", "gauge", "When the next delayed message is due.");
const LATENESS: Metric = ("dq_delivery_lateness_seconds", "histogram", "From the due time to the first delivery.");
const RUN: Metric = ("dq_run_seconds", "histogram", "From a delivery to its ack.");

/// The states of `DQ.INFO`. What a server does not have is left out.
const STATES: [&str; 5] = ["delayed", "ready", "inflight", "dead", "done"];
/// The totals are the last fields of `DQ.INFO`, from this one on. So a total of a newer server is an event as well.
const FIRST_TOTAL: &str = "pushed";

/// Fields of `INFO dq` about the timer, and the value of one unit of each.
const TIMER: [(&str, Metric, f64); 6] = [
    ("dq_timer_runs", ("dq_timer_runs_total", "counter", "Runs of the timer."), 1.0),
    ("dq_timer_punctual", ("dq_timer_punctual_total", "counter", "Runs that began at the due time."), 1.0),
    ("dq_timer_moved", ("dq_timer_moved_total", "counter", "Messages that the timer made ready or dead."), 1.0),
    ("dq_timer_over_budget", ("dq_timer_over_budget_total", "counter", "Runs that left work to the next run."), 1.0),
    ("dq_timer_last_us", ("dq_timer_last_seconds", "gauge", "Duration of the last run."), 1e-6),
    ("dq_timer_longest_us", ("dq_timer_longest_seconds", "gauge", "Duration of the longest run."), 1e-6),
];

/// Reads metrics, one reading at a time.
pub struct Exporter {
    pub client: Client,
    pub args: ExportArgs,
    /// The queues that were found last.
    pub found: Mutex<Option<Found>>,
}

/// The queues that were found, whether there are more, and when that was.
pub type Found = (Vec<Vec<u8>>, bool, Instant);

impl Exporter {
    /// The metrics at this instant. If the server cannot be read, only that it is not up.
    pub fn metrics(&self) -> String {
        // Held for the whole reading, so that many readers do not multiply the work of the server.
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let read = self.read(&mut found);
        if let Err(failure) = &read {
            say!("dqctl: {failure}");
            *found = None;
        }
        let is_up = read.is_ok();
        let mut text = read.unwrap_or_default();
        text.add(UP, "", f64::from(u8::from(is_up)));
        text.finish()
    }

    fn read(&self, found: &mut Option<Found>) -> Result<Text, Failure> {
        let mut text = Text::default();
        // Before the numbers: a server without the module answers as one without queues.
        names::check(&self.client)?;
        self.timers(&mut text)?;
        let fresh = found.take().filter(|(.., at)| at.elapsed() < self.args.every);
        let known = fresh.map_or_else(|| self.find(), Ok)?;
        for name in &known.0 {
            match self.queue(name, &mut text) {
                // The key was deleted or replaced since it was found, or the user has no right to it.
                Ok(()) | Err(Error::WrongType(_) | Error::NoPermission(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        text.add(LIMITED, "", f64::from(u8::from(known.1)));
        *found = Some(known);
        Ok(text)
    }

    fn find(&self) -> Result<Found, Failure> {
        let ExportArgs { pattern, queues, max_queues, .. } = &self.args;
        let mut names = Vec::new();
        if queues.is_empty() || pattern.is_some() {
            let (found, missing) = names::find_reachable(&self.client, pattern.as_deref())?;
            names = missing.map_or(Ok(found), Err)?;
        }
        let limited = names.len() > *max_queues;
        names.truncate(*max_queues);
        names.retain(|name| !self.is_named(name));
        names.extend(queues.iter().map(|name| name.as_bytes().to_vec()).collect::<BTreeSet<_>>());
        Ok((names, limited, Instant::now()))
    }

    /// Whether the command line names the queue.
    fn is_named(&self, name: &[u8]) -> bool {
        self.args.queues.iter().any(|named| named.as_bytes() == name)
    }

    fn timers(&self, text: &mut Text) -> Result<(), Failure> {
        for server in self.client.servers()? {
            let info = self.client.call_on(&server, cmd("INFO").arg("dq"))?;
            let info = reply::text(&info).unwrap_or_default();
            let labels = labels(&[("server", &server.to_string())]);
            for (field, metric, unit) in TIMER {
                let value = |line: &str| line.strip_prefix(field)?.strip_prefix(':')?.trim().parse::<f64>().ok();
                info.lines().find_map(value).into_iter().for_each(|value| text.add(metric, &labels, value * unit));
            }
        }
        Ok(())
    }

    fn queue(&self, name: &[u8], text: &mut Text) -> Result<(), Error> {
        let reply = self.client.call(cmd("DQ.INFO").arg(name), Resend::Harmless)?;
        let info = match Fields::read(reply) {
            Ok(Some(info)) => info,
            // What reads the metrics of this queue cannot tell none from an exporter that is down.
            _ if self.is_named(name) => zeros(),
            _ => return Ok(()),
        };
        let queue = shown(name);
        let of_queue = labels(&[("queue", &queue)]);
        for state in STATES {
            if let Some(count) = info.int(state) {
                text.add(MESSAGES, &labels(&[("queue", &queue), ("state", state)]), count as f64);
            }
        }
        for (event, count) in info.0.iter().skip_while(|(name, _)| name != FIRST_TOTAL) {
            if let Some(count) = reply::int(count) {
                text.add(EVENTS, &labels(&[("queue", &queue), ("event", event)]), count as f64);
            }
        }
        for (field, metric, unit) in FIELDS {
            text.add(metric, &of_queue, info.int(field).unwrap_or(0) as f64 * unit);
        }
        for (field, metric) in FAILING {
            text.add(metric, &of_queue, f64::from(u8::from(info.int(field).is_some())));
        }
        if let Some(due) = info.int("next-due") {
            text.add(NEXT_DUE, &of_queue, due as f64 / 1e3);
        }
        if let Some(stats) = self.client.queue::<Raw>(name).stats()? {
            text.histogram(LATENESS, &queue, &stats.lateness, 2);
            text.histogram(RUN, &queue, &stats.runtime, 2);
        }
        Ok(())
    }
}

/// The numbers of a queue that does not exist yet.
fn zeros() -> Fields {
    let totals = Totals::default();
    let names = STATES.into_iter().chain(totals.iter().map(|(name, _)| name));
    Fields(names.map(|name| (name.to_owned(), Value::Int(0))).collect())
}
