//! The page in a headless Chromium, `make test-web`: what it shows, and what foreign pages can do to it.

use super::chrome::{Browser, Scheme, Screen};
use super::pictures::shop;
use super::Web;
use crate::dqctl::{field, ok};
use crate::support::{eventually, Server};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread;

/// Opens an address, waits until the page has come to rest, and returns its document.
fn document(url: &str, options: &[&str]) -> String {
    let browser = std::env::var("DQ_BROWSER").unwrap_or_else(|_| "chromium".to_owned());
    let profile = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("browser-{}", std::process::id()));
    let mut command = Command::new(browser);
    // The sandbox does not start as root, and the pages are our own.
    command.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=6000", "--dump-dom"]);
    command.arg(format!("--user-data-dir={}", profile.display())).args(options).arg(url).stderr(Stdio::null());
    let output = command.output().expect("a browser: install chromium, or name one in DQ_BROWSER");
    let _ = std::fs::remove_dir_all(profile);
    String::from_utf8(output.stdout).expect("a document")
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn what_a_queue_holds_is_text_in_a_browser() {
    let server = Server::start();
    let markup = "<script>document.body.id='owned'</script><img src=x onerror=\"document.body.id='owned'\">";
    server.ask(&["DQ.PUSH", markup, markup, "ID", "<b>id</b>", "GROUP", markup]);
    server.ask(&["DQ.PUSH", markup, markup, "ID", "dead"]);
    server.ask(&["DQ.BURY", markup, "dead", "ERROR", markup]);
    server.ask(&["DQ.PUSH", markup, "x", "ID", "travelling", "PRIORITY", "9", "HEADERS", "1", markup, markup]);
    server.ask(&["DQ.POP", markup]);
    server.ask(&["DQ.NACK", markup, "travelling", "ERROR", markup, "CHECKPOINT", markup]);
    let web = Web::start(&server, &[]);
    let queue = "queue?queue=%3Cscript%3Edocument.body.id%3D%27owned%27%3C%2Fscript%3E\
                 %3Cimg+src%3Dx+onerror%3D%22document.body.id%3D%27owned%27%22%3E";
    for view in [
        "".to_owned(),
        queue.to_owned(),
        format!("{queue}&tab=dead"),
        format!("{queue}&tab=groups"),
        queue.replacen("queue", "message", 1) + "&id=dead",
        queue.replacen("queue", "message", 1) + "&id=travelling",
        "find?id=%3Cb%3Eid%3C%2Fb%3E".to_owned(),
    ] {
        let shown = document(&web.page(&view), &[]);
        assert!(shown.contains("&lt;script&gt;") || shown.contains("&lt;b&gt;id"), "{view}: {shown}");
        assert!(
            !shown.contains("id=\"owned\"") && !shown.contains("<img") && !shown.contains("<b>id"),
            "{view}: {shown}"
        );
    }
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_foreign_page_neither_reads_nor_writes() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "secret"]);
    let web = Web::writing(&server);
    let url = format!("http://127.0.0.1:{}", web.port);
    let attack = format!(
        r#"<iframe name="f"></iframe>
        <form id="form" method="post" target="f" action="{url}/api/do" enctype="text/plain">
          <input name='{{"act":"pause","queue":"q","x":"' value='"}}'>
        </form>
        <p id="result"></p>
        <script>
        const body = '{{"act":"pause","queue":"q"}}';
        const tries = [
          fetch("{url}/api/do", {{ method: "POST", headers: {{ "X-DQ": "1" }}, body }}),
          fetch("{url}/api/do", {{ method: "POST", body }}),
          fetch("{url}/api/view/queue?queue=q"),
          fetch("{url}/api/do", {{ method: "POST", mode: "no-cors", body }}).then(() => {{ throw 0; }}),
        ];
        document.getElementById("form").submit();
        const result = document.getElementById("result");
        Promise.allSettled(tries).then((all) => result.textContent = all.map((one) => one.status).join());
        </script>"#
    );
    let foreign = serve(attack);
    let shown = document(&foreign, &[]);
    assert!(shown.contains("<p id=\"result\">rejected,rejected,rejected,rejected</p>"), "{shown}");
    // A name that its owner has pointed here.
    let rebound = format!("http://evil.example:{}/api/view/queue?queue=q", web.port);
    let shown = document(&rebound, &["--host-resolver-rules=MAP evil.example 127.0.0.1"]);
    assert!(shown.contains("host name is not known") && !shown.contains("secret"), "{shown}");
    assert!(!server.client().queue::<()>("q").info().unwrap().unwrap().paused);
}

/// Serves a page on another port. Returns its address.
fn serve(page: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close",
                page.len()
            );
            let _ = write!(stream, "{head}\r\n\r\n{page}");
        }
    });
    url
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn dead_messages_are_redriven_by_keyboard_after_a_question() {
    let server = Server::start();
    for id in ["a", "b", "c"] {
        ok(&server, &["push", "mail", "x", "--id", id]);
        ok(&server, &["bury", "mail", id, "--error", if id == "c" { "refused" } else { "timeout" }]);
    }
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page(""));
    browser.until("mail");
    browser.press("Tab");
    browser.choose("mail", "timeout");
    browser.choose("2 timeout", "2 messages");
    browser.choose("Redrive all", "Redrive 2 dead messages");
    // Another option is asked about again before anything is done.
    browser.until("More options");
    browser.eval(
        "document.querySelector('dialog details').open = true; document.querySelector('dialog [name=count]').focus()",
    );
    browser.write("1");
    browser.press("Enter");
    browser.until("Redrive 1 dead message ");
    assert_eq!(server.text(&["DQ.LEN", "mail", "dead"]), "3");
    browser.press("Enter");
    browser.until("1 redriven");
    assert_eq!(server.text(&["DQ.LEN", "mail", "dead"]), "2");
    browser.press("Escape");
    browser.until("Queues");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn selected_messages_and_a_new_one_are_changed_in_the_same_dialog() {
    let server = Server::start();
    for id in ["a", "b"] {
        ok(&server, &["push", "mail", "x", "--id", id, "--in", "1h"]);
    }
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=mail&tab=delayed"));
    browser.until("2 messages");
    browser.eval("document.querySelector('[name=ids][value=b]').click()");
    browser.choose("Run now selected", "Promote the message b");
    browser.choose("Run now", "b");
    browser.until_true("!document.getElementById('dialog').open");
    assert_eq!(field(&server, "mail", "a", "state"), "delayed");
    assert_eq!(field(&server, "mail", "b", "state"), "ready");
    browser.choose("Push", "More options");
    browser.until_true("document.activeElement.name === 'payload'");
    browser.write("hello");
    browser.choose("Push", "Dismiss");
    eventually("it is pushed", || server.text(&["DQ.LEN", "mail", "ready"]) == "2");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn what_is_typed_open_or_focused_stays_while_the_page_is_refreshed() {
    let server = Server::start();
    ok(&server, &["push", "mail", "x"]);
    ok(&server, &["push", "other", "x"]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page(""));
    browser.until("neither the AOF");
    browser.eval("document.querySelector('.finding').open = true; document.querySelector('[name=contains]').focus()");
    browser.write("mai");
    browser.until_true("!document.querySelector('main').innerText.includes('other')");
    ok(&server, &["push", "mail", "x"]);
    browser.until_true(
        "[...document.querySelectorAll('[id=\"queue/mail\"] td')].some((cell) => cell.innerText.trim() === '2')",
    );
    assert_eq!(browser.eval("document.activeElement.value"), "mai");
    assert_eq!(browser.eval("document.querySelector('.finding').open"), true);
    assert!(browser.eval("location.hash").as_str().unwrap().starts_with("#/?contains=mai"));
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn nothing_is_wider_than_a_phone() {
    let server = Server::start();
    shop(&server);
    let long = "a".repeat(90);
    ok(&server, &["push", &long, &"payload".repeat(60), "--id", &"i".repeat(90), "--group", &"g".repeat(80)]);
    ok(&server, &["bury", &long, &"i".repeat(90), "--error", &"e".repeat(300)]);
    ok(&server, &["push", &long, "x", "--group", &"g".repeat(80)]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.show(Screen::Phone, Scheme::Dark);
    let id = "i".repeat(90);
    for view in [
        String::new(),
        "consumers".to_owned(),
        format!("queue?queue={long}&tab=dead"),
        format!("queue?queue={long}&tab=groups"),
        format!("queue?queue={long}&tab=details"),
        format!("message?queue={long}&id={id}"),
        "queue?queue=payments:capture&tab=consumers".to_owned(),
        "queue?queue=reports&tab=schedules".to_owned(),
    ] {
        browser.open("about:blank");
        browser.open(&web.page(&view));
        browser.until_true("document.querySelector('main h1') !== null");
        assert_eq!(browser.eval("document.documentElement.scrollWidth"), 390, "{view}");
    }
    browser.eval("[...document.querySelectorAll('button')].find((one) => one.innerText.startsWith('Declare')).click()");
    browser.until("More options");
    assert_eq!(browser.eval("document.documentElement.scrollWidth"), 390);
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_token_is_asked_for_and_kept_for_the_tab() {
    let server = Server::start();
    ok(&server, &["push", "mail", "x"]);
    let web = Web::start(&server, &["--token", "s3cret"]);
    let mut browser = Browser::start();
    browser.open(&web.page(""));
    browser.until("Token");
    browser.until_true("document.activeElement.id === 'token'");
    browser.write("wrong");
    browser.press("Enter");
    browser.until("was not accepted");
    browser.write("s3cret");
    browser.press("Enter");
    browser.until("mail");
}
