//! The text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;

/// The name of a metric, its kind, and what it says.
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
