//! The pictures of the page in README.md and docs, made by `make pictures`: queues as a shop would have them.

use super::chrome::{Browser, Scheme, Screen};
use super::Web;
use crate::support::{eventually, Server};
use std::path::PathBuf;

/// The pictures that pages show. The others, which `make pictures` leaves out, are for whoever works on the page.
const PUBLISHED: [&str; 3] = ["web.png", "web-dead.png", "web-phone.png"];
/// The samples of half a minute.
const SAMPLES: usize = 4;

/// Fills a server with queues in all conditions.
pub fn shop(server: &Server) {
    let push = |queue: &str, number: usize, words: &[&str]| {
        for at in 0..number {
            let id = format!("{}-{}", queue.split(':').next_back().unwrap(), 1001 + at);
            let payload =
                format!("{{\"order\":{},\"to\":\"ann{at}@example.com\",\"total\":{}.50}}", 1001 + at, 7 + at * 3);
            server.ask(&[&["DQ.PUSH", queue, &payload, "ID", &id], words].concat());
        }
    };
    push("mail:receipts", 9, &[]);
    push("orders:close", 31, &["DELAY", "3600000"]);
    push("orders:confirm", 24, &["DELAY", "3600000"]);
    push("mail:welcome", 12, &["AT", "1790000000000"]);
    push("payments:capture", 40, &["RETRIES", "2"]);
    for (at, error) in [
        "card declined: order 1001",
        "timeout after 5000 ms: POST https://bank.example/capture",
        "card declined: order 1003",
    ]
    .iter()
    .cycle()
    .take(17)
    .enumerate()
    {
        let id = format!("capture-{}", 1001 + at);
        server.ask(&["DQ.BURY", "payments:capture", &id, "ERROR", error]);
    }
    server.ask(&["DQ.POP", "payments:capture", "COUNT", "6", "LEASE", "600000", "AS", "worker-1"]);
    server.ask(&["DQ.POP", "payments:capture", "COUNT", "2", "LEASE", "600000", "AS", "worker-2"]);
    server.ask(&["DQ.CREATE", "exports:csv", "MAXLEN", "8"]);
    push("exports:csv", 8, &[]);
    server.ask(&["DQ.PAUSE", "exports:csv"]);
    server.ask(&["DQ.PAUSE", "orders:confirm"]);
    for customer in 0..6 {
        push(
            &format!("webhooks:{customer}"),
            3 + customer,
            &["DELAY", "3600000", "GROUP", &format!("customer-{customer}")],
        );
    }
    server.ask(&["DQ.SCHEDULE", "reports", "nightly-revenue", "{}", "CRON", "0 3 * * *"]);
    server.ask(&["DQ.SCHEDULE", "reports", "heartbeat", "{}", "EVERY", "60000"]);
}

/// Works on the queues until there is something to see in the charts.
fn work_for_a_while(server: &Server, web: &Web) {
    let work = "for i = 1, ARGV[1] do redis.call('DQ.PUSH', KEYS[1], '{}') end \
        local m = redis.call('DQ.POP', KEYS[1], 'COUNT', ARGV[2]) \
        for i = 1, m and #m or 0 do redis.call('DQ.ACK', KEYS[1], m[i][4]) end";
    let (mut turn, mut samples) = (0, 0);
    eventually("there are some samples", || {
        turn += 1;
        let (pushed, done) = ((turn % 7 + 2).to_string(), (turn % 5 + 3).to_string());
        server.ask(&["EVAL", work, "1", "mail:receipts", &pushed, &done]);
        samples = web.view("queue?queue=mail:receipts").matches('L').count();
        samples >= SAMPLES
    });
}

#[test]
#[ignore = "needs chromium: make pictures"]
fn pictures_of_the_page() {
    let server = Server::start();
    shop(&server);
    let web = Web::writing(&server);
    let published = std::env::var("DQ_PICTURES").ok().map(PathBuf::from);
    let dir = published.clone().unwrap_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")));
    let mut browser = Browser::start();
    work_for_a_while(&server, &web);
    for (name, view, wanted) in [
        ("web", "", "Looked "),
        ("web-queue", "queue?queue=mail:receipts", "clients wait"),
        ("web-dead", "queue?queue=payments:capture&tab=dead", "card declined"),
        ("web-message", "message?queue=payments:capture&id=capture-1001", "card declined"),
        ("web-consumers", "queue?queue=payments:capture&tab=consumers", "worker-1"),
        ("web-all-consumers", "consumers", "worker-1"),
        ("web-schedules", "queue?queue=reports&tab=schedules", "nightly-revenue"),
        ("web-groups", "queue?queue=webhooks:2&tab=groups", "customer-2"),
        ("web-inflight", "queue?queue=payments:capture&tab=inflight", "worker-1"),
        ("web-message-inflight", "message?queue=payments:capture&id=capture-1018", "worker-1"),
        ("web-details", "queue?queue=payments:capture&tab=details", "maxlease"),
        ("web-search", "find?id=capture-1001", "payments"),
    ] {
        for (screen, mark) in [(Screen::Desktop, ""), (Screen::Phone, "-phone")] {
            for (scheme, shade) in [(Scheme::Light, ""), (Scheme::Dark, "-dark")] {
                let file = format!("{name}{mark}{shade}.png");
                if published.is_some() && !PUBLISHED.contains(&file.as_str()) {
                    continue;
                }
                browser.show(screen, scheme);
                browser.open("about:blank");
                browser.open(&web.page(view));
                browser.until(wanted);
                if name == "web-dead" {
                    // The charts leave no room for the messages.
                    browser.eval("document.querySelector('.tabs').scrollIntoView()");
                }
                browser.picture(&dir.join(file));
            }
        }
    }
}
