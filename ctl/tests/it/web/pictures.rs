//! The pictures of the page in README.md and docs, made by `make pictures`: queues as a shop would have them.

use super::chrome::{Browser, Scheme, Screen};
use super::Web;
use crate::support::{eventually, Server};
use std::path::Path;

/// The pieces of the lines of half a minute: there are seven lines.
const SAMPLES: usize = 20;

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
        // A line goes from point to point: `M12.0 3.4L20.0 4.5`.
        let view = web.view("queue?queue=mail:receipts");
        let is_point = |part: &[u8]| part[0].is_ascii_digit() && part[1] == b'L' && part[2].is_ascii_digit();
        samples = view.as_bytes().windows(3).filter(|part| is_point(part)).count();
        samples >= SAMPLES
    });
}

#[test]
#[ignore = "needs chromium: make pictures"]
fn pictures_of_the_page() {
    let server = Server::start();
    shop(&server);
    let web = Web::writing(&server);
    let dir = std::env::var("DQ_PICTURES").unwrap_or_else(|_| env!("CARGO_TARGET_TMPDIR").to_owned());
    let mut browser = Browser::start();
    work_for_a_while(&server, &web);
    for (file, screen, view, wanted) in [
        ("web.png", Screen::Desktop, "", "Looked "),
        ("web-phone.png", Screen::Phone, "", "Looked "),
        ("web-dead.png", Screen::Desktop, "queue?queue=payments:capture&tab=dead", "card declined"),
    ] {
        browser.show(screen, Scheme::Light);
        browser.open("about:blank");
        browser.open(&web.page(view));
        browser.until(wanted);
        if file == "web-dead.png" {
            // The charts leave no room for the messages.
            browser.eval("document.querySelector('.tabs').scrollIntoView()");
        }
        browser.picture(&Path::new(&dir).join(file));
    }
}
