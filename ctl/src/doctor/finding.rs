//! What `dqctl doctor` found: one line each.

use crate::advice;
use crate::failure::{Failure, Outcome};
use crate::name::{put, shown};
use crate::output::Output;
use serde_json::{json, Map, Value as Json};

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
}

/// What a finding is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Subject {
    /// The address of a server.
    Server(String),
    Queue(Vec<u8>),
    /// Several servers or queues.
    All,
}

/// One finding: what is so, why that matters, and what to do about it.
#[derive(Clone, Debug)]
pub struct Finding {
    pub severity: Severity,
    pub subject: Subject,
    /// A name for programs, which does not change with the text.
    pub check: &'static str,
    pub what: String,
    pub why: String,
    pub advice: String,
}

impl Finding {
    fn json(&self) -> Map<String, Json> {
        let mut object = Map::new();
        object.insert("severity".to_owned(), json!(self.severity.as_str()));
        object.insert("check".to_owned(), json!(self.check));
        match &self.subject {
            Subject::Server(server) => drop(object.insert("server".to_owned(), json!(server))),
            Subject::Queue(queue) => put(&mut object, "queue", queue),
            Subject::All => {}
        }
        object.insert("what".to_owned(), json!(self.what));
        object.insert("why".to_owned(), json!(self.why));
        object.insert("do".to_owned(), json!(self.advice));
        object
    }

    fn cells(&self) -> [String; 5] {
        let subject = match &self.subject {
            Subject::Server(server) => format!("server {server}"),
            Subject::Queue(queue) => format!("queue {}", shown(queue)),
            Subject::All => "all".to_owned(),
        };
        [self.severity.as_str().to_owned(), subject, self.what.clone(), self.why.clone(), self.advice.clone()]
    }
}

/// The findings so far.
#[derive(Default)]
pub struct Findings(Vec<Finding>);

impl Findings {
    /// The findings about one subject.
    pub fn about(&mut self, subject: Subject) -> About<'_> {
        About { findings: self, subject }
    }

    /// Whether a check found something critical.
    pub fn is_critical(&self, check: &str) -> bool {
        self.0.iter().any(|finding| finding.check == check && finding.severity == Severity::Critical)
    }

    fn sort(&mut self) {
        self.0.sort_by(|a, b| (a.severity, &a.subject).cmp(&(b.severity, &b.subject)));
    }

    /// The findings as objects, the most important ones first.
    pub fn json(mut self) -> Vec<Json> {
        self.sort();
        self.0.iter().map(|finding| Json::Object(finding.json())).collect()
    }

    /// Prints the findings, the most important ones first. The outcome says whether something is to be done.
    pub fn print(mut self, output: &Output, looked_at: &str) -> Result<Outcome, Failure> {
        self.sort();
        for finding in &self.0 {
            if output.json {
                output.object(&finding.json())?;
            } else {
                output.sentence(&finding.cells())?;
            }
        }
        if self.0.is_empty() && !output.json {
            output.remark(&format!("nothing found: {looked_at}"))?;
        }
        let is_sound = self.0.iter().all(|finding| finding.severity >= Severity::Note);
        Ok(Outcome::found(is_sound))
    }
}

/// Collects findings about one subject.
pub struct About<'a> {
    findings: &'a mut Findings,
    subject: Subject,
}

impl About<'_> {
    pub fn critical(&mut self, check: &'static str, what: impl Into<String>, why: &str, advice: &str) {
        self.add(Severity::Critical, check, what, why, advice);
    }

    pub fn warning(&mut self, check: &'static str, what: impl Into<String>, why: &str, advice: &str) {
        self.add(Severity::Warning, check, what, why, advice);
    }

    pub fn note(&mut self, check: &'static str, what: impl Into<String>, why: &str, advice: &str) {
        self.add(Severity::Note, check, what, why, advice);
    }

    /// Something could not be checked because of a missing `right`. Reported once for each `what`.
    pub fn not_checked(&mut self, check: &'static str, what: &str, right: &str) {
        let is_known = |known: &Finding| known.severity == Severity::NotChecked && known.what == what;
        if let Some(known) = self.findings.0.iter_mut().find(|known| is_known(known)) {
            if known.subject != self.subject {
                known.subject = Subject::All;
            }
            return;
        }
        let why = "the user or the network does not allow it";
        let advice = if right.is_empty() { String::new() } else { format!("grant the user {right} with ACL SETUSER") };
        self.add(Severity::NotChecked, check, what, why, &advice);
    }

    pub fn add(&mut self, severity: Severity, check: &'static str, what: impl Into<String>, why: &str, advice: &str) {
        let (subject, what) = (self.subject.clone(), what.into());
        let advice = match &subject {
            Subject::Queue(queue) => advice::for_queue(advice, &shown(queue)),
            Subject::Server(_) | Subject::All => advice.to_owned(),
        };
        let why = why.to_owned();
        self.findings.0.push(Finding { severity, subject, check, what, why, advice });
    }
}

#[cfg(test)]
impl Findings {
    /// The checks that found something, with their severity.
    pub fn names(&self) -> Vec<(Severity, &'static str)> {
        self.0.iter().map(|finding| (finding.severity, finding.check)).collect()
    }
}
