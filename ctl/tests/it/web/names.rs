//! Long names: they are told apart by their ends, and copied whole.

use super::chrome::{Browser, Scheme, Screen};
use super::Web;
use crate::support::Server;

/// The letters of the links that can be seen: those that no box cuts and that are not in the place of an ellipsis.
const ENDS: &str = "(selector) => [...document.querySelectorAll(selector)].map((link) => { \
    const name = link.querySelector('.cut'); \
    const range = document.createRange(); range.selectNodeContents(name.lastElementChild); \
    const letters = range.getBoundingClientRect(); \
    const inside = [link, name].every((box) => letters.right <= box.getBoundingClientRect().right + 1) && letters.right <= innerWidth; \
    return inside && letters.width > 20 ? name.lastElementChild.textContent : 'cut: ' + name.textContent; }).join()";

fn ends(browser: &mut Browser, selector: &str) -> String {
    browser.eval(&format!("({ENDS})({selector:?})")).as_str().unwrap().to_owned()
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn long_names_that_differ_at_their_ends_are_told_apart() {
    let server = Server::start();
    let name = |at| format!("team00:service-invoice-renderer-eu-west:blue-and-green-deployment:queue-{at}");
    let id = |at| format!("customer-4711-of-the-northern-region-invoice-of-march-and-a-rather-long-suffix-{at}");
    for at in [1100, 1101] {
        server.ask(&["DQ.PUSH", &name(at), "x", "ID", &id(at), "GROUP", &id(at)]);
    }
    server.ask(&["DQ.PUSH", &name(1100), "x", "ID", &id(1101), "GROUP", &id(1101)]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    for screen in [Screen::Desktop, Screen::Phone] {
        browser.show(screen, Scheme::Light);
        browser.open(&web.page("?sort=name"));
        browser.until("2 queues");
        browser.until_true("document.querySelectorAll('.queues tbody .cut').length === 2");
        assert_eq!(ends(&mut browser, ".queues td.name a"), "yment:queue-1100,yment:queue-1101");
        // What is copied or found is the whole name.
        assert_eq!(browser.eval("document.querySelector('.queues td.name a').innerText"), name(1100));
        let copied = "(() => { getSelection().selectAllChildren(document.querySelector('.queues td.name a')); const text = getSelection().toString(); getSelection().removeAllRanges(); return text; })()";
        assert_eq!(browser.eval(copied), name(1100));
        for (tab, links) in [("ready", ".messages .line-one a"), ("groups", ".holders th a")] {
            browser.open(&web.page(&format!("queue?queue={}&tab={tab}", name(1100))));
            browser.until_true(&format!("document.querySelectorAll('{links} .cut').length === 2"));
            let shown = ends(&mut browser, links);
            assert!(
                shown.contains("long-suffix-1100") && shown.contains("long-suffix-1101") && !shown.contains("cut: "),
                "{tab}: {shown}"
            );
        }
        assert_eq!(browser.eval("document.documentElement.scrollWidth <= innerWidth"), true);
        browser.open("about:blank");
    }
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_name_that_fits_is_not_cut() {
    let server = Server::start();
    let id = "an-id-of-more-than-thirty-two-letters-1";
    server.ask(&["DQ.PUSH", "q", "x", "ID", id]);
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=q&tab=ready"));
    browser.until(id);
    let head = "(() => { const head = document.querySelector('.messages .cut').firstElementChild; return head.scrollWidth <= head.clientWidth; })()";
    assert_eq!(browser.eval(head), true);
}
