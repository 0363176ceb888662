//! The page with what `dqctl doctor` finds: a line for each finding, or for all queues of which the same was found, the worst first,
//! and below them the one under the cursor in full.

use super::app::{App, Next};
use super::details::DetailsPage;
use super::listing::{clamped, Listing, ListingPage};
use crate::findings::{self, MOST_NAMED};
use crate::output::text::{cut, grouped, left, named, paragraph, shown, Line, Style};
use crate::output::{cut_in_the_middle, wrapped as by_words};
use crate::time::{millis, span};
use base64::prelude::{Engine, BASE64_STANDARD};
use dq_client::{Client, State};
use serde_json::Value as Json;
use std::collections::{HashMap, HashSet};
use std::time::Instant;
use unicode_width::UnicodeWidthStr;

/// The findings of the last look, which are kept while the page is not shown.
#[derive(Default)]
pub struct FindingsPage {
    pub is_open: bool,
    is_looking: bool,
    /// When the last look ended, and what it found.
    found: Option<(Instant, Result<Vec<Group>, String>)>,
    place: usize,
    top: usize,
}

/// Findings that are one line until it is opened.
pub struct Group {
    /// Nothing if it is one finding, which stands for itself.
    several: Option<Several>,
    findings: Vec<Finding>,
}

/// The line of several findings.
struct Several {
    line: Finding,
    is_open: bool,
}

impl Group {
    /// Those of the same check and severity together, in the place of the first one, if they are about many queues.
    fn all(findings: Vec<Finding>) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        let mut queues: HashMap<(String, String), HashSet<Vec<u8>>> = HashMap::new();
        for finding in &findings {
            queues.entry(finding.key()).or_default().extend(finding.kind.as_ref().and(finding.queue.clone()));
        }
        for finding in findings {
            let number = queues.get(&finding.key()).map_or(0, HashSet::len);
            if number <= MOST_NAMED {
                groups.push(Group { several: None, findings: vec![finding] });
            } else if let Some(group) = groups.iter_mut().find(|group| group.is_of(&finding)) {
                group.findings.push(finding);
            } else {
                let line = finding.of_several(number);
                groups.push(Group { several: Some(Several { line, is_open: false }), findings: vec![finding] });
            }
        }
        groups
    }

    fn is_of(&self, finding: &Finding) -> bool {
        self.several.as_ref().is_some_and(|several| several.line.key() == finding.key())
    }

    fn is_open(&self) -> bool {
        self.several.as_ref().is_none_or(|several| several.is_open)
    }

    /// The lines that are shown.
    fn rows(&self) -> impl Iterator<Item = &Finding> {
        let findings = if self.is_open() { self.findings.as_slice() } else { &[] };
        self.several.iter().map(|several| &several.line).chain(findings)
    }
}

/// What `dqctl doctor` says in one line.
pub struct Finding {
    severity: String,
    /// The name of the check, for what is opened with the queue.
    check: String,
    /// What it has in common with findings of the same check about other queues.
    kind: Option<String>,
    /// Whether it is the line of several.
    is_several: bool,
    /// The queue that it is about, if it is about one.
    queue: Option<Vec<u8>>,
    subject: String,
    /// What is so, why that matters, and what to do.
    parts: Vec<(String, String)>,
}

impl Finding {
    /// From an object of `dqctl doctor --json`.
    fn read(finding: &Json) -> Finding {
        let text = |name: &str| finding.get(name).and_then(Json::as_str).unwrap_or_default().to_owned();
        let bytes = BASE64_STANDARD.decode(text("queue-base64")).unwrap_or_default();
        let queue = if bytes.is_empty() { text("queue").into_bytes() } else { bytes };
        let queue = finding.get("queue").map(|_| queue);
        let subject = match (&queue, text("server")) {
            (Some(queue), _) => format!("queue {}", named(queue)),
            (None, server) if server.is_empty() => "all".to_owned(),
            (None, server) => format!("server {}", shown(&server)),
        };
        let parts = ["what", "why", "do"].map(|name| (name.to_owned(), text(name)));
        let parts = parts.into_iter().filter(|(_, text)| !text.is_empty()).collect();
        let kind = finding.get("kind").and_then(Json::as_str).map(str::to_owned);
        Finding { severity: text("severity"), check: text("check"), kind, is_several: false, queue, subject, parts }
    }

    fn key(&self) -> (String, String) {
        (self.severity.clone(), self.check.clone())
    }

    /// The line of so many queues of which the same was found.
    fn of_several(&self, queues: usize) -> Finding {
        let what = ("what".to_owned(), self.kind.clone().unwrap_or_default());
        Finding {
            severity: self.severity.clone(),
            check: self.check.clone(),
            kind: None,
            is_several: true,
            queue: None,
            subject: format!("{} queues", grouped(queues)),
            parts: vec![what, ("do".to_owned(), "open this line with Enter, which shows each of them".to_owned())],
        }
    }

    fn style(&self) -> Style {
        match self.severity.as_str() {
            "critical" => Style::Bad,
            "warning" => Style::Warning,
            _ => Style::Plain,
        }
    }
}

/// Looks at all servers and queues. This takes seconds.
pub fn look(client: &Client) -> Result<Vec<Group>, String> {
    let found = findings::examine(client).map_err(|failure| failure.to_string())?;
    Ok(Group::all(found.iter().map(|found| Finding::read(&found.json().into())).collect()))
}

impl FindingsPage {
    fn groups(&self) -> &[Group] {
        self.found.as_ref().and_then(|(_, found)| found.as_deref().ok()).unwrap_or_default()
    }

    fn rows(&self) -> Vec<&Finding> {
        self.groups().iter().flat_map(Group::rows).collect()
    }

    /// What was opened stays open.
    pub fn take(&mut self, mut found: Result<Vec<Group>, String>) {
        for several in found.iter_mut().flatten().filter_map(|group| group.several.as_mut()) {
            several.is_open = self.groups().iter().any(|group| group.is_open() && group.is_of(&several.line));
        }
        (self.is_looking, self.found) = (false, Some((Instant::now(), found)));
    }

    /// Opens or closes the line of several findings under the cursor. Returns whether it is one.
    fn turn(&mut self) -> bool {
        let mut place = self.place;
        let Some((_, Ok(groups))) = &mut self.found else { return false };
        for group in groups {
            let rows = group.rows().count();
            if let (0, Some(several)) = (place, &mut group.several) {
                several.is_open = !several.is_open;
                return true;
            }
            let Some(left) = place.checked_sub(rows) else { return false };
            place = left;
        }
        false
    }

    pub fn go_to(&mut self, place: usize) {
        self.place = place.min(self.rows().len().saturating_sub(1));
    }

    pub fn place(&self) -> usize {
        self.place
    }

    pub fn has_queue(&self) -> bool {
        self.rows().get(self.place).is_some_and(|finding| finding.queue.is_some() || finding.is_several)
    }
}

impl App {
    /// Opens the page and looks again, unless a look is under way.
    pub fn examine(&mut self) -> Next {
        (self.found, self.listing) = (None, None);
        let page = &mut self.findings;
        page.is_open = true;
        let is_first = !std::mem::replace(&mut page.is_looking, true);
        if is_first {
            Next::Examine
        } else {
            Next::Stay
        }
    }

    /// Opens the queue of the finding under the cursor, at what it is about, or the line of several.
    pub fn enter_finding(&mut self) {
        if self.findings.turn() {
            return;
        }
        let rows = self.findings.rows();
        let Some(finding) = rows.get(self.findings.place) else {
            // While it looks, the page says so.
            return if self.findings.is_looking { self.said = None } else { self.say("there is nothing here") };
        };
        let Some(queue) = finding.queue.clone() else {
            return self.say("this finding is about no single queue, so none can be opened");
        };
        let check = finding.check.clone();
        self.open(queue);
        let listing = |listing| Some(ListingPage::new(listing));
        match check.as_str() {
            "dead" | "dead-full" | "dying" => self.queue.iter_mut().for_each(|page| page.show(State::Dead, None)),
            "stuck" => self.listing = listing(Listing::Consumers),
            "group-paused" | "group-rate" | "group-limit" => self.listing = listing(Listing::Groups),
            "batch" => self.listing = listing(Listing::Batches),
            "full" | "refused" | "forward" | "deadforward" => self.details = Some(DetailsPage::default()),
            _ => {}
        }
    }
}

/// How many there are of each severity, and when that was found.
fn title(page: &FindingsPage) -> Line {
    let mut line = Line::new(Style::Bold, "doctor");
    for (severity, style) in
        [("critical", Style::Bad), ("warning", Style::Warning), ("note", Style::Plain), ("not checked", Style::Plain)]
    {
        let all = page.groups().iter().flat_map(|group| &group.findings);
        let count = all.filter(|finding| finding.severity == severity).count();
        if count > 0 {
            line.add(style, format!("  {count} {severity}"));
        }
    }
    if let Some((at, _)) = &page.found {
        line.add(Style::Plain, format!("  found {} ago", span(millis(at.elapsed()))));
    }
    if page.is_looking {
        line.add(Style::Warning, "  looking …");
    }
    line
}

/// All parts of a finding, below each other, and before them what it is about if the list has no room for that.
fn in_full(finding: &Finding, width: usize, subject: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    let about = (finding.subject.width() > subject).then_some(("for", finding.subject.as_str()));
    let parts = finding.parts.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    for (name, text) in about.into_iter().chain(parts) {
        let name = left(name, "what  ".len());
        for (number, part) in by_words(&shown(text), width.saturating_sub(name.len())).lines().enumerate() {
            let mut line = Line::new(Style::Bold, left(if number == 0 { &name } else { "" }, name.len()));
            line.add(Style::Plain, part);
            lines.push(line);
        }
    }
    lines
}

pub fn findings_page(app: &mut App, width: usize, height: usize) -> Vec<Line> {
    let page = &mut app.findings;
    let subjects = page.rows().into_iter().map(|finding| finding.subject.width());
    let subject = subjects.max().unwrap_or(0).clamp("ABOUT".len(), (width / 3).max(12));
    // As high as the longest one needs, so that the lines above do not move with the cursor.
    let full = |finding: &Finding| in_full(finding, width, subject);
    let longest = page.rows().iter().map(|finding| full(finding).len()).max().unwrap_or(0).min(height / 2);
    let height = height.saturating_sub(longest + 1);
    app.height = height;
    (page.place, page.top) = clamped(page.place, page.top, page.rows().len(), height);
    let heading = format!("{} {} WHAT", left("SEVERITY", 11), left("ABOUT", subject));
    let mut lines = vec![title(page), Line::new(Style::Bold, heading)];
    for (place, finding) in page.rows().iter().enumerate().skip(page.top).take(height) {
        let mut line = Line::new(finding.style(), left(&finding.severity, 11));
        line.add(Style::Plain, format!(" {} ", left(&cut_in_the_middle(&finding.subject, subject), subject)));
        let what = finding.parts.first().map_or("", |(_, what)| what);
        line.add(Style::Plain, cut(&shown(what), width.saturating_sub(line.width())));
        lines.push(if place == page.place { line.fitted(width).selected() } else { line });
    }
    let (style, remark) = match &page.found {
        None => (Style::Dim, "Looking at all servers and queues. This takes some seconds …"),
        Some((_, Err(why))) => (Style::Bad, why.as_str()),
        Some((_, Ok(found))) if found.is_empty() => (Style::Good, "Nothing was found."),
        Some((_, Ok(_))) => {
            // The two lines above the list, and an empty one below it.
            lines.resize(height + 3, Line::default());
            lines.extend(page.rows().get(page.place).map(|finding| full(finding)).into_iter().flatten().take(longest));
            return lines;
        }
    };
    lines.extend(paragraph(style, remark, width));
    lines
}

#[cfg(test)]
mod tests {
    use crate::top::view::screen;
    use crate::top::view::tests::{app, press, text};
    use crossterm::event::KeyCode;

    #[test]
    fn enter_says_nothing_of_findings_that_are_still_looked_for() {
        let mut app = app(&["mail"]);
        press(&mut app, &[KeyCode::Char('d'), KeyCode::Enter]);
        assert!(!text(&screen(&mut app, 80, 24)).concat().contains("nothing here"));
        app.findings.take(Ok(Vec::new()));
        press(&mut app, &[KeyCode::Enter]);
        assert!(text(&screen(&mut app, 80, 24)).concat().contains("nothing here"));
    }
}
