//! Messages that are filtered and changed together on the page: those that `DEADFORWARD` has moved to another queue, and those of
//! other states. In a headless Chromium, `make test-web`.

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
    browser.choose("Send back all 2", "To the queue in which they died (orders)");
    browser.choose("Send back", "Sent back: 2 messages.");
    assert_eq!(server.text(&["DQ.LEN", "orders", "ready"]), "2");
    browser.eval("document.querySelector('.causes [aria-pressed=true]').click()");
    browser.until("no such user");
    browser.tab_to("Select o-4");
    browser.press(" ");
    browser.choose("Send 1 selected back", "Send 1 message of orders:dead back?");
    browser.choose("Send back", "Sent back: 1 message.");
    assert_eq!(server.text(&["DQ.LEN", "orders", "ready"]), "3");
    browser.eval("[...document.querySelectorAll('.messages a')].find((link) => link.innerText === 'o-3').click()");
    browser.until("Ready · died in orders: Buried");
    browser.choose("Send back…", "Send 1 message of orders:dead back?");
    browser.choose("Send back", "The queue has no message of this id now");
    assert_eq!(server.text(&["DQ.LEN", "orders", "ready"]), "4");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn messages_that_wait_are_buried_by_selection_and_by_a_filter() {
    let server = Server::start();
    for number in 0..6 {
        let delay = if number < 4 { "0" } else { "3600000" };
        server.ask(&["DQ.PUSH", "q", &format!("job {number}"), "ID", &format!("m-{number}"), "DELAY", delay]);
    }
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    for (tab, id) in [("ready", "m-0"), ("delayed", "m-4")] {
        browser.open(&web.page(&format!("queue?queue=q&tab={tab}")));
        browser.until(id);
        browser.tab_to(&format!("Select {id}"));
        browser.press(" ");
        browser.choose("Bury 1 selected…", "Those that a consumer has taken meanwhile are left alone.");
        browser.choose("Bury", "Buried: 1 message.");
    }
    browser.open(&web.page("queue?queue=q&tab=ready&find=1&text=job"));
    browser.until("3 messages that these conditions select");
    browser.choose("Bury all 3…", "Dead, but kept, and can be redriven: 3 ready messages with “job” in id");
    browser.eval("document.getElementById('field-error').value = 'redriven by mistake'");
    browser.choose("Bury", "Buried: 3 messages.");
    assert_eq!(server.text(&["DQ.LEN", "q", "dead"]), "5");
    assert_eq!(web.read("/api/message?queue=q&id=m-3")["message"]["error"], "redriven by mistake");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn letters_of_one_queue_are_chosen_by_a_click_and_kept_by_the_address() {
    let server = Server::start();
    for (queue, number) in [("orders", 60), ("mail", 2)] {
        server.ask(&["DQ.CREATE", queue, "DEADFORWARD", "QUEUE", "all:dead"]);
        let die =
            "for i = 1, tonumber(ARGV[2]) do redis.call('DQ.BURY', ARGV[1], redis.call('DQ.PUSH', ARGV[1], 'x')) end";
        server.ask(&["EVAL", die, "0", queue, &number.to_string()]);
    }
    eventually("they are moved", || server.text(&["DQ.LEN", "all:dead"]) == "62");
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=all:dead&tab=letters"));
    let counted =
        "[...document.querySelectorAll('.origins button')].map((one) => `${one.innerText}`.replace(/\\s+/g, '')).join()";
    browser.until_true(&format!("{counted} === 'orders60,mail2'"));
    browser.eval("document.querySelectorAll('.origins button')[1].click()");
    browser.until("2 messages that these conditions select");
    browser.until("Open mail");
    assert_eq!(browser.eval(counted), "orders60,mail2", "another one can be chosen");
    let link = browser.eval("location.href").as_str().unwrap().to_owned();
    assert!(link.contains("from=mail"), "{link}");
    browser.open("about:blank");
    browser.open(&link);
    browser.until("2 messages that these conditions select");
    browser.choose("Send back all 2", "To the queue in which they died (mail)");
    browser.until("2 dead letters that died in “mail”");
    browser.choose("Send back", "Sent back: 2 messages.");
    assert_eq!(server.text(&["DQ.LEN", "mail", "ready"]), "2");
    assert_eq!(server.text(&["DQ.LEN", "all:dead"]), "60");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn ready_messages_are_filtered_and_cancelled_together() {
    let server = Server::start();
    for number in 0..6 {
        let tenant = if number % 2 == 0 { "acme" } else { "other" };
        server.ask(&["DQ.PUSH", "q", &format!("{{\"tenant\":\"{tenant}\"}}"), "ID", &format!("m-{number}")]);
    }
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&format!("http://127.0.0.1:{}/#/queue?queue=q&tab=ready", web.port));
    browser.until("m-5");
    browser.choose("Filter these messages", "Like this for at least");
    browser.eval("document.getElementById('dead-text').focus()");
    browser.write("acme");
    browser.until("3 messages that these conditions select");
    assert!(browser.eval("location.hash").as_str().unwrap().contains("text=acme"), "the address has the condition");
    browser.choose("Cancel all 3", "3 ready messages with “acme” in id, error, payload or group");
    browser.choose("Cancel", "Cancelled: 3 messages.");
    assert_eq!(server.text(&["DQ.LEN", "q", "ready"]), "3");
    assert_eq!(browser.problem(), "");
}
