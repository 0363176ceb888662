//! The text format of Prometheus.

use crate::text::labels;
use dq_client::Histogram;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The name of a metric, its kind and its help text.
pub type Metric<'n> = (&'n str, &'static str, &'static str);

/// Metrics, gathered queue by queue, and written metric by metric as the format wants it.
#[derive(Default)]
pub struct Text(BTreeMap<(String, &'static str, &'static str), String>);

impl Text {
    /// Adds a value. `labels` is what [`crate::text::labels`] returned.
    pub fn add(&mut self, metric: Metric, labels: &str, value: f64) {
        self.line(metric, metric.0, labels, value);
    }

    /// Adds a line of a metric that has several names: those of a histogram.
    pub fn line(&mut self, (metric, kind, help): Metric, name: &str, labels: &str, value: f64) {
        let lines = self.0.entry((metric.to_owned(), kind, help)).or_default();
        let _ = writeln!(lines, "{name}{labels} {value}");
    }

    /// Adds one of each `step` buckets of a queue. The bounds double, so every second one is a power of four, in ms.
    pub fn histogram(&mut self, metric: Metric, queue: &str, histogram: &Histogram, step: usize) {
        let buckets = histogram.buckets.iter().enumerate();
        for (_, (bound, count)) in buckets.filter(|(place, (bound, _))| place % step == 0 || bound.is_none()) {
            let bound = bound.map_or_else(|| "+Inf".to_owned(), |bound| bound.as_secs_f64().to_string());
            let labels = labels(&[("queue", queue), ("le", &bound)]);
            self.line(metric, &format!("{}_bucket", metric.0), &labels, *count as f64);
        }
        let labels = labels(&[("queue", queue)]);
        self.line(metric, &format!("{}_sum", metric.0), &labels, histogram.sum.as_secs_f64());
        self.line(metric, &format!("{}_count", metric.0), &labels, histogram.count() as f64);
    }

    pub fn finish(self) -> String {
        let mut text = String::new();
        for ((name, kind, help), lines) in self.0 {
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{lines}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::Text;
    use crate::text::labels;

    #[test]
    fn a_metric_is_described_once_and_its_labels_are_escaped() {
        let mut text = Text::default();
        let metric = ("dq_paused", "gauge", "Whether.");
        text.add(metric, &labels(&[("queue", "a\"b\\c\n")]), 1.0);
        text.add(metric, &labels(&[("queue", "d"), ("state", "ready")]), 0.5);
        assert_eq!(
            text.finish(),
            "# HELP dq_paused Whether.\n# TYPE dq_paused gauge\ndq_paused{queue=\"a\\\"b\\\\c\\n\"} 1\n\
             dq_paused{queue=\"d\",state=\"ready\"} 0.5\n"
        );
    }
}
