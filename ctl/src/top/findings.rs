//! What `dqctl doctor` finds: a line for each finding, and below them the one under the cursor in full.

use super::cursor::Cursor;
use crate::findings::{Finding, Severity, Subject};
use crate::output::Column::{Name, Text, Word};
use crate::output::{paragraph, Column, Line, Style, Table};
use crate::text::{millis, span, visible};
use std::time::Instant;

const COLUMNS: &[Column] = &[Word("severity"), Name("about"), Text("what")];

/// The whole finding: the problem, why it matters, and the advice.
fn in_full(finding: &Finding, width: usize) -> Vec<Line> {
    let parts = [("what", &finding.found.what), ("why", &finding.found.why), ("do", &finding.found.advice)];
    let parts = parts.into_iter().filter(|(_, text)| !text.is_empty());
    parts.flat_map(|(name, text)| paragraph(Style::Plain, &format!("{name}: {text}"), width)).collect()
}

#[derive(Default)]
pub struct Findings {
    /// Whether no look is under way.
    pub is_idle: bool,
    /// When the last look ended, and what it found.
    found: Option<(Instant, Result<Vec<Finding>, String>)>,
    cursor: Cursor,
}

impl Findings {
    pub fn take(&mut self, found: Result<Vec<Finding>, String>) {
        (self.is_idle, self.found) = (true, Some((Instant::now(), found)));
    }

    fn rows(&self) -> &[Finding] {
        self.found.as_ref().and_then(|(_, found)| found.as_deref().ok()).unwrap_or_default()
    }

    pub fn go(&mut self, by: isize) {
        let count = self.rows().len();
        self.cursor.go(by, count);
    }

    pub fn selected_queue(&self) -> Option<Vec<u8>> {
        match &self.rows().get(self.cursor.place)?.subject {
            Subject::Queue(queue) => Some(queue.clone()),
            Subject::Server(_) | Subject::All => None,
        }
    }

    pub fn lines(&mut self, width: usize, height: usize) -> Vec<Line> {
        let mut lines = vec![self.title()];
        lines.extend(self.below_title(width, height.saturating_sub(1)));
        lines
    }

    fn below_title(&mut self, width: usize, height: usize) -> Vec<Line> {
        let remark = match &self.found {
            None => Some((Style::Dim, "Looking at all servers and queues. This takes some seconds …".to_owned())),
            Some((_, Err(why))) => Some((Style::Bad, visible(why))),
            Some((_, Ok(found))) if found.is_empty() => Some((Style::Plain, "Nothing was found.".to_owned())),
            Some((_, Ok(_))) => None,
        };
        if let Some((style, remark)) = remark {
            return paragraph(style, &remark, width);
        }
        // As high as the longest one needs, so that the list does not move with the cursor.
        let longest =
            self.rows().iter().map(|finding| in_full(finding, width).len()).max().unwrap_or(0).min(height / 2);
        let list = height.saturating_sub(longest + 2);
        let window = self.cursor.window(self.rows().len(), list);
        let row = |finding: &Finding| {
            let (severity, place) = (finding.found.severity, visible(&finding.place()));
            let severity = (severity.style(), severity.as_str().to_owned());
            vec![severity, (Style::Plain, place), (Style::Plain, finding.found.what.clone())]
        };
        let rows = self.rows().get(window).unwrap_or_default().iter().map(row).collect();
        let table = Table { columns: COLUMNS, rows };
        let mut lines = self.cursor.marked(&table, width);
        lines.resize(list + 2, Line::default());
        let selected = self.rows().get(self.cursor.place).map(|finding| in_full(finding, width));
        lines.extend(selected.into_iter().flatten().take(longest));
        lines
    }

    /// How many there are of each severity, and when that was found.
    fn title(&self) -> Line {
        let mut line = Line::new(Style::Bold, "doctor");
        for severity in [Severity::Critical, Severity::Warning, Severity::Note, Severity::NotChecked] {
            let count = self.rows().iter().filter(|finding| finding.found.severity == severity).count();
            if count > 0 {
                line.add(severity.style(), format!("  {count} {}", severity.as_str()));
            }
        }
        if let Some((at, _)) = &self.found {
            line.add(Style::Plain, format!("  found {} ago", span(millis(at.elapsed()))));
        }
        if !self.is_idle {
            line.add(Style::Warning, "  looking …");
        }
        line
    }
}
