//! Findings of `dqctl doctor`, typed until they are printed.

use crate::board::Trouble;
use crate::output::{Output, Style};
use crate::server::{Failure, Outcome};
use crate::text::{put, shown};
use serde_json::{json, Map, Value as Json};
use std::cmp::Reverse;

/// How many queues are named in one line; so few have a line each.
pub const MOST_NAMED: usize = 3;

/// How much a finding matters. The most important one comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// Messages are lost, or are not delivered at all.
    Critical,
    /// Messages may be lost or delayed.
    Warning,
    /// Advice. It does not change the exit code.
    Note,
    /// A right is missing, so something was not looked at. It does not change the exit code.
    NotChecked,
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Critical => "critical",
            Severity::Warning => "warning",
            Severity::Note => "note",
            Severity::NotChecked => "not checked",
        }
    }

    /// How the word looks on a terminal.
    pub fn style(self) -> Style {
        match self {
            Severity::Critical => Style::Bad,
            Severity::Warning => Style::Warning,
            Severity::Note | Severity::NotChecked => Style::Plain,
        }
    }
}

/// The subject of a finding.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Subject {
    /// The address of a server.
    Server(String),
    Queue(Vec<u8>),
    /// Several servers or queues.
    All,
}

/// A problem that a check found, why it matters, and what to do about it.
#[derive(Clone, Debug)]
pub struct Diagnosis {
    pub severity: Severity,
    pub what: String,
    pub why: String,
    pub advice: String,
}

impl Diagnosis {
    pub fn new(severity: Severity, what: impl Into<String>, why: &str, advice: impl Into<String>) -> Diagnosis {
        Diagnosis { severity, what: what.into(), why: why.to_owned(), advice: advice.into() }
    }
}

/// What a check has found.
pub fn some(severity: Severity, what: impl Into<String>, why: &str, advice: impl Into<String>) -> Option<Diagnosis> {
    Some(Diagnosis::new(severity, what, why, advice))
}

#[derive(Clone, Debug)]
pub struct Finding {
    pub subject: Subject,
    /// Identifies the check for programs. It does not change with the text.
    pub check: &'static str,
    pub found: Diagnosis,
    /// That of the queue.
    trouble: Trouble,
}

impl Finding {
    pub fn json(&self) -> Map<String, Json> {
        let Diagnosis { severity, what, why, advice } = &self.found;
        let texts =
            [("severity", severity.as_str()), ("check", self.check), ("what", what), ("why", why), ("do", advice)];
        let mut object: Map<_, _> = texts.into_iter().map(|(name, text)| (name.to_owned(), json!(text))).collect();
        match &self.subject {
            Subject::Server(server) => drop(object.insert("server".to_owned(), json!(server))),
            Subject::Queue(queue) => put(&mut object, "queue", queue),
            Subject::All => {}
        }
        object
    }

    /// The subject in words.
    pub fn about(&self) -> String {
        match &self.subject {
            Subject::Server(server) => server.clone(),
            Subject::Queue(queue) => shown(queue),
            Subject::All => "all".to_owned(),
        }
    }

    /// The same with the word for it.
    pub fn place(&self) -> String {
        match &self.subject {
            Subject::Server(_) => format!("server {}", self.about()),
            Subject::Queue(_) => format!("queue {}", self.about()),
            Subject::All => self.about(),
        }
    }

    fn cells(&self) -> [String; 5] {
        let Diagnosis { severity, what, why, advice } = &self.found;
        [severity.as_str().to_owned(), self.place(), what.clone(), why.clone(), advice.clone()]
    }

    fn is_like(&self, other: &Finding) -> bool {
        let are_queues = [self, other].iter().all(|one| matches!(one.subject, Subject::Queue(_)));
        are_queues && self.check == other.check && self.found.severity == other.found.severity
    }
}

/// One line for queues with the same finding, with the details of the first.
fn together(first: &Finding, many: &[&Finding]) -> [String; 5] {
    let named: Vec<String> = many.iter().take(MOST_NAMED).map(|finding| finding.about()).collect();
    let (named, more) = (named.join(", "), many.len().saturating_sub(MOST_NAMED));
    let [severity, _, what, why, advice] = first.cells();
    [severity, format!("{} queues", many.len()), format!("{named} and {more} more; the first: {what}"), why, advice]
}

/// The findings so far.
#[derive(Default)]
pub struct Findings(Vec<Finding>);

impl Findings {
    pub fn add(&mut self, subject: &Subject, check: &'static str, found: Diagnosis, trouble: Trouble) {
        self.0.push(Finding { subject: subject.clone(), check, found, trouble });
    }

    /// Something was not looked at, because the user lacks a right. It is reported once.
    pub fn not_checked(&mut self, subject: &Subject, check: &'static str, right: &str) {
        let what = format!("what needs the right {right}");
        let is_known = |known: &&mut Finding| known.found.severity == Severity::NotChecked && known.found.what == what;
        if let Some(known) = self.0.iter_mut().find(is_known) {
            if known.subject != *subject {
                known.subject = Subject::All;
            }
            return;
        }
        let found =
            Diagnosis::new(Severity::NotChecked, what, "the user does not have it", "grant it with ACL SETUSER");
        self.add(subject, check, found, Trouble::default());
    }

    /// Whether a check found something critical.
    pub fn is_critical(&self, check: &str) -> bool {
        self.0.iter().any(|finding| finding.check == check && finding.found.severity == Severity::Critical)
    }

    /// The most important one first; of queues, the one that loses messages, and the one where most wait.
    pub fn sorted(mut self) -> Vec<Finding> {
        fn key(one: &Finding) -> (Severity, bool, Reverse<Trouble>, &Subject) {
            (one.found.severity, !matches!(one.subject, Subject::Server(_)), Reverse(one.trouble), &one.subject)
        }
        self.0.sort_by(|a, b| key(a).cmp(&key(b)));
        self.0
    }
}

/// Prints findings, or that there is `nothing`. The outcome says whether something is to be done.
pub fn print(findings: Vec<Finding>, output: &Output, nothing: &str) -> Result<Outcome, Failure> {
    for finding in &findings {
        if output.json {
            output.object(&finding.json())?;
        } else if !output.is_for_people {
            output.sentence(Style::Plain, &finding.cells())?;
        } else {
            let mut like: Vec<&Finding> = findings.iter().filter(|other| other.is_like(finding)).collect();
            like.dedup_by(|a, b| a.subject == b.subject);
            let cells = match like.first() {
                Some(first) if like.len() > MOST_NAMED && !std::ptr::eq(*first, finding) => continue,
                Some(first) if like.len() > MOST_NAMED => together(first, &like),
                _ => finding.cells(),
            };
            output.sentence(finding.found.severity.style(), &cells)?;
        }
    }
    if findings.is_empty() && !output.json {
        output.remark(nothing)?;
    }
    let is_sound = findings.iter().all(|finding| finding.found.severity >= Severity::Note);
    Ok(Outcome::done_if(is_sound))
}

#[cfg(test)]
impl Findings {
    /// The checks that found something, with their severity.
    pub fn names(&self) -> Vec<(Severity, &'static str)> {
        self.0.iter().map(|finding| (finding.found.severity, finding.check)).collect()
    }
}
