//! The metrics of one queue, from its `DQ.INFO` and its `DQ.STATS`. One number for each queue: a label for each group
//! or consumer could be millions.

use super::counters::Counters;
use crate::http::prometheus::{Metric, Text};
use crate::server::{reply, Fields};
use crate::text::{labels, shown};
use dq_client::{Histogram, Totals, Value};
use std::time::Duration;

const MESSAGES: Metric = ("dq_messages", "gauge", "Messages by state.");
const EVENTS: Metric = ("dq_events_total", "counter", "What has happened since this exporter first read the queue.");
/// Fields of `DQ.INFO`, and the value of one unit of each. What is null counts as zero.
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
/// Fields that are left out while they are null.
const SOMETIMES: [(&str, Metric); 2] = [
    ("next-due", ("dq_next_due_timestamp_seconds", "gauge", "When the next delayed message is due.")),
    ("last-death", ("dq_last_death_seconds", "gauge", "How long ago a message died last, in this run of the server.")),
];
/// Fields with the instant since which something fails; null if nothing does.
const FAILING: [(&str, Metric); 2] = [
    ("forward-failing-since", ("dq_forward_failing", "gauge", "Whether messages cannot be forwarded.")),
    ("deadforward-failing-since", ("dq_deadforward_failing", "gauge", "Whether dead messages cannot be forwarded.")),
];
/// The histograms of `DQ.STATS`, and their sums.
const HISTOGRAMS: [(&str, &str, Metric); 2] = [
    (
        "lateness",
        "lateness-sum-ms",
        ("dq_delivery_lateness_seconds", "histogram", "From the due time to the first delivery."),
    ),
    ("runtime", "runtime-sum-ms", ("dq_run_seconds", "histogram", "From a delivery to its ack.")),
];

/// The states of `DQ.INFO`. What a server does not have is left out.
const STATES: [&str; 5] = ["delayed", "ready", "inflight", "dead", "done"];
/// The totals are the last fields of `DQ.INFO`, from this one on. So a total of a newer server is an event as well.
const FIRST_TOTAL: &str = "pushed";

/// Adds the metrics from `DQ.INFO`.
pub fn add_info(text: &mut Text, counters: &mut Counters, name: &[u8], info: &Fields) {
    let queue = shown(name);
    let queue_labels = labels(&[("queue", &queue)]);
    for state in STATES {
        if let Some(count) = info.int(state) {
            text.add(MESSAGES, &labels(&[("queue", &queue), ("state", state)]), count as f64);
        }
    }
    for (event, total) in info.0.iter().skip_while(|(field, _)| field != FIRST_TOTAL) {
        if let Some(total) = reply::int(total) {
            let counted = counters.count(name, event, total);
            text.add(EVENTS, &labels(&[("queue", &queue), ("event", event)]), counted as f64);
        }
    }
    for (field, metric, unit) in FIELDS {
        text.add(metric, &queue_labels, info.int(field).unwrap_or(0) as f64 * unit);
    }
    for (field, metric) in SOMETIMES {
        if let Some(ms) = info.int(field) {
            text.add(metric, &queue_labels, ms as f64 / 1e3);
        }
    }
    for (field, metric) in FAILING {
        text.add(metric, &queue_labels, f64::from(u8::from(info.int(field).is_some())));
    }
}

/// Adds the metrics from `DQ.STATS`.
pub fn add_stats(text: &mut Text, name: &[u8], stats: &Fields) {
    for (field, sum, metric) in HISTOGRAMS {
        text.histogram(metric, &shown(name), &histogram(stats, field, sum), 2);
    }
}

/// Reads pairs of an upper bound in ms, which is null for infinity, and a count.
fn histogram(stats: &Fields, field: &str, sum: &str) -> Histogram {
    let mut histogram = Histogram::default();
    let pairs = stats.get(field).cloned().and_then(|pairs| reply::list(pairs).ok()).unwrap_or_default();
    for pair in pairs {
        let mut pair = reply::list(pair).unwrap_or_default().into_iter();
        let (Some(bound), Some(count)) = (pair.next(), pair.next()) else { continue };
        let natural = |value: &Value| reply::int(value).and_then(|number| u64::try_from(number).ok());
        let count = natural(&count).unwrap_or(0);
        histogram.buckets.push((natural(&bound).map(Duration::from_millis), count));
    }
    histogram.sum = Duration::from_millis(stats.number(sum));
    histogram
}

/// The numbers of a queue that does not exist yet.
pub fn zeros() -> Fields {
    let totals = Totals::default();
    let names = STATES.into_iter().chain(totals.iter().map(|(name, _)| name));
    Fields(names.map(|name| (name.to_owned(), Value::Int(0))).collect())
}
