//! What is changed from the page, and what stays where it is meanwhile, in a headless Chromium, `make test-web`.

use super::chrome::Browser;
use super::Web;
use crate::support::Server;
use serde_json::Value as Json;

/// Fills in a field of the question that is open.
fn fill(browser: &mut Browser, field: &str, value: &str) {
    browser.eval(&format!("document.getElementById('field-{field}').value = '{value}'"));
}

fn confirm(browser: &mut Browser) {
    browser.eval("document.querySelector('dialog button.primary').click()");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_batch_leads_to_its_messages_and_is_cancelled() {
    let server = Server::start();
    for id in ["a", "b", "c"] {
        server.ask(&["DQ.PUSH", "q", "x", "ID", id, "BATCH", "import"]);
    }
    server.ask(&["DQ.PUSH", "q", "x", "ID", "other"]);
    server.ask(&["DQ.POP", "q"]);
    server.ask(&["DQ.BATCH", "q", "import", "THEN", "bind", "ID", "bind-7"]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=q&tab=batches"));
    browser.until("0 of 3");
    browser.choose("import", "Only messages of batch import.");
    browser.until("Then: bind-7: bind");
    let rows = "[...document.querySelectorAll('.messages .line-one')].map((row) => row.innerText.split(' · ')[0].replace(/\\s+/g, ' ')).sort().join()";
    assert_eq!(browser.eval(rows), "a in flight,b ready,c ready");
    browser.choose("Cancel the batch…", "3 messages of it have not ended");
    confirm(&mut browser);
    browser.until("Cancelled the batch import: 3 messages removed.");
    browser.until("The batch has ended, or was never begun.");
    assert_eq!(server.text(&["DQ.LEN", "q"]), "1");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_message_in_flight_is_given_back_then_buried() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x", "ID", "m", "GROUP", "ann"]);
    server.ask(&["DQ.POP", "q", "LEASE", "3600000", "AS", "worker-1"]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page("message?queue=q&id=m"));
    browser.until("worker-1");
    let links = "[...document.querySelectorAll('.message-fields a')].map((link) => link.innerText).join()";
    assert_eq!(browser.eval(links), "ann,worker-1");
    browser.choose("Give back…", "would do the work twice");
    fill(&mut browser, "delay", "0");
    fill(&mut browser, "error", "hung");
    fill(&mut browser, "nocount", "no");
    // Its lease ends and another consumer has it: that delivery is not the one that was looked at.
    server.ask(&["DQ.NACK", "q", "m", "DELAY", "0"]);
    server.ask(&["DQ.POP", "q", "LEASE", "3600000", "AS", "worker-2"]);
    confirm(&mut browser);
    browser.until("it has ended meanwhile");
    browser.press("Escape");
    browser.until("worker-2");
    browser.choose("Give back…", "would do the work twice");
    fill(&mut browser, "delay", "0");
    confirm(&mut browser);
    browser.until("Given back: m is ready.");
    browser.choose("Bury…", "The message becomes dead");
    fill(&mut browser, "error", "no such user");
    confirm(&mut browser);
    browser.until("Buried: m.");
    browser.until("no such user");
    assert_eq!(server.text(&["DQ.LEN", "q", "dead"]), "1");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn settings_schedules_and_pauses_of_groups_are_declared() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q", "RETRIES", "5", "LEASE", "90000"]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=q&tab=details"));
    browser.choose("Change…", "Settings of q");
    assert_eq!(browser.eval("document.getElementById('field-lease').value"), "1m30s");
    confirm(&mut browser);
    browser.until("Nothing is changed.");
    // A number that is out of its range is answered with the range, and nothing is changed.
    for (name, wrong, error) in [
        ("retries", "-2", "A whole number from -1 to 2,147,483,647."),
        ("retries", "2147483648", "A whole number from -1 to 2,147,483,647."),
        ("rate", "-1", "A whole number from 0 to 1,000,000."),
        ("maxlen", "-1", "A whole number from 0 to 9,007,199,254,740,991."),
    ] {
        let before = browser.eval(&format!("document.getElementById('field-{name}').value"));
        fill(&mut browser, name, wrong);
        confirm(&mut browser);
        browser.until(error);
        fill(&mut browser, name, before.as_str().unwrap());
    }
    fill(&mut browser, "retries", "2");
    fill(&mut browser, "rate", "7");
    fill(&mut browser, "rate-period", "1s");
    confirm(&mut browser);
    browser.until("Changed: retries, rate, rate-period.");
    let info = web.read("/api/queue?queue=q")["info"].clone();
    let changed = ["retries", "rate", "rate-period", "lease"].map(|field| info[field].as_i64().unwrap());
    assert_eq!(changed, [2, 7, 1_000, 90_000]);
    browser.eval("document.querySelector('.details button.write').click()");
    browser.until("Settings of q");
    // Whoever uses the page may not have the documentation at hand.
    assert!(!browser.text().contains("docs/"), "{}", browser.text());
    fill(&mut browser, "backoff-jitter", "25");
    fill(&mut browser, "deadforward", "QUEUE q:dead");
    confirm(&mut browser);
    browser.until("Changed: backoff-base, backoff-max, backoff-jitter, deadforward.");
    let info = web.read("/api/queue?queue=q")["info"].clone();
    assert_eq!((&info["backoff-jitter"], &info["deadforward"]), (&25.into(), &"QUEUE q:dead".into()));

    browser.open(&web.page("queue?queue=q&tab=schedules"));
    browser.until("No message of this queue recurs.");
    browser.choose("Declare a schedule…", "Declare a schedule of q");
    fill(&mut browser, "id", "nightly");
    confirm(&mut browser);
    browser.until("give every or cron");
    fill(&mut browser, "cron", "0 3 * * *");
    confirm(&mut browser);
    browser.until("Schedule nightly: created.");
    browser.until("0 3 * * *");

    browser.open(&web.page("queue?queue=q&tab=groups"));
    browser.until("No group has a message");
    browser.choose("Pause a group by name…", "also of those that are pushed later");
    fill(&mut browser, "group", "ann");
    confirm(&mut browser);
    browser.until("Paused the group ann.");
    browser.until("paused until it is resumed");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn messages_of_every_state_are_selected_and_changed_together() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q", "RETAIN", "3600000"]);
    let web = Web::writing(&server);
    let push = |prefix: &str, options: &[&str]| {
        for number in 1..=3 {
            server.ask(&[&["DQ.PUSH", "q", "x", "ID", &format!("{prefix}-{number}")], options].concat());
        }
    };
    push("done", &[]);
    server.ask(&["DQ.POP", "q", "COUNT", "3", "NOACK"]);
    push("held", &[]);
    server.ask(&["DQ.POP", "q", "COUNT", "3", "LEASE", "3600000", "AS", "worker-1"]);
    push("dead", &[]);
    (1..=3).for_each(|number| drop(server.ask(&["DQ.BURY", "q", &format!("dead-{number}")])));
    push("later", &["DELAY", "3600000"]);
    let mut browser = Browser::start();
    for (tab, id, button, confirmation, said) in [
        ("delayed", "later", "Run 2 selected now…", "Run now", "Due now: 2 messages."),
        ("ready", "later", "Cancel 2 selected…", "Cancel", "Cancelled: 2 messages."),
        ("inflight", "held", "Give 2 selected back…", "Give back", "Given back: 1 message. 1 had changed meanwhile."),
        ("dead", "dead", "Redrive 2 selected…", "Redrive", "Redriven: 2 messages."),
        ("done", "done", "Forget 2 selected…", "Forget", "Forgotten: 2 messages."),
    ] {
        browser.open(&web.page(&format!("queue?queue=q&tab={tab}")));
        for number in [1, 3] {
            let name = format!("{id}-{number}");
            browser.until_true(&format!("document.querySelector('[aria-label=\"Select {name}\"]') !== null"));
            browser.tab_to(&format!("Select {name}"));
            browser.press(" ");
        }
        browser.tab_to(button);
        browser.press("Enter");
        browser.until_true("document.getElementById('dialog').open");
        if tab == "inflight" {
            fill(&mut browser, "delay", "1h");
            // This one has another delivery than the one that is looked at.
            server.ask(&["DQ.NACK", "q", "held-1", "DELAY", "0"]);
            server.ask(&["DQ.POP", "q", "LEASE", "3600000", "AS", "worker-2"]);
            assert_eq!(web.read("/api/message?queue=q&id=held-1")["message"]["consumer"], "worker-2");
        }
        browser.tab_to(confirmation);
        browser.press("Enter");
        browser.until(said);
        // What was changed is selected no more, nor is another delivery of it, and the focus is not lost.
        browser.until_true("document.querySelectorAll('.select input:checked').length === 0");
        browser.until_true("document.activeElement !== document.body");
    }
    let state = |id: &str| web.get(&format!("/api/message?queue=q&id={id}")).json()["message"]["state"].clone();
    assert_eq!(
        ["later-1", "later-2", "held-1", "held-2"].map(state),
        [Json::Null, "delayed".into(), "inflight".into(), "inflight".into()]
    );
    assert_eq!(
        ["held-3", "dead-1", "dead-2", "done-2"].map(state),
        ["delayed".into(), "ready".into(), "dead".into(), Json::from("done")]
    );
    // All that are shown are selected at once.
    browser.open(&web.page("queue?queue=q&tab=ready"));
    browser.until_true("document.querySelectorAll('[aria-label=ready] .messages li').length === 2");
    browser.eval("document.querySelector('.bulk label input').click()");
    browser.until("Cancel 2 selected…");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_question_ends_with_the_view_that_it_is_about() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "one", "x"]);
    server.ask(&["DQ.PUSH", "other", "x"]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=one"));
    browser.until("clients waiting");
    browser.eval("location.hash = location.hash.replace('one', 'other')");
    browser.until_true("document.querySelector('h1').innerText.includes('other')");
    browser.tab_to("Purge…");
    browser.press("Enter");
    browser.until_true("document.getElementById('dialog').open");
    browser.eval("history.back()");
    browser.until_true("document.querySelector('h1').innerText.includes('one')");
    browser.until_true("!document.getElementById('dialog').open");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_change_that_failed_is_repeated_by_keyboard() {
    let mut server = Server::start();
    server.ask(&["DQ.CREATE", "q"]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=q"));
    browser.until("clients waiting");
    browser.choose("Pause…", "Nothing is delivered until");
    browser.tab_to("Pause");
    server.kill();
    browser.press("Enter");
    browser.until_true("document.querySelector('.dialog-error').innerText !== ''");
    let focused = "document.activeElement.innerText";
    assert_eq!(browser.eval(focused), "Pause");
    browser.until_true("document.getElementById('problem').innerText !== ''");
    server.boot();
    server.ask(&["DQ.CREATE", "q"]);
    // The error is no longer true, so it goes.
    browser.until("The server answers again.");
    assert_eq!(browser.eval("document.querySelector('.dialog-error')"), Json::Null);
    browser.press("Enter");
    browser.until("Paused q.");
    browser.until_true(&format!("{focused} === 'Resume…'"));
    // What is said of it is dismissed, and the focus is back again.
    browser.eval("document.querySelector('#done button').focus()");
    browser.press("Enter");
    assert_eq!(browser.eval(focused), "Resume…");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_change_that_fails_after_its_question_was_left_is_reported() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q"]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=q"));
    browser.until("clients waiting");
    browser.eval("const ask = window.fetch; window.fetch = async (path, options) => { if (path !== '/api/pause') return ask(path, options); await new Promise((go) => { window.failNow = go; }); throw new TypeError('lost'); }");
    browser.choose("Pause…", "Nothing is delivered until");
    browser.press("Enter");
    browser.until_true("typeof window.failNow === 'function'");
    browser.press("Escape");
    browser.until_true("!document.getElementById('dialog').open");
    browser.choose("Push…", "Push to q");
    browser.eval("window.failNow()");
    browser.until("Failed: Pause q. dqctl web does not answer");
    // The question that is asked now is another one.
    assert_eq!(browser.eval("document.getElementById('dialog').open"), true);
    assert_eq!(browser.eval("document.querySelector('.dialog-error').innerText"), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn buttons_and_tabs_of_a_live_queue_do_not_move() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x", "GROUP", "ann"]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=q&tab=ready"));
    browser.until("clients waiting");
    let bar = "JSON.stringify(document.querySelector('.queue .head .buttons').getBoundingClientRect())";
    let tabs = "[...document.querySelectorAll('.tabs a')].map((tab) => tab.dataset.key).join()";
    let height = "document.querySelector('.tabs').getBoundingClientRect().top";
    let (bar_at, tabs_shown) = (browser.eval(bar), browser.eval(tabs));
    server.ask(&["DQ.PAUSE", "q", "GROUP", "ann"]);
    server.ask(&["DQ.PAUSE", "q", "IN"]);
    browser.until("Groups held");
    browser.until("pushes are refused until it is opened");
    let below = browser.eval(height);
    assert_eq!((browser.eval(bar), browser.eval(tabs)), (bar_at.clone(), tabs_shown.clone()));
    server.ask(&["DQ.RESUME", "q", "ALL"]);
    server.ask(&["DQ.RESUME", "q", "GROUP", "ann"]);
    server.ask(&["DQ.POP", "q", "AS", "worker-1"]);
    browser.until_true("!document.body.innerText.includes('Groups held')");
    assert_eq!((browser.eval(bar), browser.eval(tabs)), (bar_at, tabs_shown));
    assert_eq!(browser.eval(height), below, "what has been high stays so");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn an_open_batch_without_messages_is_said_to_be_there() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x", "ID", "m", "BATCH", "night"]);
    server.ask(&["DQ.POP", "q"]);
    server.ask(&["DQ.ACK", "q", "m"]);
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=q&tab=batches"));
    browser.until("1 open batch whose messages have all ended");
    server.ask(&["DQ.PUSH", "q", "x", "BATCH", "day"]);
    browser.until("1 more whose messages have all ended");
    server.ask(&["DQ.BATCH", "q", "night", "THEN", "done"]);
    browser.until_true("!document.body.innerText.includes('have all ended')");
    assert_eq!(browser.problem(), "");
}
