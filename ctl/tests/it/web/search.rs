//! The search of the page in a headless Chromium, `make test-web`.

use super::chrome::Browser;
use super::Web;
use crate::support::Server;

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_search_says_that_it_is_under_way() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x", "ID", "m"]);
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    browser.open(&web.page(""));
    browser.until("1 queue");
    browser.eval("const ask = window.fetch; window.fetch = async (path, options) => { if (path.startsWith('/api/search')) await new Promise((go) => { window.answerNow = go; }); return ask(path, options); }");
    browser.open(&web.page("search?id=m"));
    browser.until("Searching…");
    browser.until_true("typeof window.answerNow === 'function'");
    browser.eval("window.answerNow()");
    browser.until("1 message found.");
    // The field has what is searched for, and no stale text once another view is shown.
    let field = "document.getElementById('search-id').value";
    assert_eq!(browser.eval(field), "m");
    browser.open(&web.page(""));
    browser.until_true(&format!("{field} === ''"));
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_search_shows_more_messages_on_demand() {
    let server = Server::start();
    server.ask(&["EVAL", "for i = 1, 120 do redis.call('DQ.PUSH', 'q', 'x', 'ID', 'order-' .. i) end", "0"]);
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    browser.open(&web.page("search?id=order"));
    browser.until("50 shown, more exist.");
    assert!(!browser.text().contains("time was up"), "{}", browser.text());
    for shown in ["100 shown, more exist.", "120 messages found."] {
        browser.tab_to("Show more");
        browser.press("Enter");
        browser.until(shown);
    }
    assert!(!browser.text().contains("Show more"), "{}", browser.text());
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn the_key_of_the_search_works_from_a_checkbox() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x", "ID", "m"]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=q"));
    browser.until("clients waiting");
    browser.eval("document.querySelector('.select input').focus()");
    browser.write("/");
    assert_eq!(browser.eval("document.activeElement.id"), "search-id");
    // In a text it is a letter.
    browser.write("/");
    assert_eq!(browser.eval("document.activeElement.value"), "/");
}
