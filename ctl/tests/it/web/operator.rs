//! What an operator does with the page, in a headless Chromium, `make test-web`.

use super::chrome::Browser;
use super::pictures::shop;
use super::Web;
use crate::support::Server;

#[test]
#[ignore = "needs chromium: make test-web"]
fn large_json_is_formatted_in_part_and_downloaded_whole() {
    let server = Server::start();
    let payload = format!("{{\"rows\":[{}0]}}", "{\"name\":\"ann\",\"age\":7},".repeat(90_000));
    server.ask(&["DQ.PUSH", "q", &payload, "ID", "large"]);
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    browser.open(&web.page("message?queue=q&id=large"));
    browser.until("The first 1.0 MiB are shown. Download it to see all of it.");
    let shown = browser.eval("document.querySelector('.payload pre').textContent.slice(0, 80)");
    assert!(shown.as_str().unwrap().starts_with("{\n  \"rows\": [\n    {\n      \"name\": \"ann\","), "{shown}");
    browser.eval("window.saved = 0; URL.createObjectURL = (blob) => { window.saved = blob.size; return '#'; }; URL.revokeObjectURL = () => undefined");
    browser.tab_to("Download");
    browser.press("Enter");
    browser.until_true(&format!("window.saved === {}", payload.len()));
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_group_is_paused_and_resumed_by_keyboard() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x", "GROUP", "ann"]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=q&tab=groups"));
    browser.until("ann");
    browser.choose("Pause… ann", "Other groups go on.");
    browser.choose("Pause", "Paused the group ann.");
    browser.until("paused until it is resumed");
    browser.choose("Resume… ann", "Its messages are delivered again, at once.");
    browser.press("Enter");
    browser.until("Resumed the group ann.");
    browser.until_true("!document.body.innerText.includes('paused until')");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn batches_are_shown_with_their_progress() {
    let server = Server::start();
    for id in ["a", "b", "c", "d"] {
        server.ask(&["DQ.PUSH", "q", "x", "ID", id, "BATCH", "import<7>"]);
    }
    server.ask(&["DQ.POP", "q"]);
    server.ask(&["DQ.ACK", "q", "a"]);
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=q&tab=batches"));
    browser.until("import<7>");
    browser.until("1 of 4");
    browser.until("open");
    browser.until_true("document.querySelector('td progress').value === 0.25");
    server.ask(&["DQ.BATCH", "q", "import<7>", "THEN", "<b>bind</b>", "ID", "bind-7"]);
    browser.until("bind-7: <b>bind</b>");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_closed_queue_is_opened_by_keyboard() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q"]);
    server.ask(&["DQ.PAUSE", "q", "IN"]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=q"));
    browser.until("pushes are refused until it is opened");
    browser.choose("Open…", "Producers can push again.");
    browser.press("Enter");
    browser.until("Opened q.");
    browser.until_true("!document.body.innerText.includes('Open…')");
    server.ask(&["DQ.PUSH", "q", "x"]);
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn consumers_are_released_and_groups_are_links() {
    let server = Server::start();
    shop(&server);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=payments:capture&tab=consumers"));
    browser.until("worker-1");
    browser.choose("worker-2", "Only messages of consumer worker-2");
    browser.until_true("document.querySelectorAll('.messages li').length === 2");
    browser.open(&web.page("queue?queue=payments:capture&tab=consumers"));
    browser.until("worker-1");
    browser.choose(
        "Release… worker-1",
        "Ready again at once, as if their leases had expired: 6 messages of payments:capture",
    );
    browser.choose("Release", "Released: 6 messages.");
    assert_eq!(server.text(&["DQ.LEN", "payments:capture", "inflight"]), "2");
    browser.open(&web.page("queue?queue=webhooks:2&tab=groups"));
    browser.until("customer-2");
    browser.choose("customer-2", "Only messages of group customer-2.");
    browser.until_true("document.querySelectorAll('.messages li').length === 5");
    browser.choose("Ready", "No message of group customer-2 is ready.");
    // Schedules: the next run first, a filter, and a run now.
    browser.open(&web.page("queue?queue=reports&tab=schedules"));
    browser.until("nightly-revenue");
    let ids = "[...document.querySelectorAll('.messages .line-one a')].map((link) => link.innerText).join()";
    assert_eq!(browser.eval(ids), "heartbeat,nightly-revenue");
    browser.eval("document.getElementById('schedule-filter').focus()");
    browser.write("0 3");
    browser.until_true(&format!("{ids} === 'nightly-revenue'"));
    browser.choose("Run now… nightly-revenue", "The delayed message becomes due at once.");
    browser.press("Enter");
    browser.until("Due now: nightly-revenue.");
    browser.open(&web.page("message?queue=reports&id=heartbeat"));
    browser.choose("Cancel…", "and the schedule makes no more runs.");
    browser.choose("Cancel schedule", "Removed: heartbeat.");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_queue_is_deleted_after_a_question_that_says_what_it_holds() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "old", "x"]);
    server.ask(&["DQ.PUSH", "old", "x", "DELAY", "3600000"]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=old&tab=details"));
    browser.choose("Delete the queue…", "with its messages: 1 ready, 1 delayed.");
    browser.choose("Delete the queue", "Deleted the queue old.");
    browser.until("There is no queue of this name");
    assert_eq!(server.text(&["EXISTS", "old"]), "0");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn the_schedule_that_is_late_by_most_comes_first() {
    let server = Server::start();
    for (place, id) in ["c", "a", "e", "b", "d"].into_iter().enumerate() {
        server.ask(&["DQ.SCHEDULE", "q", id, "x", "EVERY", "3600000"]);
        server.ask(&["DQ.RESCHEDULE", "q", id, "AT", &format!("170000000000{place}")]);
    }
    server.ask(&["DQ.SCHEDULE", "q", "next", "x", "EVERY", "3600000"]);
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=q&tab=schedules"));
    browser.until("6 schedules");
    let ids = "[...document.querySelectorAll('.messages .line-one a')].map((link) => link.innerText).join()";
    assert_eq!(browser.eval(ids), "c,a,e,b,d,next");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_queue_that_hangs_says_who_holds_its_messages() {
    let server = Server::start();
    for id in ["held", "waits"] {
        server.ask(&["DQ.PUSH", "q", "x", "ID", id, "AT", "1700000000000"]);
    }
    server.ask(&["DQ.POP", "q", "LEASE", "3600000", "AS", "encoder-1"]);
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    browser.open(&web.page(""));
    browser.until("1 queue");
    // The delivery began a minute ago, for the page.
    browser.eval(
        "const ask = window.fetch; window.fetch = async (path, options) => { \
         const text = await (await ask(path, options)).text(); \
         return new Response(text.replace(/\"oldest-inflight\":\\d+/g, '\"oldest-inflight\":61000').replace(/(\"since\":)(\\d+)/g, (_, name, at) => name + (at - 61000))); }",
    );
    browser.open(&web.page("queue?queue=q"));
    browser.until("; 1 in flight, the oldest for 1 min 1 s, with encoder-1");
    browser.until_true("document.querySelector('.tabs [aria-current]')?.dataset.key === 'inflight'");
    browser.tab_to("Late");
    browser.press("Enter");
    browser.until_true("document.querySelector('.tabs [aria-current]')?.dataset.key === 'consumers'");
    // So does one at its limit in flight, although others are ready.
    server.ask(&["DQ.ALTER", "q", "MAXINFLIGHT", "1"]);
    browser.open(&web.page("queue?queue=q"));
    browser.until("At its limit in flight: 1 message at most, the oldest for 1 min 1 s, with encoder-1");
    browser.until_true("document.querySelector('.tabs [aria-current]')?.dataset.key === 'inflight'");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_queue_with_dead_messages_says_how_long_they_are_kept_and_leads_to_them() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q", "DEADTTL", "86400000", "DEADLEN", "50"]);
    for id in ["waits", "dead"] {
        server.ask(&["DQ.PUSH", "q", "x", "ID", id]);
    }
    server.ask(&["DQ.BURY", "q", "dead"]);
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    browser.open(&web.page(""));
    browser.until("1 queue");
    // It died long ago, for the page.
    browser.eval(
        "const ask = window.fetch; window.fetch = async (path, options) => { \
         const text = await (await ask(path, options)).text(); \
         return new Response(text.replace(/\"conditions\":\\[\\[.*?\\]\\]/g, '\"conditions\":[[\"dead\",\"note\"]]')); }",
    );
    browser.open(&web.page("queue?queue=q&tab=ready"));
    browser.until("Dead: 1 message, kept until it is redriven or deleted, for at most 1 d, at most 50 of them");
    browser.tab_to("Dead: 1 message");
    browser.press("Enter");
    browser.until_true("document.querySelector('.tabs [aria-current]')?.dataset.key === 'dead'");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn totals_that_a_restart_may_begin_again_are_a_lower_bound() {
    let mut server = Server::with(&["--appendonly", "yes", "--appendfsync", "always"]);
    server.ask(&["DQ.CREATE", "q", "MAXLEN", "1"]);
    server.ask(&["DQ.PUSH", "q", "x", "ID", "m"]);
    assert!(server.try_ask(&["DQ.PUSH", "q", "x"]).is_err());
    server.kill();
    server.boot();
    let web = Web::start(&server, &[]);
    assert_eq!(web.read("/api/queue?queue=q")["info"]["rejected-full"], 0);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=q&tab=details"));
    browser.until("rejected-full, at least");
    browser.until("duplicates, at least");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_queue_that_is_not_there_can_only_be_pushed_to() {
    let server = Server::start();
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=q"));
    browser.until("Not there");
    let buttons = "[...document.querySelectorAll('.queue .buttons button')].filter((one) => one.offsetParent).map((one) => one.innerText).join()";
    assert_eq!(browser.eval(buttons), "Push…");
    server.ask(&["DQ.PUSH", "q", "x"]);
    browser.until("clients waiting");
    assert_eq!(browser.eval(buttons), "Push…,Pause…,Close…,Redrive…,Run delayed now…,Purge…");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn what_a_host_holds_in_all_queues_is_found_and_released() {
    let server = Server::start();
    for (queue, consumer) in [("mail", "a@host-1"), ("sms", "a@host-2"), ("sms", "b@host-2"), ("fax", "c@host-2")] {
        server.ask(&["DQ.PUSH", queue, "x", "ID", consumer]);
        server.ask(&["DQ.POP", queue, "LEASE", "3600000", "AS", consumer]);
    }
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page(""));
    browser.until("3 queues");
    browser.choose("Consumers", "4 rows, one for each consumer of a queue.");
    browser.eval("document.getElementById('contains').focus()");
    browser.write("HOST-2");
    browser.until("3 rows");
    browser.choose("b@host-2", "Only messages of consumer b@host-2.");
    browser.eval("history.back()");
    browser.until("3 rows");
    browser.choose("Release… c@host-2", "1 message of fax. Do this only if the consumer is gone");
    browser.choose("Release", "Released: 1 message.");
    browser.until("2 rows");
    // A page that could not read all queues says so.
    browser.eval(
        "const ask = window.fetch; window.fetch = async (path, options) => \
         new Response((await (await ask(path, options)).text()).replace('\"read\":3', '\"read\":1'))",
    );
    browser.until("2 of 3 queues were not read, so there may be more.");
    assert_eq!(browser.problem(), "");
}
