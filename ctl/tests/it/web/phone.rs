//! The page on a phone and by keyboard, in a headless Chromium, `make test-web`.

use super::chrome::{Browser, Scheme, Screen};
use super::pictures::shop;
use super::Web;
use crate::support::{eventually, Server};

/// A queue with long names in each of its tabs.
fn full() -> Server {
    let server = Server::start();
    let long = "a-name-that-has-no-end-".repeat(5);
    server.ask(&["DQ.CREATE", "q", "RETAIN", "3600000", "GROUPRATE", "1", "3600000"]);
    for id in ["one", "two", "three", "four"] {
        server.ask(&["DQ.PUSH", "q", "x", "ID", id, "GROUP", &long, "BATCH", &long, "AT", "1700000000000"]);
    }
    for id in ["held", "done"] {
        server.ask(&["DQ.PUSH", "q", "x", "ID", id, "AT", "1600000000000"]);
    }
    server.ask(&["DQ.PUSH", "q", "x", "ID", "paused", "GROUP", "paused"]);
    server.ask(&["DQ.PAUSE", "q", "GROUP", "paused", "FOR", "3600000"]);
    server.ask(&["DQ.POP", "q", "COUNT", "3", "LEASE", "3600000", "AS", &long]);
    server.ask(&["DQ.ACK", "q", "done"]);
    server.ask(&["DQ.BURY", "q", "four", "ERROR", &long]);
    server.ask(&["DQ.PUSH", "q", "x", "ID", "later", "DELAY", "3600000"]);
    server.ask(&["DQ.SCHEDULE", "q", &long, "x", "EVERY", "3600000"]);
    server
}

/// How many cells and buttons of a table are beyond the edge.
const BEYOND: &str = "[...document.querySelectorAll('.holders td, .holders button')].filter((node) => node.getBoundingClientRect().right > innerWidth).length";

#[test]
#[ignore = "needs chromium: make test-web"]
fn every_tab_of_a_queue_fits_a_phone() {
    let server = full();
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.show(Screen::Phone, Scheme::Light);
    for (tab, shown) in [
        ("ready", ".messages li"),
        ("delayed", ".messages li"),
        ("inflight", ".messages li"),
        ("dead", ".messages li"),
        ("done", ".messages li"),
        ("consumers", ".holders tbody tr"),
        ("schedules", ".messages li"),
        ("groups", ".holders tbody tr"),
        ("batches", ".holders tbody tr"),
        ("details", ".details dd"),
    ] {
        browser.open(&web.page(&format!("queue?queue=q&tab={tab}")));
        browser.until_true(&format!(
            "document.querySelector('.tabs [aria-current]')?.dataset.key === '{tab}' && document.querySelector('{shown}') !== null"
        ));
        let width = browser.eval("document.documentElement.scrollWidth").as_i64().unwrap();
        assert!(width <= 390, "{tab}: {width}");
        // Nothing is cut by what it is in either.
        assert_eq!(browser.eval(BEYOND), 0, "{tab}");
    }
    // Nor are the consumers of all queues, some of which have no name.
    server.ask(&["DQ.PUSH", &"a-queue-that-has-no-end-".repeat(5), "x"]);
    server.ask(&["DQ.POP", &"a-queue-that-has-no-end-".repeat(5), "LEASE", "3600000"]);
    browser.open(&web.page("consumers"));
    browser.until("no name (pops without AS)");
    let width = browser.eval("document.documentElement.scrollWidth").as_i64().unwrap();
    assert!(width <= 390, "{width}");
    assert_eq!(browser.eval(BEYOND), 0);
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_phone_shows_messages_before_charts() {
    let server = full();
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    for screen in [Screen::Phone, Screen::Sideways] {
        browser.show(screen, Scheme::Light);
        browser.open(&web.page("queue?queue=q&tab=ready"));
        browser.until_true("document.querySelector('.messages li') !== null");
        let above = "document.querySelector('.messages').getBoundingClientRect().bottom < document.querySelector('.charts').getBoundingClientRect().top";
        assert_eq!(browser.eval(above), true);
        browser.open(&web.page(""));
        browser.until("1 queue");
        assert_eq!(browser.eval(&above.replace(".messages", ".queues")), true);
        browser.open("about:blank");
    }
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn tabs_beyond_the_edge_are_hinted_at() {
    let server = full();
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.show(Screen::Phone, Scheme::Light);
    let cut = "document.querySelector('.tabs')?.className";
    let arrows = "['before', 'after'].map((side) => getComputedStyle(document.querySelector('.tabs'), `::${side}`).content).join(' ')";
    for (tab, edges, shown) in [
        ("ready", "cut-right", "none \"›\""),
        ("consumers", "cut-left cut-right", "\"‹\" \"›\""),
        ("details", "cut-left", "\"‹\" none"),
    ] {
        browser.open(&web.page(&format!("queue?queue=q&tab={tab}")));
        browser.until_true(&format!("{cut}.split(' ').slice(1).sort().join(' ') === '{edges}'"));
        assert_eq!(browser.eval(arrows), shown, "{tab}");
        browser.open("about:blank");
    }
    // A tab that a link has chosen is brought into view.
    for (from, to) in [("details", "inflight"), ("ready", "groups")] {
        browser.open(&web.page(&format!("queue?queue=q&tab={from}")));
        browser.until_true(&format!("document.querySelector('.tabs [aria-current]')?.dataset.key === '{from}'"));
        browser.eval(&format!("document.querySelector('.tabs').scrollLeft = '{from}' === 'ready' ? 0 : 9999"));
        browser.open(&web.page(&format!("queue?queue=q&tab={to}")));
        browser.until_true(&format!("(() => {{ const tab = document.querySelector('.tabs [aria-current]'); const at = tab.getBoundingClientRect(); return tab.dataset.key === '{to}' && at.left > 0 && at.right < innerWidth; }})()"));
    }
    browser.open("about:blank");
    browser.show(Screen::Desktop, Scheme::Light);
    browser.open(&web.page("queue?queue=q&tab=details"));
    browser.until("clients waiting");
    browser.until_true(&format!("{cut} === 'tabs'"));
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_queue_says_which_group_holds_its_messages() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "gp", "x", "GROUP", "ann"]);
    server.ask(&["DQ.PAUSE", "gp", "GROUP", "ann"]);
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    browser.open(&web.page(""));
    browser.until_true("document.querySelector('.chip')?.innerText === 'groups held'");
    browser.open(&web.page("queue?queue=gp"));
    browser.until("Groups held: group ann is paused until it is resumed");
    // What to do about it is there, not in a terminal.
    assert!(!browser.text().contains("dqctl"), "{}", browser.text());
    browser.tab_to("Groups held");
    browser.press("Enter");
    browser.until_true("document.querySelector('.tabs [aria-current]')?.dataset.key === 'groups'");
    server.ask(&["DQ.RESUME", "gp", "GROUP", "ann"]);
    server.ask(&["DQ.PAUSE", "gp", "GROUP", "ann", "FOR", "3600000"]);
    browser.until("Groups held: group ann is paused, resumes in 59 min");
    server.ask(&["DQ.RESUME", "gp", "GROUP", "ann"]);
    browser.until_true("!document.body.innerText.includes('Groups held')");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_queue_says_how_many_of_its_groups_are_paused() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x"]);
    server.ask(&["DQ.PAUSE", "q", "GROUP", "ann"]);
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=q&tab=ready"));
    browser.until("Groups paused: 1");
    browser.tab_to("Groups paused: 1");
    server.ask(&["DQ.PAUSE", "q", "GROUP", "ben"]);
    browser.until("Groups paused: 2");
    // Another condition takes the place of the one above. The link is still the same one, with the focus.
    server.ask(&["DQ.PAUSE", "q"]);
    browser.until("Paused: until it is resumed");
    browser.press("Enter");
    browser.until_true("document.querySelector('.tabs [aria-current]')?.dataset.key === 'groups'");
    for group in ["ann", "ben"] {
        server.ask(&["DQ.RESUME", "q", "GROUP", group]);
    }
    browser.until_true("!document.body.innerText.includes('Groups paused')");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_queue_opens_at_the_messages_that_it_has() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "dying", "x", "ID", "m"]);
    server.ask(&["DQ.BURY", "dying", "m", "ERROR", "no such user"]);
    server.ask(&["DQ.PUSH", "later", "x", "ID", "m2", "DELAY", "3600000"]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    let tab = "document.querySelector('.tabs [aria-current]')?.dataset.key";
    browser.open(&web.page("queue?queue=dying"));
    browser.until("no such user");
    assert_eq!(browser.eval(tab), "dead");
    // Who asks for the ready ones gets them.
    browser.open(&web.page("queue?queue=dying&tab=ready"));
    browser.until_true(&format!("{tab} === 'ready'"));
    browser.until_true("document.querySelector('.empty:not([hidden])') !== null");
    browser.open(&web.page("queue?queue=later"));
    browser.until_true(&format!("{tab} === 'delayed'"));
    browser.until("m2");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn the_dead_that_are_moved_away_are_said_to_be_elsewhere() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "orders", "DEADFORWARD", "QUEUE", "orders:dead"]);
    server.ask(&["DQ.PUSH", "orders", "x", "ID", "m"]);
    server.ask(&["DQ.POP", "orders"]);
    server.ask(&["DQ.BURY", "orders", "m", "ERROR", "no such user"]);
    eventually("it is moved", || server.text(&["DQ.LEN", "orders:dead"]) == "1");
    let web = Web::start(&server, &[]);
    eventually("it has seen the queue", || web.read("/api/queues?contains=orders")["total"] == 2);
    server.ask(&["DQ.PUSH", "orders", "x", "ID", "n"]);
    server.ask(&["DQ.BURY", "orders", "n"]);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=orders&tab=dead"));
    browser.until("they go to QUEUE orders:dead.");
    let target = "[...document.querySelectorAll('.condition a')].map((link) => link.innerText + link.getAttribute('href')).join()";
    assert_eq!(browser.eval(target), "orders:dead#/queue?queue=orders%3Adead");
    assert!(browser.text().contains("payloads · the dead are moved to orders:dead"));
    browser.until("Messages die: at least 1 died in 10 min, moved to orders:dead; 2 since it was created");
    // The sentence leads to them, and in that queue, the list says why they died.
    browser.eval("document.querySelector('.conditions a').click()");
    browser.until_true("location.hash === '#/queue?queue=orders%3Adead&tab=letters&from=orders'");
    browser.until("2 messages that these conditions select");
    browser.until("Rejected or buried: no such user");
    // After how many attempts, of which only that queue knows how many it allowed, and in which queue.
    let facts = "[...document.querySelectorAll('.messages .facts')].map((facts) => facts.innerText).join()";
    assert_eq!(browser.eval(facts), "from orders,1 attempt · from orders");
    browser.until_true(
        "document.querySelector('.origins').innerText.replace(/\\s+/g, ' ') === 'They died in orders 2 Open orders'",
    );
    browser.open(&web.page("message?queue=orders:dead&id=m"));
    browser.until("Ready · died in orders: Rejected or buried · due ");
    browser.until_true("/\\d+ \\(20.* UTC\\)/.test(document.querySelector('.travelling')?.innerText ?? '')");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn the_focus_stays_near_a_button_that_has_nothing_left_to_do() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x", "ID", "m"]);
    server.ask(&["DQ.BURY", "q", "m"]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=q&tab=ready"));
    browser.until("Messages die");
    let redrive =
        "[...document.querySelectorAll('.queue .head .buttons button')].find((one) => one.innerText === 'Redrive…')";
    browser.until_true(&format!("{redrive}.disabled === false"));
    browser.choose("Redrive…", "Redrive dead messages of q?");
    browser.choose("Redrive", "Redriven: 1 message.");
    browser.until_true(&format!("{redrive}.disabled"));
    browser.until_true("document.activeElement.closest('[aria-label=\"Actions on this queue\"]') !== null");
    assert_eq!(browser.eval("document.activeElement.innerText"), "Push…");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_queue_is_closed_and_a_message_pushed_with_all_its_options() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q"]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=q"));
    browser.until("Open");
    browser.choose("Push…", "More options");
    for (field, value) in
        [("id", "m"), ("headers", r#"{"trace":"1f"}"#), ("retries", "2"), ("lease", "2m"), ("ttl", "x")]
    {
        browser.eval(&format!("document.getElementById('field-{field}').value = '{value}'"));
    }
    browser.eval("document.querySelector('dialog button.primary').click()");
    // What is wrong is shown, although its field was not.
    browser.until("TTL (optional): A time with a unit");
    assert_eq!(browser.eval("document.activeElement.id"), "field-ttl");
    browser.eval("document.getElementById('field-ttl').value = '1h'");
    browser.eval("document.querySelector('dialog button.primary').click()");
    browser.until("Pushed: m.");
    let pushed = web.read("/api/message?queue=q&id=m")["message"].clone();
    assert_eq!((&pushed["retries"], &pushed["lease"], &pushed["ttl"]), (&2.into(), &120_000.into(), &3_600_000.into()));
    assert_eq!(pushed["headers"]["trace"], "1f");
    browser.choose("Close…", "so it can be drained");
    browser.press("Enter");
    browser.until("Closed q.");
    browser.until("pushes are refused until it is opened");
    assert!(server.try_ask(&["DQ.PUSH", "q", "x"]).is_err());
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_phone_shows_what_is_wrong_before_what_can_be_done() {
    let server = Server::start();
    let long = "eu-central:customers:notifications:by-mail-and-by-text";
    server.ask(&["DQ.PUSH", long, "x", "AT", "1700000000000"]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.show(Screen::Phone, Scheme::Light);
    browser.open(&web.page(&format!("queue?queue={long}")));
    browser.until("No consumer");
    let place = |of: &str, edge: &str| format!("document.querySelector('{of}').getBoundingClientRect().{edge}");
    let (said, actions) = (place(".conditions li", "bottom"), place(".queue .buttons", "top"));
    assert_eq!(browser.eval(&format!("{said} < {actions}")), true);
    // The buttons take two rows, and the name is whole.
    let height = format!("{} - {actions}", place(".queue .buttons", "bottom"));
    assert!(browser.eval(&height).as_f64().unwrap() <= 100.0);
    assert_eq!(browser.eval("(() => { const name = document.querySelector('h1 button'); return name.scrollWidth <= name.clientWidth && name.scrollHeight <= name.clientHeight + 2; })()"), true);
    let cut = "[...document.querySelectorAll('.queue .buttons button')].filter((one) => one.scrollWidth > one.clientWidth).length";
    assert_eq!(browser.eval(cut), 0);
    assert_eq!(browser.eval("document.documentElement.scrollWidth"), 390);
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
    browser.open(&web.page(""));
    browser.until("Doctor:");
    browser.until_true("document.querySelectorAll('.queues tbody tr').length > 3");
    // Below the bars of the browser, which take about 180 pixels of the screen.
    let whole = "[...document.querySelectorAll('.queues tbody tr')].filter((row) => row.getBoundingClientRect().bottom < innerHeight - 180).length";
    let whole = browser.eval(whole).as_i64().unwrap();
    assert!(whole >= 3, "{whole} queues");
    assert_eq!(browser.eval(wider), false);
    for tab in ["ready", "dead", "consumers", "groups", "schedules", "details"] {
        browser.open(&web.page(&format!("queue?queue=payments:capture&tab={tab}")));
        browser.until("clients waiting");
        assert_eq!(browser.eval(wider), false, "{tab}");
    }
    browser.open(&web.page("queue?queue=payments:capture&tab=ready"));
    browser.until_true("document.querySelector('.messages li') !== null");
    let one_line = "document.querySelector('.line-one a').getBoundingClientRect().height < 30";
    assert_eq!(browser.eval(one_line), true);
    browser.open(&web.page(&format!("message?queue=payments:capture&id={long}")));
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
fn cards_and_causes_of_long_words_fit_a_phone() {
    let server = Server::start();
    let long = "a-name-that-has-no-end-".repeat(8);
    for _ in 0..12 {
        server.ask(&["DQ.PUSH", &long, "x", "AT", "1700000000000"]);
    }
    server.ask(&["DQ.CREATE", "q", "DEADLEN", "-1"]);
    let error = "connect to the database server of the northern region: timed out";
    for (id, error) in [("a", error), ("b", error), ("c", "another one")] {
        server.ask(&["DQ.PUSH", "q", "x", "ID", id]);
        server.ask(&["DQ.BURY", "q", id, "ERROR", error]);
    }
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.show(Screen::Phone, Scheme::Light);
    browser.open(&web.page(""));
    browser.until("messages die");
    let beyond = "[...document.querySelectorAll('.queues td')].filter((cell) => { const card = cell.parentElement.getBoundingClientRect(); return cell.getBoundingClientRect().right > card.right || cell.scrollWidth > cell.clientWidth + 1; }).map((cell) => cell.innerText).join()";
    browser.until_true("document.querySelectorAll('.queues tbody tr').length === 2");
    assert_eq!(browser.eval(beyond), "");
    assert_eq!(browser.eval("document.documentElement.scrollWidth"), 390);
    browser.open(&web.page("queue?queue=q&tab=dead"));
    browser.until(error);
    let cut = "[...document.querySelectorAll('.cause')].filter((cause) => cause.scrollHeight > cause.clientHeight || cause.scrollWidth > cause.clientWidth).length";
    assert_eq!(browser.eval(cut), 0);
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn the_choices_of_a_question_are_whole_on_a_phone() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x", "ID", "m"]);
    server.ask(&["DQ.BURY", "q", "m"]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.show(Screen::Phone, Scheme::Light);
    // 40 pixels are the border, the padding and the arrow.
    let cut = "(() => { const ruler = document.createElement('canvas').getContext('2d'); \
        return [...document.querySelectorAll('dialog select')].flatMap((select) => { ruler.font = getComputedStyle(select).font; \
        return [...select.options].map((option) => option.text).filter((words) => ruler.measureText(words).width > select.clientWidth - 40); }).join(); })()";
    for (view, action) in [("message?queue=q&id=m", "Edit and push again…"), ("queue?queue=q&tab=dead", "Push…")] {
        browser.open(&web.page(view));
        browser.choose(action, "More options");
        browser.eval("document.querySelector('dialog details').open = true");
        assert_eq!(browser.eval(cut), "", "{action}");
        browser.press("Escape");
    }
}
