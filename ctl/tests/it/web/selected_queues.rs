//! Queues that are selected in the list, and what is done with them together.

use super::chrome::Browser;
use super::Web;
use crate::support::Server;

/// Answers the question that is open with yes.
fn confirm(browser: &mut Browser) {
    browser.eval("document.querySelector('#dialog .primary').click()");
}

fn select(browser: &mut Browser, queues: &[&str]) {
    for queue in queues {
        browser.until_true(&format!("document.querySelector('[aria-label=\"Select {queue}\"]') !== null"));
        browser.tab_to(&format!("Select {queue}"));
        browser.press(" ");
    }
    browser.eval("document.querySelector('.head').scrollIntoView()");
}

/// Makes so many messages of a queue die.
fn die(server: &Server, queue: &str, number: usize) {
    let script = "for i = 1, ARGV[1] do redis.call('DQ.BURY', KEYS[1], redis.call('DQ.PUSH', KEYS[1], 'x')) end";
    server.ask(&["EVAL", script, "1", queue, &number.to_string()]);
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn selected_queues_are_paused_resumed_closed_and_opened_together() {
    let server = Server::start();
    for queue in ["one", "two", "three"] {
        server.ask(&["DQ.PUSH", queue, "x"]);
    }
    let web = Web::writing(&server);
    let info = |queue: &str| server.client().queue::<()>(queue).info().unwrap().unwrap();
    let paused = || ["one", "two", "three"].map(|queue| info(queue).paused);
    let mut browser = Browser::start();
    browser.open(&web.page("?sort=name"));
    select(&mut browser, &["one", "two"]);
    browser.choose(
        "Pause…",
        "Nothing is delivered until they are resumed. Pushes, retries and leases go on: one, two. Ready: 2 messages.",
    );
    confirm(&mut browser);
    browser.until("Paused: 2 queues.");
    assert_eq!(paused(), [true, true, false]);
    // They stay selected, and the other way is as short. Those that are not paused are left alone.
    select(&mut browser, &["three"]);
    browser.until("3 queues selected");
    browser.choose("Resume…", "Consumers get messages again, at once: one, two. Ready: 2 messages. Left alone: 1 selected queue (not paused).");
    confirm(&mut browser);
    browser.until("Resumed: 2 queues.");
    assert_eq!(paused(), [false; 3]);
    browser.choose("Close…", "New messages are refused until they are opened.");
    confirm(&mut browser);
    browser.until("Closed: 3 queues.");
    browser.choose("Open…", "Open 3 queues?");
    confirm(&mut browser);
    browser.until("Opened: 3 queues.");
    browser
        .until_true("[...document.querySelectorAll('.bulk button')].find((one) => one.innerText === 'Open…').disabled");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn the_question_about_selected_queues_says_how_many_messages_and_a_failure_how_far_it_came() {
    let server = Server::start();
    die(&server, "q1", 3);
    die(&server, "q2", 20);
    die(&server, "q3", 400);
    server.ask(&["DQ.PUSH", "q4", "x", "DELAY", "3600000"]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page("?sort=name"));
    select(&mut browser, &["q1", "q2", "q3", "q4"]);
    browser.choose("Redrive all dead…", "Redrive 423 dead messages of 3 queues?");
    browser.until("q1 (3), q2 (20), q3 (400). Left alone: 1 selected queue without a dead message.");
    // What dies after the question is not meant. The second queue is gone, and the third one refuses.
    die(&server, "q1", 1);
    server.ask(&["DEL", "q2"]);
    browser.eval(
        "const ask = window.fetch; window.fetch = (path, options) => window.fails && options.method === 'POST' && options.body.includes('\"q3\"') \
         ? Promise.resolve(new Response('{\"error\": \"it refuses\"}', { status: 409 })) : ask(path, options); window.fails = true",
    );
    confirm(&mut browser);
    browser.until("Redriven: 3 messages of 1 of 3 queues. 1 queue had been deleted meanwhile. Then q3: it refuses");
    // The same answer goes on where it failed.
    browser.eval("window.fails = false");
    confirm(&mut browser);
    browser.until("Redriven: 403 messages of 2 queues. 1 queue had been deleted meanwhile.");
    assert_eq!(
        (server.text(&["DQ.LEN", "q1", "dead"]), server.text(&["DQ.LEN", "q3", "ready"])),
        ("1".into(), "400".into())
    );
    browser.choose("Run all delayed now…", "Run 1 delayed message of 1 queue now?");
    confirm(&mut browser);
    browser.until("Due now: 1 message of 1 queue.");
    browser.choose("Delete all dead…", "Delete 1 dead message of 1 queue?");
    confirm(&mut browser);
    browser.until("Deleted: 1 message of 1 queue.");
    assert_eq!(server.text(&["DQ.LEN", "q1", "dead"]), "0");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn all_queues_that_match_the_filter_are_selected_although_the_list_shows_some() {
    let server = Server::start();
    let script = "for i = 1, 260 do local q = string.format('%s:%03d', i > 10 and 'many' or 'few', i) \
        redis.call('DQ.BURY', q, redis.call('DQ.PUSH', q, 'x')) end";
    server.ask(&["EVAL", script, "0"]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page("?sort=name&contains=many"));
    browser.until("1–50 of 250 queues");
    browser.eval("document.querySelector('.queues th .select input').click()");
    browser.until("50 queues selected");
    browser.choose("Select all 250 that match the filter", "250 queues selected");
    // The counts are those of now.
    die(&server, "many:250", 5);
    browser.choose("Redrive all dead…", "Redrive 255 dead messages of 250 queues?");
    confirm(&mut browser);
    browser.until("Redriven: 255 messages of 250 queues.");
    assert_eq!(server.text(&["DQ.LEN", "few:001", "dead"]), "1");
    assert_eq!(server.text(&["DQ.LEN", "many:260", "ready"]), "1");
    // With another filter, only those that the list shows stay selected.
    browser.until_true("!document.getElementById('dialog').open");
    browser.eval("document.getElementById('contains').focus()");
    browser.write(":25");
    browser.until("10 queues selected");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn queues_are_filtered_by_their_state_and_selected_by_it() {
    let server = Server::start();
    let script = "for i = 1, 130 do local q = string.format('q:%03d', i) redis.call('DQ.CREATE', q) \
        if i % 2 == 0 then redis.call('DQ.PAUSE', q) end end";
    server.ask(&["EVAL", script, "0"]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page("?sort=name&state=paused"));
    browser.until("1–50 of 65 queues");
    browser.eval("document.querySelector('.queues th .select input').click()");
    browser.choose("Select all 65 that match the filter", "65 queues selected");
    browser.choose("Resume…", "Resume 65 queues?");
    confirm(&mut browser);
    browser.until("Resumed: 65 queues.");
    browser.until("No queue is in the state “paused”.");
    browser.choose("Show all queues", "1–50 of 130 queues");
    assert_eq!(browser.eval("location.hash"), "#/?sort=name");
    assert_eq!(browser.problem(), "");
}
