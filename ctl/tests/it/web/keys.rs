//! The keys of the page in a headless Chromium, `make test-web`.

use super::chrome::Browser;
use super::pictures::shop;
use super::Web;
use crate::support::Server;

/// The row that has the focus.
const ROW: &str = "document.activeElement.closest('tr, li')?.querySelector('a, b').innerText";

#[test]
#[ignore = "needs chromium: make test-web"]
fn rows_are_walked_opened_and_left_with_keys_alone() {
    let server = Server::start();
    shop(&server);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page("?sort=name&contains=a"));
    browser.until("payments:capture");
    browser.write("j");
    assert_eq!(browser.eval(ROW), "mail:receipts");
    browser.write("jj");
    browser.press("ArrowUp");
    browser.press("ArrowDown");
    browser.write("k");
    browser.write("j");
    assert_eq!(browser.eval(ROW), "payments:capture");
    browser.press("Enter");
    browser.until("17 messages");
    // A cause, then a message that died of it.
    browser.write("j");
    assert_eq!(browser.eval(ROW), "11");
    browser.press("Enter");
    browser.until("11 messages that these conditions select");
    browser.write("jj");
    browser.until_true(&format!("{ROW}.startsWith('capture-')"));
    let id = browser.eval(ROW);
    browser.press("Enter");
    browser.until("Edit and push again…");
    // The way up keeps conditions, tabs and filters, and goes on from the row.
    browser.press("Escape");
    browser.until("11 messages that these conditions select");
    browser.until_true(&format!("{ROW} === {id}"));
    // Then to all causes, and only then to the queues.
    browser.press("Escape");
    browser.until("17 messages");
    browser.until_true("!document.body.innerText.includes('that these conditions select')");
    browser.press("Backspace");
    browser.until_true("location.hash === '#/?sort=name&contains=a'");
    browser.until_true(&format!("{ROW} === 'payments:capture'"));
    browser.press("Escape");
    assert_eq!(browser.eval("location.hash"), "#/?sort=name&contains=a", "there is nothing above");
    // Other lists lead to a queue or to a message as well, and are gone back to.
    for (list, row, shown) in [
        ("consumers", "worker-2", "Only messages of consumer worker-2"),
        ("search?id=capture-1018", "payments:capture / ", "Give back…"),
    ] {
        browser.open(&web.page(list));
        browser.until(row);
        browser.until_true("document.activeElement === document.getElementById('main')");
        let is_found = (0..9).any(|_| {
            browser.write("j");
            browser.eval(ROW).as_str().is_some_and(|found| found.starts_with(row))
        });
        assert!(is_found, "no row {row}");
        browser.press("Enter");
        browser.until(shown);
        browser.press("Escape");
        browser.until_true(&format!("location.hash === '#/{list}'"));
    }
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn keys_are_letters_where_text_is_typed_and_a_list_says_what_they_do() {
    let server = Server::start();
    shop(&server);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page(""));
    browser.until("payments:capture");
    browser.eval("document.getElementById('contains').focus()");
    browser.write("jk?");
    browser.press("Backspace");
    assert_eq!(browser.eval("document.getElementById('contains').value"), "jk");
    browser.open(&web.page("queue?queue=payments:capture&tab=inflight"));
    browser.until("capture-1018");
    browser.write("j");
    browser.write("?");
    browser.until("else back to the list that led here, or up to the queue and to all queues");
    browser.write("j");
    browser.press("Escape");
    browser.until_true("!document.getElementById('dialog').open");
    // Escape has closed the list, and no more than that.
    assert_eq!(browser.eval(ROW), "capture-1018");
    browser.choose("Push…", "Push to payments:capture");
    browser.write("j");
    browser.press("Escape");
    browser.until_true("!document.getElementById('dialog').open");
    assert_eq!(browser.eval("document.querySelector('h1').innerText"), "payments:capture");
    assert_eq!(browser.problem(), "");
}
