//! The page in a headless Chromium, `make test-web`: what it shows, and what foreign pages can do to it.

use super::chrome::Browser;
use super::pictures::shop;
use super::Web;
use crate::dqctl::ok;
use crate::support::Server;
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
    let queue = "queue?queue=%3Cscript%3Edocument.body.id%3D%27owned%27%3C%2Fscript%3E%3Cimg+src%3Dx+onerror%3D%22document.body.id%3D%27owned%27%22%3E";
    for view in [
        "".to_owned(),
        queue.to_owned(),
        format!("{queue}&tab=dead"),
        format!("{queue}&tab=groups"),
        queue.replacen("queue", "message", 1) + "&id=dead",
        queue.replacen("queue", "message", 1) + "&id=travelling",
        "search?id=%3Cb%3Eid%3C%2Fb%3E".to_owned(),
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
fn the_page_says_that_the_server_is_down() {
    let mut server = Server::start();
    server.ask(&["DQ.PUSH", "mail", "x"]);
    let web = Web::start(&server, &[]);
    let url = format!("http://127.0.0.1:{}/", web.port);
    let shown = document(&url, &[]);
    assert!(shown.contains("mail") && shown.contains("read-only") && !shown.contains("cannot be reached"), "{shown}");
    server.kill();
    let shown = document(&url, &[]);
    assert!(shown.contains("cannot be reached"), "{shown}");
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
        <form id="form" method="post" target="f" action="{url}/api/pause" enctype="text/plain"><input name='{{"queue":"q","x":"' value='"}}'></form>
        <p id="result"></p>
        <script>
        const body = '{{"queue":"q"}}';
        const tries = [
          fetch("{url}/api/pause", {{ method: "POST", headers: {{ "X-DQ": "1" }}, body }}),
          fetch("{url}/api/pause", {{ method: "POST", body }}),
          fetch("{url}/api/messages?queue=q"),
          fetch("{url}/api/pause", {{ method: "POST", mode: "no-cors", body }}).then(() => {{ throw 0; }}),
        ];
        document.getElementById("form").submit();
        Promise.allSettled(tries).then((all) => document.getElementById("result").textContent = all.map((one) => one.status).join());
        </script>"#
    );
    let foreign = serve(attack);
    let shown = document(&foreign, &[]);
    assert!(shown.contains("<p id=\"result\">rejected,rejected,rejected,rejected</p>"), "{shown}");
    // A name that its owner has pointed here.
    let rebound = format!("http://evil.example:{}/api/messages?queue=q", web.port);
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
fn a_message_shows_what_travels_with_it() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x", "ID", "m", "HEADERS", "2", "trace", "1f", "constructor", ""]);
    for (error, checkpoint) in [("one", "40"), ("two", "{\"progress\": 70, \"row\": 7}")] {
        server.ask(&["DQ.POP", "q"]);
        server.ask(&["DQ.NACK", "q", "m", "NOCOUNT", "ERROR", error, "CHECKPOINT", checkpoint]);
        let web = Web::start(&server, &[]);
        let shown = document(&web.page("message?queue=q&id=m"), &[]);
        for text in ["Headers", "trace", "constructor", "1f", "Attempt 1", error, "Checkpoint"] {
            assert!(shown.contains(text), "{text}: {shown}");
        }
        let percent = if error == "one" { "40" } else { "70" };
        for text in [format!("value=\"{percent}\""), format!("Checkpoint: {percent} %")] {
            assert!(shown.contains(&text) && !shown.contains("[object"), "{text}: {shown}");
        }
    }
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_laptop_shows_charts_and_six_queues_below_the_findings_and_the_messages_of_a_queue() {
    let server = Server::start();
    shop(&server);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    let bottom = "document.querySelector('.queues tbody tr:nth-child(6)').getBoundingClientRect().bottom";
    browser.open(&web.page(""));
    browser.until("Doctor: 3 critical");
    browser.until_true("document.querySelectorAll('.queues tbody tr').length > 6");
    let bottom = browser.eval(bottom).as_f64().unwrap();
    assert!(bottom <= 800.0, "the sixth queue ends at {bottom}");
    let above = "document.querySelector('.charts').getBoundingClientRect().bottom < document.querySelector('.queues').getBoundingClientRect().top";
    assert_eq!(browser.eval(above), true, "how they developed is on the screen too");
    browser.open(&web.page("queue?queue=payments:capture&tab=inflight"));
    browser.until("capture-1018");
    let top = browser.eval("document.querySelector('.messages').getBoundingClientRect().top").as_f64().unwrap();
    assert!(top <= 540.0, "the first message begins at {top}");
    // Of the dead, that are many, more fit: a row has two lines.
    browser.open(&web.page("queue?queue=payments:capture&tab=dead"));
    browser.until("capture-1017");
    let highest =
        "Math.max(...[...document.querySelectorAll('.dead-list .messages li')].map((row) => row.offsetHeight))";
    let highest = browser.eval(highest).as_i64().unwrap();
    assert!(highest <= 56, "{highest}");
    let row = browser.eval("[...document.querySelectorAll('.dead-list .messages li')].find((row) => row.innerText.includes('capture-1017')).innerText");
    let row = row.as_str().unwrap();
    assert!(row.contains("died ") && row.contains("timeout after") && row.contains("\"order\""), "{row}");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn names_are_shown_as_the_command_line_takes_them() {
    let server = Server::start();
    let names = [r"tab\x09and\x5cx09", r"ends\xff\x5cx09\x0a", r"ü\xc2\x85"];
    for name in names {
        ok(&server, &["push", name, "x"]);
    }
    let web = Web::start(&server, &[]);
    let shown = document(&web.page(""), &[]);
    let listed = ok(&server, &["ls"]);
    for name in names {
        assert!(listed.contains(name) && shown.contains(name), "{name}: {listed}");
    }
}
