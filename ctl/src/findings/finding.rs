//! What `dqctl doctor` found: one line each.

use crate::advice;
use crate::failure::{Failure, Outcome};
use crate::name::{put, shown};
use crate::output::text::Style;
use crate::output::Output;
use crate::trouble::Trouble;
use serde_json::{json, Map, Value as Json};

/// The checks for queues that nobody consumes, and for those whose messages die.
pub const NO_CONSUMER: &str = "no-consumer";
pub const DYING: &str = "dying";
/// Checks of queues: what the queues of one line have in common, and what to do about many of them.
const TOGETHER: [(&str, &str, &str); 19] = [
    (
        NO_CONSUMER,
        "messages are ready and nobody takes them",
        "start their consumers; dqctl ls --trouble lists the queues",
    ),
    (
        DYING,
        "messages have died in the last 10 minutes",
        "dqctl dead '*' --by-error adds up what they died of; dqctl ls --trouble lists the queues",
    ),
    ("full", "they are full, or nearly", "add consumers, or raise each limit with dqctl alter QUEUE --maxlen N"),
    ("refused", "pushes were refused since they were created, because they were full", "let producers try again"),
    ("closed", "they are closed", "when they have been drained, open each with dqctl resume QUEUE in"),
    (
        "paused",
        "they are paused",
        "resume each with dqctl resume QUEUE, or several with a pattern; dqctl ls --trouble lists the queues",
    ),
    ("stuck", "they are late, and consumers hold messages for long", "who holds them, list with dqctl consumers"),
    (
        "behind",
        "messages wait for long, although there are consumers",
        "add consumers, or raise a limit that they are at; dqctl ls --trouble lists the queues",
    ),
    ("dead", "they have dead messages", "redrive or cancel them; dqctl dead '*' --by-error adds up what they died of"),
    (
        "dead-full",
        "they have as many dead messages as they keep",
        "redrive or cancel some; dqctl dead '*' --by-error adds up what they died of",
    ),
    ("moved", "dead messages are moved to other queues", "dqctl ls --watch and top show whether messages die"),
    (
        "letters",
        "nobody takes the dead messages that are moved to them",
        "look with dqctl dead QUEUE --letters --by-error",
    ),
    ("forward", "forwarding fails", "repair the targets, or forward no more with dqctl alter QUEUE --forward NONE"),
    (
        "deadforward",
        "forwarding of dead messages fails",
        "repair the targets, or forward no more with dqctl alter QUEUE --deadforward NONE",
    ),
    ("group-paused", "groups are paused", "dqctl groups QUEUE lists those of a queue"),
    ("group-rate", "groups are at their rate", "dqctl groups QUEUE lists those of a queue"),
    ("group-limit", "groups are at their limit", "dqctl groups QUEUE lists those of a queue"),
    ("expires", "their keys expire", "keep each with redis-cli PERSIST QUEUE"),
    ("leases", "many leases have expired since they were created", "compare dqctl stats QUEUE with the lease of each"),
];
/// How many of them are named in one line; so few have a line each.
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

    /// How the word looks on a terminal, in the colours of `dqctl top`.
    fn style(self) -> Style {
        match self {
            Severity::Critical => Style::Bad,
            Severity::Warning => Style::Warning,
            Severity::Note | Severity::NotChecked => Style::Plain,
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
    /// That of the queue it is about.
    trouble: Trouble,
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
        if let Some((_, kind, _)) = self.together() {
            object.insert("kind".to_owned(), json!(kind));
        }
        object
    }

    /// What it has in common with findings of the same check about other queues, and what to do about many of them.
    fn together(&self) -> Option<&'static (&'static str, &'static str, &'static str)> {
        TOGETHER.iter().find(|(check, ..)| *check == self.check)
    }

    /// What it is about.
    fn name(&self) -> String {
        match &self.subject {
            Subject::Server(server) => server.clone(),
            Subject::Queue(queue) => shown(queue),
            Subject::All => "all".to_owned(),
        }
    }

    fn cells(&self) -> [String; 5] {
        let subject = match &self.subject {
            Subject::Server(_) => format!("server {}", self.name()),
            Subject::Queue(_) => format!("queue {}", self.name()),
            Subject::All => self.name(),
        };
        [self.severity.as_str().to_owned(), subject, self.what.clone(), self.why.clone(), self.advice.clone()]
    }
}

/// One line for queues of which the same was found.
fn together(many: &[&Finding], what: &str, advice: &str) -> [String; 5] {
    let named: Vec<String> = many.iter().take(MOST_NAMED).map(|finding| finding.name()).collect();
    let severity = many.first().map(|first| first.severity.as_str()).unwrap_or_default();
    // The reasons may differ.
    let same = many.first().filter(|first| many.iter().all(|finding| finding.why == first.why));
    let why = same.map(|first| first.why.clone()).unwrap_or_default();
    [
        severity.to_owned(),
        format!("{} queues", many.len()),
        format!("{what}: {} and {} more", named.join(", "), many.len().saturating_sub(MOST_NAMED)),
        why,
        advice::reaching(advice),
    ]
}

/// The findings so far.
#[derive(Default)]
pub struct Findings(Vec<Finding>);

impl Findings {
    /// The findings about one subject.
    pub fn about(&mut self, subject: Subject) -> About<'_> {
        About { findings: self, subject, trouble: Trouble::default() }
    }

    /// Whether a check found something critical.
    pub fn is_critical(&self, check: &str) -> bool {
        self.0.iter().any(|finding| finding.check == check && finding.severity == Severity::Critical)
    }

    /// The most important one first; of queues, the one that loses messages, and the one where most wait.
    fn sort(&mut self) {
        let is_of_server = |finding: &Finding| matches!(finding.subject, Subject::Server(_));
        self.0.sort_by(|a, b| {
            (a.severity, !is_of_server(a), b.trouble, &a.subject).cmp(&(
                b.severity,
                !is_of_server(b),
                a.trouble,
                &b.subject,
            ))
        });
    }

    /// Forgets all that is not critical.
    pub fn keep_critical(&mut self) {
        self.0.retain(|finding| finding.severity == Severity::Critical);
    }

    /// One line for each finding, and one for all queues of the same check and severity, if these are many.
    fn for_people(&self) -> Vec<(Severity, [String; 5])> {
        let cells = |finding: &Finding| {
            let Some((_, what, advice)) = finding.together() else {
                return Some(finding.cells());
            };
            match self.like(finding).as_slice() {
                many @ [first, ..] if many.len() > MOST_NAMED => {
                    std::ptr::eq(*first, finding).then(|| together(many, what, advice))
                }
                _ => Some(finding.cells()),
            }
        };
        self.0.iter().filter_map(|finding| Some((finding.severity, cells(finding)?))).collect()
    }

    /// The findings of the same check and severity, one for each queue.
    fn like(&self, one: &Finding) -> Vec<&Finding> {
        let is_like = |other: &&Finding| other.check == one.check && other.severity == one.severity;
        let mut like: Vec<&Finding> = self.0.iter().filter(is_like).collect();
        like.dedup_by(|a, b| a.subject == b.subject);
        like
    }

    /// The findings as objects, the most important ones first.
    pub fn json(mut self) -> Vec<Json> {
        self.sort();
        self.0.iter().map(|finding| Json::Object(finding.json())).collect()
    }

    /// Prints the findings, the most important ones first, or for people that there is `nothing`. The outcome says whether something is to be done.
    pub fn print(mut self, output: &Output, nothing: &str) -> Result<Outcome, Failure> {
        self.sort();
        self.0.iter_mut().for_each(|finding| finding.advice = advice::reaching(&finding.advice));
        if output.json {
            self.0.iter().try_for_each(|finding| output.object(&finding.json()))?;
        } else if output.is_for_people() {
            self.for_people().iter().try_for_each(|(severity, cells)| output.sentence(severity.style(), cells))?;
        } else {
            self.0.iter().try_for_each(|finding| output.sentence(Style::Plain, &finding.cells()))?;
        }
        if self.0.is_empty() && !output.json {
            output.remark(nothing)?;
        }
        let is_sound = self.0.iter().all(|finding| finding.severity >= Severity::Note);
        Ok(Outcome::found(is_sound))
    }
}

/// Collects findings about one subject.
pub struct About<'a> {
    findings: &'a mut Findings,
    subject: Subject,
    pub trouble: Trouble,
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
            Subject::Server(server) => advice::for_server(advice, server),
            Subject::All => advice.to_owned(),
        };
        let why = why.to_owned();
        let trouble = self.trouble;
        self.findings.0.push(Finding { severity, subject, check, what, why, advice, trouble });
    }
}

#[cfg(test)]
impl Findings {
    /// The checks that found something, with their severity.
    pub fn names(&self) -> Vec<(Severity, &'static str)> {
        self.0.iter().map(|finding| (finding.severity, finding.check)).collect()
    }
}
