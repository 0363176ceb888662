//! Messages that `DEADFORWARD` has moved to another queue, on the page, in a headless Chromium, `make test-web`.

use super::chrome::Browser;
use super::Web;
use crate::support::{eventually, Server};

#[test]
#[ignore = "needs chromium: make test-web"]
fn letters_are_sent_back_by_cause_and_one_by_one() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "orders", "DEADFORWARD", "QUEUE", "orders:dead"]);
    for (id, error) in
        [("o-1", "card declined"), ("o-2", "card declined"), ("o-3", "no such user"), ("o-4", "no such user")]
    {
        server.ask(&["DQ.PUSH", "orders", "x", "ID", id]);
        server.ask(&["DQ.BURY", "orders", id, "ERROR", error]);
    }
    eventually("they are moved", || server.text(&["DQ.LEN", "orders:dead"]) == "4");
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    // Without a tab in the address it opens at them.
    browser.open(&format!("http://127.0.0.1:{}/#/queue?queue=orders:dead", web.port));
    browser.until("card declined");
    browser.until("from orders");
    browser.tab_to("2 card declined");
    browser.press(" ");
    browser.until("2 messages that these conditions select");
    browser.tab_to("Send back all 2");
    browser.press("Enter");
    browser.until("To the queues in which they died");
    browser.tab_to("Send back");
    browser.press("Enter");
    browser.until("Sent back: 2 messages.");
    assert_eq!(server.text(&["DQ.LEN", "orders", "ready"]), "2");
    browser.eval("document.querySelector('.causes [aria-pressed=true]').click()");
    browser.until("no such user");
    browser.tab_to("Select o-4");
    browser.press(" ");
    browser.tab_to("Send 1 selected back");
    browser.press("Enter");
    browser.until("Send 1 message of orders:dead back?");
    browser.tab_to("Send back");
    browser.press("Enter");
    browser.until("Sent back: 1 message.");
    assert_eq!(server.text(&["DQ.LEN", "orders", "ready"]), "3");
    assert_eq!(browser.problem(), "");
}
