//! The overview in a headless Chromium, `make test-web`: what is wrong comes first, and is said.

use super::chrome::Browser;
use super::pictures::shop;
use super::Web;
use crate::dqctl::ok;
use crate::support::{eventually, Server};

#[test]
#[ignore = "needs chromium: make test-web"]
fn the_page_says_that_the_module_is_not_loaded() {
    let mut server = Server::without_module();
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    browser.open(&web.page(""));
    browser.until("The module dq is not loaded");
    assert!(!browser.text().contains("no queue yet"), "{}", browser.text());
    server.kill();
    server.boot();
    browser.until("There is no queue yet");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_server_that_dies_is_said_and_comes_back_by_itself() {
    let mut server = Server::start();
    server.ask(&["DQ.PUSH", "mail", "x"]);
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    browser.open(&web.page(""));
    browser.until("mail");
    server.kill();
    browser.until("The server of the queues cannot be reached");
    // What was there stays, and says of when it is.
    assert!(browser.text().contains("mail") && browser.problem().contains("What is shown is of"), "{}", browser.text());
    // So it is with consumers, of which the last list may still be good enough.
    browser.open(&web.page("consumers"));
    browser.until_true(
        "location.hash === '#/consumers' && document.getElementById('problem').innerText.includes('cannot be reached')",
    );
    assert!(!browser.text().contains("No consumer"), "{}", browser.text());
    browser.open(&web.page(""));
    server.boot();
    server.ask(&["DQ.PUSH", "after", "x"]);
    browser.until("after");
    eventually("the problem is gone", || browser.problem().is_empty());
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn rows_in_trouble_are_coloured_and_first() {
    let server = Server::start();
    shop(&server);
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    browser.open(&web.page(""));
    browser.until("Doctor:");
    let rows = "[...document.querySelectorAll('.queues tbody tr')].map((row) => row.className + ' ' + row.innerText.replace(/\\s+/g, ' ')).join('\\n')";
    eventually("they are sorted", || browser.eval(rows).as_str().unwrap().starts_with("bad exports:csv paused full "));
    let shown = browser.eval(rows).as_str().unwrap().to_owned();
    assert!(
        shown.contains("\nbad mail:welcome no consumer ")
            && shown.contains("\nwarning payments:capture messages die ")
            && shown.contains("\nwarning orders:confirm paused "),
        "{shown}"
    );
    // A queue without a ready message has no oldest one.
    let paused = shown.lines().find(|line| line.contains("orders:confirm")).unwrap();
    assert!(paused.contains(" 0 24 0 0 ") && paused.ends_with('–'), "{shown}");
    // The findings of the doctor are open, because some are critical.
    assert!(browser.text().contains("it is full: 8 of 8 messages"), "{}", browser.text());
    // A heading sorts, and a second time the other way round.
    let names = "[...document.querySelectorAll('.queues td.name')].map((cell) => cell.innerText).join()";
    for (expected, sorted) in [("webhooks:5,webhooks:4", "descending"), ("orders:close,orders:confirm", "descending")] {
        let heading = if expected.starts_with("webhooks") { "Queue" } else { "Delayed" };
        let click = format!(
            "[...document.querySelectorAll('button.sort')].find((one) => one.innerText === '{heading}').click()"
        );
        browser.eval(&click);
        if heading == "Queue" {
            browser.until_true("document.querySelector('[aria-sort]').ariaSort === 'ascending'");
            browser.eval(&click);
        }
        eventually(expected, || browser.eval(names).as_str().unwrap().starts_with(expected));
        assert_eq!(browser.eval("document.querySelector('[aria-sort]').ariaSort"), sorted);
    }
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn four_thousand_queues_are_sorted_filtered_and_paged() {
    let server = Server::start();
    let script = "for i = 0, 3999 do redis.call('DQ.PUSH', string.format('queue:%04d', i), 'x', 'DELAY', 3600000) end";
    server.ask(&["EVAL", script, "0"]);
    server.ask(&["DQ.PAUSE", "queue:2345"]);
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    browser.open(&web.page(""));
    browser.until("1–50 of 4,000 queues");
    let first = "document.querySelector('.queues td.name')?.innerText";
    browser.until_true(&format!("{first} === 'queue:2345'"));
    browser.tab_to("contains");
    browser.write(":399");
    browser.until("10 queues");
    browser.until_true(&format!("{first} === 'queue:3990'"));
    browser.eval("document.getElementById('search-id').focus()");
    browser.write("queue:17");
    browser.press("Enter");
    browser.until("100 queues have it in their name");
    browser.until("No message found.");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn three_findings_leave_room_for_the_queues_and_equal_ones_are_one_line() {
    let server = Server::start();
    for number in 0..7 {
        let queue = format!("closed:{number}");
        server.ask(&["DQ.CREATE", &queue]);
        if number < 3 {
            server.ask(&["DQ.PUSH", &queue, "x", "ID", "m"]);
            server.ask(&["DQ.BURY", &queue, "m"]);
        }
        server.ask(&["DQ.PAUSE", &queue, "IN"]);
    }
    server.ask(&["DQ.CREATE", "full", "MAXLEN", "1"]);
    server.ask(&["DQ.PUSH", "full", "x", "DELAY", "3600000"]);
    server.ask(&["DQ.CREATE", "paused"]);
    server.ask(&["DQ.PAUSE", "paused"]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page(""));
    browser.until("Doctor:");
    browser.eval("document.querySelector('.findings').open = true");
    let shown = "document.querySelectorAll('.findings > ul > li').length";
    assert_eq!(browser.eval(shown), 3);
    let number = browser.eval("parseInt(document.querySelector('.findings > button').innerText)").as_i64().unwrap();
    browser.eval("document.querySelector('.findings > button').click()");
    assert_eq!(browser.eval(shown), 3 + number);
    // The queues that are closed are one line, which names some of them, and opens.
    let fold = "[...document.querySelectorAll('.fold')].find((one) => one.innerText.includes('closed:0'))";
    let closed = browser.eval(&format!("{fold}.innerText")).as_str().unwrap().to_owned();
    assert!(closed.contains("7 queues: they are closed: closed:0, closed:1, closed:2 and 4 more."), "{closed}");
    browser.eval(&format!("{fold}.firstElementChild.click()"));
    browser.until_true(&format!("{fold}.querySelectorAll('li').length === 7"));
    // Each line counts all queues of which it is true, whatever else is wrong with them.
    assert!(browser.text().contains("3 queues: messages have died in the last 10 minutes: "), "{}", browser.text());
    // What the page can do is no advice for a terminal.
    let each = browser.eval(&format!("{fold}.querySelector('li').innerText")).as_str().unwrap().to_owned();
    assert!(
        each.contains("closed:0: it is closed") && each.contains("Open it here") && !each.contains("dqctl"),
        "{each}"
    );
    // It stays open when the doctor looks again.
    browser.choose("Look again", "Looked ");
    browser.until_true(&format!("!document.querySelector('.looked button').ariaDisabled && {fold}.open"));
    // What is to be done with them is done in the list.
    browser.choose("Select these 7 queues", "7 queues selected");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn what_is_wrong_with_a_queue_is_one_line() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "imports", "MAXLEN", "2"]);
    for queue in ["imports", "imports", "mail"] {
        server.ask(&["DQ.PUSH", queue, "x", "AT", "1700000000000"]);
    }
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page(""));
    // The third one is that nothing is saved.
    browser.until("Doctor: 3 critical");
    let of = |queue: &str| {
        format!("[...document.querySelectorAll('.findings li')].filter((one) => one.innerText.includes('{queue}')).map((one) => one.innerText).join('|')")
    };
    let imports = browser.eval(&of("imports")).as_str().unwrap().to_owned();
    assert!(imports.contains("it is full: 2 of 2 messages") && imports.contains("; 2 messages are ready"), "{imports}");
    assert!(!imports.contains('|') && imports.contains("Its limits"), "{imports}");
    assert!(browser.eval(&of("mail")).as_str().unwrap().contains("1 message is ready"), "it is not hidden");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_finding_about_dead_messages_leads_to_their_list() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x", "ID", "m"]);
    server.ask(&["DQ.BURY", "q", "m", "ERROR", "no such user"]);
    // Also for somebody who may change nothing, and sees nothing that would.
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    browser.open(&web.page(""));
    browser.until("Doctor:");
    let hidden = "[...document.querySelectorAll('.write')].every((one) => one.offsetParent === null)";
    browser.until_true("document.querySelectorAll('.queues td .write').length > 0");
    assert_eq!(browser.eval(hidden), true);
    browser.eval("document.querySelector('.findings').open = true");
    let finding =
        "[...document.querySelectorAll('.findings li')].find((one) => one.innerText.includes('died in 10 min'))";
    let shown = browser.eval(&format!("{finding}.innerText")).as_str().unwrap().to_owned();
    assert!(!shown.contains("dqctl"), "{shown}");
    browser.eval(&format!("{finding}.querySelector('.here a').click()"));
    browser.until_true("document.querySelector('.tabs [aria-current]')?.dataset.key === 'dead'");
    browser.until("no such user");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_finding_leads_to_a_queue_whose_name_is_no_text() {
    let server = Server::start();
    ok(&server, &["create", r"images:\xff", "--maxlen", "1"]);
    ok(&server, &["push", r"images:\xff", "x"]);
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    browser.open(&web.page(""));
    browser.until(r"images:\xff: it is full");
    browser.eval(
        "[...document.querySelectorAll('.findings a')].find((one) => one.innerText.startsWith('images')).click()",
    );
    browser.until("Full: 1 message at most");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn the_overview_says_how_many_messages_died_and_of_what() {
    let server = Server::start();
    shop(&server);
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    browser.open(&web.page(""));
    let words = "17 died in 10 min: card declined: order # (11 of them)";
    let shown =
        |of: &str| format!("[...document.querySelectorAll('{of}')].some((one) => one.innerText.includes('{words}'))");
    browser.until_true(&shown(".queues tr"));
    browser.until("Doctor:");
    browser.eval("document.querySelector('.findings > button').click()");
    browser.until_true(&shown(".findings li"));
    browser.open(&web.page("queue?queue=payments:capture"));
    browser.until(&format!("Messages die: {words}"));
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn findings_say_where_dead_messages_went_and_advise_what_the_page_lacks() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "orders", "DEADFORWARD", "QUEUE", "orders:dead"]);
    server.ask(&["DQ.PUSH", "orders", "x", "ID", "m"]);
    server.ask(&["DQ.PUSH", "idle", "x", "AT", "1700000000000"]);
    let web = Web::start(&server, &[]);
    // It is known that the message died since this look, and so how many did.
    web.read("/api/queue?queue=orders");
    server.ask(&["DQ.BURY", "orders", "m", "ERROR", "connection refused"]);
    eventually("it is seen", || web.read("/api/queue?queue=orders")["deaths"]["count"] == 1);
    let mut browser = Browser::start();
    browser.open(&web.page(""));
    browser.until("1 died in 10 min, moved to orders:dead.");
    browser.until("Start its consumers.");
    assert!(!browser.text().contains("dqctl info"), "{}", browser.text());
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn findings_say_when_they_were_true_and_are_looked_for_again_after_a_repair() {
    let server = Server::with(&["--appendonly", "yes"]);
    server.ask(&["DQ.CREATE", "mail"]);
    server.ask(&["DQ.PAUSE", "mail", "IN"]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page(""));
    browser.until("Doctor:");
    browser.eval("document.querySelector('.findings').open = true");
    browser.until("closed until it is resumed");
    let repaired = "document.querySelector('.findings summary')?.textContent.startsWith('Doctor') && !document.querySelector('.findings').textContent.includes('closed')";
    // Somebody else repairs it. From now on, nothing is looked for by itself.
    browser.eval("const now = Date.now; Date.now = () => window.still ?? now(); window.still = now(); 0");
    server.ask(&["DQ.RESUME", "mail"]);
    browser.until_true("[...document.querySelectorAll('.looked button')].some((one) => !one.ariaDisabled)");
    browser.choose("Look again", "Looked ");
    browser.until_true(repaired);
    // A change of the page is seen without a click, on the way back.
    server.ask(&["DQ.PAUSE", "mail", "IN"]);
    browser.choose("Look again", "closed until it is resumed");
    browser.open(&web.page("queue?queue=mail"));
    browser.choose("Open…", "Open mail?");
    browser.choose("Open", "Opened mail.");
    browser.open(&web.page(""));
    browser.until_true(repaired);
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_command_of_a_finding_is_copied_with_a_click() {
    let server = Server::start();
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    browser.open(&web.page(""));
    browser.until("Doctor: 1 critical");
    browser.eval("document.querySelector('.findings').open = true");
    let command = format!("redis-cli -h 127.0.0.1 -p {} CONFIG SET appendonly yes", server.port());
    browser.eval(
        "Object.defineProperty(navigator, 'clipboard', { value: { writeText: async (words) => { window.copied = words; } } }); 0",
    );
    browser.eval(&format!("document.querySelector('[aria-label=\"Copy {command}\"]').click()"));
    browser.until("Copied");
    assert_eq!(browser.eval("window.copied"), command.as_str());
    // Where a page may not copy, the command is selected.
    browser.eval("Object.defineProperty(navigator.clipboard, 'writeText', { value: undefined }); document.querySelector('.copy').click()");
    browser.until("Selected");
    assert_eq!(browser.eval("getSelection().toString()"), command.as_str());
    assert_eq!(browser.problem(), "");
}
