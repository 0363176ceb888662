//! One queue: its conditions, its charts, and a tab for each state.

use super::button::{button, Act, Opt};
use super::html::{advice, conditions, pairs, queue_url, tab_url, time};
use super::{chart, holders, messages, overview, App, Params, View};
use crate::board::{at_most, begins_with_letter, groups, setting, target_in_words, target_queue, Row, PERCENTILES};
use crate::server::{Failure, Fields, QueueInfo};
use crate::text::{counted, exact, millis, separated, shown, span, unix_ms};
use dq_client::{Error, Raw, State};
use maud::{html, Markup};

/// The tabs: those of states first.
const TABS: [(&str, &str); 10] = [
    ("ready", "Ready"),
    ("delayed", "Delayed"),
    ("inflight", "In flight"),
    ("dead", "Dead"),
    ("done", "Done"),
    ("letters", "Dead letters"),
    ("consumers", "Consumers"),
    ("groups", "Groups"),
    ("schedules", "Schedules"),
    ("details", "Details"),
];

pub fn queue(app: &App, params: &Params) -> Result<View, Failure> {
    let name = params.needed("queue")?;
    let Some(row) = app.board.look(name)? else {
        return Err(Failure::from(Error::NoQueue(String::new())).about(Some(&shown(name))));
    };
    let info = row.info.clone();
    let has_letters = begins_with_letter(&app.client, name);
    let tab = match params.text("tab") {
        tab if TABS.iter().any(|(known, _)| *known == tab) => tab,
        _ => match row.opens_at() {
            State::Ready if has_letters => "letters".to_owned(),
            state => state.as_str().to_owned(),
        },
    };
    let samples = app.samples(Some(name));
    let body = html! {
        nav.crumbs { a href="#/" { "Queues" } }
        div.head { h1 { (shown(name)) } @if app.allow_writes { (acts(name, &info)) } }
        (state(app, name, &info, &row))
        nav.tabs id="tabs" aria-label="Contents of the queue" {
            @for (key, words) in TABS {
                @if is_used(key, &info, has_letters) || key == tab {
                    a href=(tab_url(name, key)) aria-current=[(key == tab).then_some("page")] {
                        (words)
                        @if let Some(number) = count(key, &info) { " " span.badge { (separated(number)) } }
                    }
                }
            }
        }
        section id="tab" aria-label=(tab) {
            @match tab.as_str() {
                "consumers" => (holders::consumers_of_queue(app, name, &info)?),
                "groups" => (holders::groups(app, name, &info, params)?),
                "schedules" => (messages::schedules(app, name, &info)?),
                "details" => (details(app, name, &info)?),
                tab => (messages::list(app, name, &info, tab, params)?),
            }
        }
        div.charts id="charts" {
            (chart::depths(&samples)) (chart::flows(&samples))
            (chart::times("Delivered late by", &samples, |times| times.lateness))
            (chart::times("Run time", &samples, |times| times.runtime))
        }
    };
    Ok(View { title: shown(name), body })
}

fn is_used(tab: &str, info: &QueueInfo, has_letters: bool) -> bool {
    match tab {
        "letters" => has_letters,
        "done" => info.done > 0 || info.settings.retain.is_some_and(|time| !time.is_zero()),
        _ => true,
    }
}

fn count(tab: &str, info: &QueueInfo) -> Option<u64> {
    info.fields.get(tab).filter(|_| tab != "letters").map(|_| info.fields.number(tab))
}

fn acts(name: &[u8], info: &QueueInfo) -> Markup {
    let queue = shown(name);
    let this = [Opt::Queue.is(&*queue)];
    let of_flow = |flow: &str| [Opt::Queue.is(&*queue), Opt::Flow.is(flow)];
    html! {
        div.buttons {
            (button("Push", Act::Push, &this, &[Opt::Payload, Opt::In, Opt::Id].map(Opt::empty)))
            @if info.paused { (button("Resume", Act::Resume, &of_flow("out"), &[])) }
            @else { (button("Pause", Act::Pause, &of_flow("out"), &[Opt::For.empty()])) }
            @if info.closed { (button("Open", Act::Resume, &of_flow("in"), &[])) }
            @else { (button("Close", Act::Pause, &of_flow("in"), &[Opt::For.empty()])) }
            @if info.dead > 0 {
                (button("Redrive", Act::Redrive, &this, &[Opt::Count, Opt::In].map(Opt::empty)))
            }
            @if info.delayed > 0 {
                (button("Run delayed now", Act::Promote, &this, &[Opt::Count.empty()]))
            }
        }
    }
}

/// What is unusual, and a few facts.
fn state(app: &App, name: &[u8], info: &QueueInfo, row: &Row) -> Markup {
    // A user who may not read the groups still sees how many messages they hold.
    let held = groups::held_back(&app.client, name, info, groups::MOST_READ).unwrap_or_default();
    let facts = [
        info.oldest_ready.map(|age| format!("oldest ready for {}", span(millis(age)))),
        info.oldest_inflight.map(|age| format!("oldest delivery {} ago", span(millis(age)))),
        Some(counted(info.waiting_clients, "client waits", "clients wait")),
        Some(counted(info.payload_bytes, "byte of payloads", "bytes of payloads")),
        Some(info.paused_groups)
            .filter(|paused| *paused > 0)
            .map(|paused| counted(paused, "group paused", "groups paused")),
    ];
    html! {
        p.conditions { (conditions(name, info, &row.conditions)) (overview::died(app, name, row)) }
        @for sentence in held.sentences(name) { p.warning { (advice(&sentence)) } }
        p.dim {
            (facts.into_iter().flatten().collect::<Vec<_>>().join(" · "))
            @if let Some(due) = info.next_due { " · next due " (time(Some(unix_ms(due)))) }
            @if let Some(target) = target_in_words(info) {
                " · the dead are moved to "
                @match target_queue(info) { Some(queue) => a href=(queue_url(queue)) { (target) }, None => (target) }
            }
        }
    }
}

/// Settings, totals, and how long deliveries take.
fn details(app: &App, name: &[u8], info: &QueueInfo) -> Result<Markup, Failure> {
    let of_settings = info.settings_fields();
    let named = |fields: &Fields| -> Vec<(String, String)> {
        fields.0.iter().map(|(name, _)| (name.clone(), setting(fields, name))).collect()
    };
    let totals = Fields(info.fields.0.iter().skip_while(|(name, _)| name != "pushed").cloned().collect());
    let stats = app.client.queue::<Raw>(name).stats()?;
    let measured = stats.iter().flat_map(|stats| [("lateness", &stats.lateness), ("runtime", &stats.runtime)]);
    let times = measured.flat_map(|(name, times)| {
        PERCENTILES.map(|percent| {
            let bound = at_most(times, percent).map_or_else(|| "–".to_owned(), |ms| format!("≤{}", exact(ms)));
            (format!("{name}, {percent} %"), bound)
        })
    });
    let this = [Opt::Queue.is(shown(name))];
    let changed = [Opt::Retries, Opt::Lease, Opt::Maxlen, Opt::Rate].map(Opt::empty);
    Ok(html! {
        div.details {
            section {
                h2 { "Settings" }
                @if app.allow_writes { (button("Change", Act::Alter, &this, &changed)) }
                (pairs(&named(&of_settings)))
            }
            section { h2 { "Totals since its creation" } (pairs(&named(&totals))) }
            section { h2 { "Since the server started" } (pairs(&times.collect::<Vec<_>>())) }
        }
        @if app.allow_writes { (button("Delete the queue", Act::Delete, &this, &[])) }
    })
}
