//! All queues: what is wrong, how they develop, and a page of the list.

use super::app::Examined;
use super::button::{button, Act, Opt};
use super::html::{address, advice, conditions, contains, element, queue_link, time};
use super::{chart, App, Params, View};
use crate::board::{frequent_cause, names, About, Condition, Level, Row, Sort, Status};
use crate::findings::{Diagnosis, Finding, Subject};
use crate::server::Failure;
use crate::text::{counted, separated, span};
use clap::ValueEnum;
use dq_client::Error;
use maud::{html, Markup};

/// Queues on a page, and the last known ones that are shown if no server answers.
const PAGE: usize = 50;
/// Findings that are shown until somebody opens the others.
const FEW: usize = 3;

/// The columns of the list: by what each is sorted, and its heading. Those of numbers come after the first two.
const COLUMNS: [(Sort, &str); 9] = [
    (Sort::Queue, "Queue"),
    (Sort::State, "State"),
    (Sort::Ready, "Ready"),
    (Sort::Delayed, "Delayed"),
    (Sort::Inflight, "In flight"),
    (Sort::Dead, "Dead"),
    (Sort::In, "In /s"),
    (Sort::Out, "Out /s"),
    (Sort::Oldest, "Oldest"),
];
const WORDS: usize = 2;

pub fn overview(app: &App, params: &Params) -> Result<View, Failure> {
    let (samples, about) = (app.samples(None), app.board.about());
    // The second attempt opens another connection, if the first one was closed by the server meanwhile.
    let lost = match names::check_any(&app.client).or_else(|_| names::check_any(&app.client)) {
        Err(failure) if about.read.is_none() => return Err(failure),
        checked => checked.err(),
    };
    let about = if lost.is_some() { about } else { app.board.wait()? };
    let body = html! {
        div.head {
            h1 { "Queues" }
            @if app.allow_writes {
                (button("Push", Act::Push, &[], &[Opt::Queue, Opt::Payload, Opt::In, Opt::Id].map(Opt::empty)))
                (several(params))
            }
        }
        @if let Some(lost) = &lost { p.alarm { (lost) ". What is shown was read " (time(about.read)) "." } }
        (findings(app))
        div.charts id="charts" { (chart::depths(&samples)) (chart::flows(&samples)) }
        (list(app, params, &about, lost.is_some())?)
    };
    Ok(View { title: "dq".to_owned(), body })
}

/// Acts on all queues that match a pattern.
fn several(params: &Params) -> Markup {
    let pattern = format!("*{}*", params.text("contains")).replace("**", "*");
    let acts = [
        (Act::Pause, "Pause"),
        (Act::Resume, "Resume"),
        (Act::Redrive, "Redrive all dead"),
        (Act::Promote, "Run all delayed now"),
    ];
    html! {
        details.menu {
            summary { "Several queues…" }
            @for (act, words) in acts { (button(words, act, &[], &[Opt::Queue.is(&*pattern)])) }
        }
    }
}

/// What the doctor finds, a line each: the most important ones, and the others folded.
fn findings(app: &App) -> Markup {
    app.examined(|examined| match examined {
        None => html! { section.findings id="found" { p.dim { "The doctor is looking…" } } },
        Some(Examined { findings: Err(failure), .. }) => {
            html! { section.findings id="found" { p.dim { "The doctor could not look: " (failure) } } }
        }
        Some(Examined { findings: Ok(found), looked, .. }) => listed(found, *looked),
    })
}

fn listed(findings: &[Finding], looked: i64) -> Markup {
    let (few, others) = findings.split_at(FEW.min(findings.len()));
    html! {
        section.findings id="found" aria-label="Findings" {
            @for one in few { (finding(one)) }
            @if !others.is_empty() {
                details id="findings" { summary { (others.len()) " more" } @for one in others { (finding(one)) } }
            }
            @if findings.is_empty() { p.dim { "The doctor found nothing." } }
            p.dim { "Looked " (time(Some(looked))) }
        }
    }
}

fn finding(one: &Finding) -> Markup {
    let Diagnosis { severity, what, why, advice: what_to_do } = &one.found;
    html! {
        @let id = element(one.check, &[one.about().as_bytes()]);
        details class={ "finding " (severity.as_str().replace(' ', "-")) } id=(id) {
            summary {
                b { (severity.as_str()) } " "
                @match &one.subject {
                    Subject::Queue(queue) => (queue_link(queue)),
                    Subject::Server(_) | Subject::All => (one.about()),
                }
                ": " (what)
            }
            p { (why) ". " (advice(what_to_do)) }
        }
    }
}

fn list(app: &App, params: &Params, known: &About, is_lost: bool) -> Result<Markup, Failure> {
    let (part, state) = (params.bytes("contains").unwrap_or_default(), params.text("state"));
    let order = Sort::from_str(&params.text("sort"), true).unwrap_or_default();
    if !known.is_known {
        return Ok(html! { p { "Looking for queues…" } });
    }
    let (names, is_empty) = app.board.rows(|rows| {
        let is_in = |row: &Row| state.is_empty() || row.conditions.iter().any(|(one, _)| one.as_str() == state);
        let mut named: Vec<(&[u8], &Row)> = rows.iter().map(|(name, row)| (name.as_slice(), row)).collect();
        named.retain(|(name, row)| contains(name, part) && is_in(row));
        named.sort_by(|a, b| order.compare(*a, *b).then(a.0.cmp(b.0)));
        (named.into_iter().map(|(name, _)| name.to_vec()).collect::<Vec<_>>(), rows.is_empty())
    });
    let offset = params.text("offset").parse().unwrap_or(0_usize).min(names.len().saturating_sub(1)) / PAGE * PAGE;
    let shown_names = names.iter().skip(offset).take(PAGE);
    let conditions = Condition::ALL.map(Condition::as_str);
    let states = [("", "any")].into_iter().chain(conditions.map(|name| (name, name))).collect();
    let orders: Vec<String> = Sort::value_variants().iter().map(|sort| sort.name()).collect();
    let turn = |to: usize| address("", &params.with(&[("offset", to.to_string().as_bytes())]));
    Ok(html! {
        form.filters id="filters" data-view="" {
            label { "Filter" input type="search" name="contains" value=(params.text("contains")) placeholder="Name"; }
            label { "State" (select("state", &state, states)) }
            label { "Order" (select("sort", &order.name(), orders.iter().map(|one| (&**one, &**one)).collect())) }
            p.dim role="status" {
                (counted(names.len() as u64, "queue", "queues"))
                @if !known.is_read { ", sorting…" }
            }
        }
        @for failed in known.missing.iter().chain(&known.unlisted).chain(&known.denied) { p.alarm { (failed) } }
        @if is_empty {
            div.empty {
                h2 { "There is no queue yet" }
                p { "The first push creates one:" }
                pre { "dqctl push mail '{\"to\":\"ann\"}' --in 15m" }
            }
        } @else {
            table.queues id="rows" {
                thead { tr {
                    @for (place, (sort, heading)) in COLUMNS.iter().enumerate() {
                        @let href = address("", &params.with(&[("sort", sort.name().as_bytes())]));
                        th class=[(place >= WORDS).then_some("num")] scope="col" { a href=(href) { (heading) } }
                    }
                    th.depth scope="col" { "Last hour" }
                } }
                tbody { @for name in shown_names { (row(app, name, is_lost)?) } }
            }
        }
        @if names.len() > PAGE {
            nav.pager aria-label="Pages of queues" {
                @if offset > 0 { a href=(turn(offset - PAGE)) { "Previous" } }
                (offset + 1) "–" (names.len().min(offset + PAGE)) " of " (names.len())
                @if offset + PAGE < names.len() { a href=(turn(offset + PAGE)) { "Next" } }
            }
        }
    })
}

fn row(app: &App, name: &[u8], is_lost: bool) -> Result<Markup, Failure> {
    let id = element("queue", &[name]);
    let failed = |text: &str| {
        html! { tr id=(id) class="bad" { td.name { (queue_link(name)) } td.state colspan="9" { (text) } } }
    };
    let known = app.board.rows(|rows| rows.get(name).cloned());
    let looked = match known.filter(|row| is_lost || row.status == Status::Lost) {
        Some(row) if is_lost => Ok(Some(row)),
        Some(_) => return Ok(failed("its server does not answer")),
        None => app.board.look(name),
    };
    let row = match looked {
        Ok(Some(row)) => row,
        Ok(None) | Err(Error::WrongType(_)) => return Ok(html! {}),
        Err(error) if app.client.is_cluster() || matches!(error, Error::NoPermission(_)) => {
            return Ok(failed(&Failure::from(error).to_string()));
        }
        Err(error) => return Err(error.into()),
    };
    let level = row.level().filter(|level| *level > Level::Note).map(Level::as_str);
    Ok(html! {
        tr id=(id) class=[level] {
            td.name { (queue_link(name)) }
            td.state { (conditions(name, &row.info, &row.conditions)) @if !is_lost { (died(app, name, &row)) } }
            @for (sort, heading) in COLUMNS.iter().skip(WORDS) {
                td.num data-label=(heading) { (cell(&row, *sort)) }
            }
            td.depth { (chart::sparkline(&row.history.depths())) }
        }
    })
}

fn cell(row: &Row, column: Sort) -> String {
    let rate = |rate: Option<f64>| rate.map_or_else(|| "–".to_owned(), |rate| format!("{rate:.1}"));
    match column {
        Sort::In => rate(row.rate_in()),
        Sort::Out => rate(row.rate_out()),
        Sort::Oldest => row.oldest().map_or_else(|| "–".to_owned(), span),
        Sort::Ready => separated(row.info.ready),
        Sort::Delayed => separated(row.info.delayed),
        Sort::Inflight => separated(row.info.inflight),
        Sort::Dead => separated(row.info.dead),
        Sort::Waiting => separated(row.info.waiting_clients),
        // They are words.
        Sort::Queue | Sort::State => String::new(),
    }
}

/// The most frequent cause of recent deaths, if there are any.
pub fn died(app: &App, name: &[u8], row: &Row) -> Markup {
    let info = Some(&row.info).filter(|_| row.has(Condition::Dying));
    let cause = info.and_then(|info| frequent_cause(&app.client, name, info));
    html! { @if let Some(cause) = cause { " " span.dim { (cause) } } }
}

pub fn select(name: &str, chosen: &str, options: Vec<(&str, &str)>) -> Markup {
    html! {
        select name=(name) {
            @for (value, words) in options { option value=(value) selected[value == chosen] { (words) } }
        }
    }
}
