//! What an operator does with the page, in a headless Chromium, `make test-web`.

use super::chrome::{Browser, Scheme, Screen};
use super::pictures::shop;
use super::Web;
use crate::dqctl::ok;
use crate::support::{eventually, Server};

fn page(web: &Web, view: &str) -> String {
    format!("http://127.0.0.1:{}/#/{view}", web.port)
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn the_page_says_that_the_module_is_not_loaded() {
    let mut server = Server::without_module();
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    browser.open(&page(&web, ""));
    browser.until("The module dq is not loaded");
    assert!(!browser.text().contains("no queue yet"), "{}", browser.text());
    server.kill();
    server.boot();
    browser.until("There is no queue yet");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn rows_in_trouble_are_coloured_and_first() {
    let server = Server::start();
    shop(&server);
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    browser.open(&page(&web, ""));
    browser.until("Doctor:");
    let rows = "[...document.querySelectorAll('.queues tbody tr')].map((row) => row.className + ' ' + row.innerText.replace(/\\s+/g, ' ')).join('\\n')";
    eventually("they are sorted", || browser.eval(rows).as_str().unwrap().starts_with("bad exports:csv full paused "));
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
fn dead_messages_of_a_cause_are_redriven_by_keyboard() {
    let server = Server::start();
    shop(&server);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&page(&web, ""));
    browser.until("payments:capture");
    browser.tab_to("payments:capture");
    browser.press("Enter");
    browser.until("Oldest ready message");
    browser.tab_to("Dead");
    browser.press("Enter");
    browser.until("card declined: order #");
    browser.tab_to("11 card declined");
    browser.press(" ");
    browser.until("11 messages that these conditions select");
    browser.tab_to("Redrive all 11");
    browser.press("Enter");
    browser.until("11 dead messages with the error");
    // No is an answer too.
    browser.press("Escape");
    browser.until_true("!document.getElementById('dialog').open");
    assert_eq!(server.text(&["DQ.LEN", "payments:capture", "dead"]), "17");
    assert_eq!(browser.tab_to("Redrive all 11"), 0, "the focus is back");
    browser.press("Enter");
    browser.until("11 dead messages with the error");
    browser.tab_to("Redrive");
    browser.press("Enter");
    browser.until("Redriven: 11 messages.");
    assert_eq!(server.text(&["DQ.LEN", "payments:capture", "dead"]), "6");
    // A condition that cannot be understood must not select more.
    let disabled = "[...document.querySelectorAll('.bulk button')].every((button) => button.hidden || button.disabled)";
    browser.eval("document.getElementById('dead-older').focus()");
    browser.write("2x");
    browser.until("Dead for at least: a time with a unit");
    assert_eq!(browser.eval(disabled), true);
    browser.eval("const field = document.getElementById('dead-older'); field.value = ''; field.dispatchEvent(new Event('input'))");
    browser.until_true(&format!("!({disabled})"));
    // One of the others is selected and deleted.
    browser.eval("document.querySelector('.causes [aria-pressed=true]').click()");
    browser.until("6 messages");
    browser.tab_to("Select capture-1017");
    browser.press(" ");
    browser.eval("document.querySelector('.bulk .danger').click()");
    browser.until("Delete 1 message of payments:capture?");
    // What cannot be undone has its focus on the way back.
    assert_eq!(browser.eval("document.activeElement.innerText"), "Back");
    browser.tab_to("Delete");
    browser.press("Enter");
    browser.until("Deleted: 1 message.");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn the_way_back_and_a_link_keep_conditions_of_the_dead() {
    let server = Server::start();
    shop(&server);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&page(&web, "queue?queue=payments:capture&tab=dead"));
    browser.until("card declined: order #");
    browser.tab_to("6 timeout after");
    browser.press("Enter");
    browser.until("6 messages that these conditions select");
    browser.eval("document.getElementById('dead-text').focus()");
    browser.write("-1005");
    browser.until("1 message that these conditions select");
    browser.eval("document.querySelector('.messages .line-one a').click()");
    browser.until("Edit and push again…");
    browser.eval("history.back()");
    browser.until("1 message that these conditions select");
    assert_eq!(browser.eval("document.getElementById('dead-text').value"), "-1005");
    let link = browser.eval("location.href");
    browser.open("about:blank");
    browser.open(link.as_str().unwrap());
    browser.until("1 message that these conditions select");
    // Each condition is in the question, whatever it does.
    browser.eval("document.getElementById('dead-attempts').focus()");
    browser.write("0");
    browser.until_true("location.hash.includes('attempts=0')");
    for verb in ["Delete", "Redrive"] {
        let click = format!("[...document.querySelectorAll('.bulk button')].find((one) => one.innerText.startsWith('{verb} it')).click()");
        browser.eval(&click);
        browser.until(&format!("{verb} 1 dead message of payments:capture?"));
        let question = browser.eval("document.getElementById('dialog').innerText");
        let question = question.as_str().unwrap();
        for words in ["with the error “timeout after", "” and with “-1005” in id", "and after at least 0 attempts"]
        {
            assert!(question.contains(words), "{words}: {question}");
        }
        browser.press("Escape");
        browser.until_true("!document.getElementById('dialog').open");
    }
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_queue_whose_messages_die_opens_at_its_dead() {
    let server = Server::start();
    for id in ["ready", "dead"] {
        server.ask(&["DQ.PUSH", "q", "x", "ID", id]);
    }
    server.ask(&["DQ.BURY", "q", "dead"]);
    server.ask(&["DQ.PUSH", "q", "x", "ID", "held", "RETRIES", "0", "PRIORITY", "9"]);
    server.ask(&["DQ.POP", "q", "LEASE", "1"]);
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    let shows = |tab: &str| format!("document.querySelector('.tabs [aria-current]')?.dataset.key === '{tab}'");
    browser.open(&page(&web, "queue?queue=q"));
    browser.until_true(&shows("dead"));
    browser.until("(lease expired)");
    browser.until("Retries used up, the last lease expired without an ack");
    browser.open(&page(&web, "queue?queue=q&tab=ready"));
    browser.until_true(&shows("ready"));
    // Also if the view is there already.
    browser.open(&page(&web, "queue?queue=q"));
    browser.until_true(&shows("dead"));
    browser.open(&page(&web, "queue?queue=q&tab=ready"));
    browser.until_true(&shows("ready"));
    browser.tab_to("Messages die");
    browser.press("Enter");
    browser.until_true(&shows("dead"));
    browser.open(&page(&web, ""));
    browser.until_true("document.querySelector('.chip a')?.innerText === 'messages die'");
    browser.eval("document.querySelector('.chip a').click()");
    browser.until_true(&shows("dead"));
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_dead_message_is_edited_and_pushed_as_a_new_one() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "{\"user\":7}", "ID", "m", "PRIORITY", "5", "HEADERS", "1", "trace", "1f"]);
    for attempt in ["one", "two"] {
        server.ask(&["DQ.ALTER", "q", "ERRORS", "5"]);
        server.ask(&["DQ.POP", "q"]);
        server.ask(&["DQ.NACK", "q", "m", "DELAY", "0", "ERROR", attempt, "CHECKPOINT", "{\"row\":70}"]);
    }
    server.ask(&["DQ.BURY", "q", "m", "ERROR", "three"]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&page(&web, "message?queue=q&id=m"));
    browser.until("Errors of past attempts");
    let shown = browser.text();
    for text in [
        "three",
        "Attempt 2",
        "two",
        "Attempt 1",
        "one",
        "trace",
        "1f",
        "\"row\": 70",
        "\"user\": 7",
        "Download",
        "Delete…",
    ] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    assert!(!shown.contains("Cancel…"), "{shown}");
    browser.tab_to("Edit and push again…");
    browser.press("Enter");
    browser.until("Push m again as a new message");
    browser.eval("document.getElementById('field-payload').value = '{\"user\":8}'");
    browser.eval("document.getElementById('field-id').value = 'm2'");
    browser.tab_to("Push");
    browser.press("Enter");
    browser.until("Pushed: m2.");
    let copy = web.read("/api/message?queue=q&id=m2")["message"].clone();
    assert_eq!(
        (&copy["payload"], &copy["priority"], &copy["headers"]["trace"]),
        (&"{\"user\":8}".into(), &5.into(), &"1f".into())
    );
    assert_eq!(web.read("/api/message?queue=q&id=m")["message"]["state"], "dead");
    // Once more, and the dead one is deleted.
    browser.tab_to("Edit and push again…");
    browser.press("Enter");
    browser.until("is deleted after the push");
    browser.eval(
        "document.getElementById('field-old').value = 'delete'; document.getElementById('field-id').value = 'm3'",
    );
    browser.eval("document.querySelector('dialog button.primary').click()");
    browser.until("Pushed: m3. Deleted: m.");
    browser.until("The queue has no message of this id now");
    assert_eq!(web.read("/api/message?queue=q&id=m3")["message"]["payload"], "{\"user\":7}");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn large_json_is_formatted_in_part_and_downloaded_whole() {
    let server = Server::start();
    let payload = format!("{{\"rows\":[{}0]}}", "{\"name\":\"ann\",\"age\":7},".repeat(90_000));
    server.ask(&["DQ.PUSH", "q", &payload, "ID", "large"]);
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    browser.open(&page(&web, "message?queue=q&id=large"));
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
    browser.open(&page(&web, "queue?queue=q&tab=groups"));
    browser.until("ann");
    browser.tab_to("Pause… ann");
    browser.press("Enter");
    browser.until("Other groups go on.");
    browser.tab_to("Pause");
    browser.press("Enter");
    browser.until("Paused the group ann.");
    browser.until("paused until it is resumed");
    browser.tab_to("Resume… ann");
    browser.press("Enter");
    browser.until("Its messages are delivered again, at once.");
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
    browser.open(&page(&web, "queue?queue=q&tab=batches"));
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
    browser.open(&page(&web, "queue?queue=q"));
    browser.until("pushes are refused until it is opened");
    browser.tab_to("Open…");
    browser.press("Enter");
    browser.until("Producers can push again.");
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
    browser.open(&page(&web, "queue?queue=payments:capture&tab=consumers"));
    browser.until("worker-1");
    browser.tab_to("worker-2");
    browser.press("Enter");
    browser.until("Only messages of consumer worker-2");
    browser.until_true("document.querySelectorAll('.messages li').length === 2");
    browser.open(&page(&web, "queue?queue=payments:capture&tab=consumers"));
    browser.until("worker-1");
    browser.tab_to("Release… worker-1");
    browser.press("Enter");
    browser.until("Ready again at once, as if their leases had expired: 6 messages of payments:capture");
    browser.tab_to("Release");
    browser.press("Enter");
    browser.until("Released: 6 messages.");
    assert_eq!(server.text(&["DQ.LEN", "payments:capture", "inflight"]), "2");
    browser.open(&page(&web, "queue?queue=webhooks:2&tab=groups"));
    browser.until("customer-2");
    browser.tab_to("customer-2");
    browser.press("Enter");
    browser.until("Only messages of group customer-2.");
    browser.until_true("document.querySelectorAll('.messages li').length === 5");
    browser.tab_to("Ready");
    browser.press("Enter");
    browser.until("No message of group customer-2 is ready.");
    // Schedules: the next run first, a filter, and a run now.
    browser.open(&page(&web, "queue?queue=reports&tab=schedules"));
    browser.until("nightly-revenue");
    let ids = "[...document.querySelectorAll('.messages .line-one a')].map((link) => link.innerText).join()";
    assert_eq!(browser.eval(ids), "heartbeat,nightly-revenue");
    browser.eval("document.getElementById('schedule-filter').focus()");
    browser.write("0 3");
    browser.until_true(&format!("{ids} === 'nightly-revenue'"));
    browser.tab_to("Run now… nightly-revenue");
    browser.press("Enter");
    browser.until("The delayed message becomes due at once.");
    browser.press("Enter");
    browser.until("Due now: nightly-revenue.");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_phone_shows_three_queues_and_nothing_beyond_its_edge() {
    let server = Server::start();
    shop(&server);
    let long = "an-id-".repeat(40);
    server.ask(&["DQ.PUSH", "payments:capture", "x", "ID", &long, "PRIORITY", "99"]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.show(Screen::Phone, Scheme::Dark);
    let wider = "document.documentElement.scrollWidth > innerWidth";
    browser.open(&page(&web, ""));
    browser.until("Doctor:");
    browser.until_true("document.querySelectorAll('.queues tbody tr').length > 3");
    // Below the bars of the browser, which take about 180 pixels of the screen.
    let whole = "[...document.querySelectorAll('.queues tbody tr')].filter((row) => row.getBoundingClientRect().bottom < innerHeight - 180).length";
    let whole = browser.eval(whole).as_i64().unwrap();
    assert!(whole >= 3, "{whole} queues");
    assert_eq!(browser.eval(wider), false);
    for tab in ["ready", "dead", "consumers", "groups", "schedules", "details"] {
        browser.open(&page(&web, &format!("queue?queue=payments:capture&tab={tab}")));
        browser.until("clients waiting");
        assert_eq!(browser.eval(wider), false, "{tab}");
    }
    browser.open(&page(&web, "queue?queue=payments:capture&tab=ready"));
    browser.until_true("document.querySelector('.messages li') !== null");
    let one_line = "document.querySelector('.line-one a').getBoundingClientRect().height < 30";
    assert_eq!(browser.eval(one_line), true);
    browser.open(&page(&web, &format!("message?queue=payments:capture&id={long}")));
    browser.until("Payload");
    let height = "document.querySelector('h1').getBoundingClientRect().height";
    let before = browser.eval(height).as_f64().unwrap();
    browser.eval("document.querySelector('h1 button').click()");
    let after = browser.eval(height).as_f64().unwrap();
    assert!(before < 40.0 && after > 80.0, "{before} {after}");
    assert_eq!(browser.eval(wider), false);
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
    browser.open(&page(&web, ""));
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
fn a_server_that_dies_is_said_and_comes_back_by_itself() {
    let mut server = Server::start();
    server.ask(&["DQ.PUSH", "mail", "x"]);
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    browser.open(&page(&web, ""));
    browser.until("mail");
    server.kill();
    browser.until("The server of the queues cannot be reached");
    // What was there stays, and says of when it is.
    assert!(browser.text().contains("mail") && browser.problem().contains("What is shown is of"), "{}", browser.text());
    server.boot();
    server.ask(&["DQ.PUSH", "after", "x"]);
    browser.until("after");
    eventually("the problem is gone", || browser.problem().is_empty());
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_finding_leads_to_a_queue_whose_name_is_no_text() {
    let server = Server::start();
    ok(&server, &["create", r"images:\xff", "--maxlen", "1"]);
    ok(&server, &["push", r"images:\xff", "x"]);
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    browser.open(&page(&web, ""));
    browser.until(r"images:\xff: it is full");
    browser.eval(
        "[...document.querySelectorAll('.findings a')].find((one) => one.innerText.startsWith('images')).click()",
    );
    browser.until("Full: 1 message at most");
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
    browser.open(&page(&web, ""));
    browser.until("1 queue");
    // The delivery began a minute ago, for the page.
    browser.eval(
        "const ask = window.fetch; window.fetch = async (path, options) => { \
         const text = await (await ask(path, options)).text(); \
         return new Response(text.replace(/\"oldest-inflight\":\\d+/g, '\"oldest-inflight\":61000').replace(/(\"since\":)(\\d+)/g, (_, name, at) => name + (at - 61000))); }",
    );
    browser.open(&page(&web, "queue?queue=q"));
    browser.until("; 1 in flight, the oldest for 1 min 1 s, with encoder-1");
    browser.until_true("document.querySelector('.tabs [aria-current]')?.dataset.key === 'inflight'");
    browser.tab_to("Late");
    browser.press("Enter");
    browser.until_true("document.querySelector('.tabs [aria-current]')?.dataset.key === 'consumers'");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn the_key_of_the_search_works_from_a_checkbox() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x", "ID", "m"]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&page(&web, "queue?queue=q"));
    browser.until("clients waiting");
    browser.eval("document.querySelector('.select input').focus()");
    browser.write("/");
    assert_eq!(browser.eval("document.activeElement.id"), "search-id");
    // In a text it is a letter.
    browser.write("/");
    assert_eq!(browser.eval("document.activeElement.value"), "/");
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
    browser.open(&page(&web, "queue?queue=q&tab=details"));
    browser.until("rejected-full, at least");
    browser.until("duplicates, at least");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_queue_that_is_not_there_can_only_be_pushed_to() {
    let server = Server::start();
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&page(&web, "queue?queue=q"));
    browser.until("Not there");
    let buttons = "[...document.querySelectorAll('.queue .buttons button')].filter((one) => one.offsetParent).map((one) => one.innerText).join()";
    assert_eq!(browser.eval(buttons), "Push…");
    server.ask(&["DQ.PUSH", "q", "x"]);
    browser.until("clients waiting");
    assert_eq!(browser.eval(buttons), "Push…,Pause…,Close…,Redrive…,Run delayed now…,Purge…");
    assert_eq!(browser.problem(), "");
}
