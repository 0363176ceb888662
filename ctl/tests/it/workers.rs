//! `dqctl work --config`: many queues in one file, which is read again at SIGHUP.

use crate::dqctl::{field, ok};
use crate::http::{get, Web};
use crate::support::{eventually, free_port, Server};
use crate::work::{is_alive, written, Work};

/// Writes the file.
fn configure(server: &Server, text: &str) -> String {
    let path = server.dir().join("workers.toml");
    // In one step, as an editor does it.
    std::fs::write(path.with_extension("new"), text).unwrap();
    std::fs::rename(path.with_extension("new"), &path).unwrap();
    path.to_string_lossy().into_owned()
}

/// A worker whose handler writes its process number to `PREFIX-ID`, and runs until there is a file `go-ID`.
fn worker(queue: &str, concurrency: usize, prefix: &str, more: &str) -> String {
    let script = format!("echo $$ > $DIR/{prefix}-$DQ_ID; while [ ! -e $DIR/go-$DQ_ID ]; do sleep 0.01; done");
    let command = format!("command = [\"sh\", \"-c\", '{script}']");
    format!("[[worker]]\nqueue = \"{queue}\"\nconcurrency = {concurrency}\n{command}\n{more}\n")
}

fn start(server: &Server, text: &str) -> Work {
    let path = configure(server, text);
    Work::logged(server, &["--config", &path])
}

fn log(server: &Server) -> String {
    written(server, "log.dqctl")
}

/// Writes the file, sends SIGHUP, and waits until the worker says something more.
fn reload(server: &Server, work: &Work, text: &str) -> String {
    configure(server, text);
    hang_up(server, work)
}

fn hang_up(server: &Server, work: &Work) -> String {
    let before = log(server).len();
    work.signal("HUP");
    eventually("it says what it did", || log(server)[before..].ends_with('\n'));
    log(server)[before..].to_owned()
}

fn push(server: &Server, queue: &str, ids: &[&str]) {
    for id in ids {
        ok(server, &["push", queue, "x", "--id", id]);
    }
}

fn go(server: &Server, id: &str) {
    std::fs::write(server.dir().join(format!("go-{id}")), "").unwrap();
}

/// How many handlers have begun, by the beginning of the names of their files.
fn begun(server: &Server, prefix: &str) -> usize {
    let prefix = format!("{prefix}-");
    let files = std::fs::read_dir(server.dir()).unwrap();
    files.filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().starts_with(&prefix)).count()
}

fn acked(server: &Server, queue: &str) -> u64 {
    server.client().queue::<()>(queue).info().unwrap().map_or(0, |info| info.totals.acked)
}

fn stop(work: Work) {
    work.signal("TERM");
    work.until_ended();
}

#[test]
fn a_file_names_the_workers_of_many_queues() {
    let (server, web) = (Server::start(), Web::start());
    let address = format!("127.0.0.1:{}", free_port());
    let text = format!(
        "url = \"{}\"\nlisten = \"{address}\"\n{}\n[[worker]]\nqueue = \"hooks\"\nurl = \"{}/hook\"\n\
         headers = {{ \"Content-Type\" = \"text/plain\" }}\nretry_on = [404]\n",
        server.url(),
        worker("mail", 2, "mail", "time-limit = \"1h\""),
        web.url
    );
    let path = configure(&server, &text);
    let mut command = crate::dqctl::without_server(&["work", "--config", &path]);
    command.env("DIR", server.dir());
    let work = Work::of(command);
    server.until_blocked(2);
    push(&server, "mail", &["a", "b"]);
    go(&server, "a");
    go(&server, "b");
    push(&server, "hooks", &["h"]);
    eventually("all are handled", || acked(&server, "mail") == 2 && acked(&server, "hooks") == 1);
    let request = web.requests().remove(0);
    assert!(
        request.path == "/hook"
            && request.headers.iter().any(|header| header.to_lowercase() == "content-type: text/plain")
    );
    eventually("both are counted", || {
        let (_, metrics) = get(&address, "/metrics").unwrap();
        ["{queue=\"mail\"} 2", "{queue=\"hooks\"} 1"]
            .iter()
            .all(|counted| metrics.contains(&format!("dq_worker_acked_total{counted}")))
    });
    assert_eq!(get(&address, "/healthz"), Some((200, "ok\n".to_owned())));
    assert_eq!(work.stop().code, 0);
}

#[test]
fn sighup_changes_workers_without_interrupting_the_others() {
    let server = Server::start();
    let same = worker("same", 1, "same", "");
    let work =
        start(&server, &[same.as_str(), &worker("gone", 1, "gone", ""), &worker("other", 1, "old", "")].concat());
    push(&server, "same", &["s1"]);
    push(&server, "gone", &["g1"]);
    push(&server, "other", &["o1"]);
    eventually("all work", || begun(&server, "same") + begun(&server, "gone") + begun(&server, "old") == 3);
    let said = reload(
        &server,
        &work,
        &[same.as_str(), &worker("other", 1, "new", ""), &worker("added", 1, "added", "")].concat(),
    );
    assert!(said.contains("1 workers started, 1 changed, 1 stopped"), "{said}");
    push(&server, "added", &["a1"]);
    push(&server, "gone", &["g2"]);
    push(&server, "other", &["o2"]);
    eventually("the new one works", || begun(&server, "added") == 1);
    // Nobody was interrupted, not even the handler of the queue that is gone.
    for file in ["same-s1", "gone-g1", "old-o1"] {
        assert!(is_alive(written(&server, file).trim()), "{file}");
    }
    ["s1", "g1", "o1", "o2", "a1"].iter().for_each(|id| go(&server, id));
    eventually("all are done", || {
        acked(&server, "same") == 1
            && acked(&server, "gone") == 1
            && acked(&server, "other") == 2
            && acked(&server, "added") == 1
    });
    // The changed one has its new command, and the removed one takes nothing.
    assert!(!written(&server, "new-o2").is_empty() && written(&server, "old-o2").is_empty());
    assert_eq!(field(&server, "gone", "g2", "attempt"), 0);
    stop(work);
}

#[test]
fn a_broken_file_keeps_the_old_workers_and_says_so() {
    let server = Server::start();
    let good = worker("q", 1, "run", "");
    let work = start(&server, &good);
    server.until_blocked(1);
    for (text, words) in [
        (format!("{good}hans = 3\n"), ["line 1", "--hans"]),
        ("[[worker]\n".to_owned(), ["line 1", "workers.toml"]),
        (String::new(), ["[[worker]]", "workers.toml"]),
        (
            "[[worker]]\nqueue = \"new\"\ncommand = [\"./no-such-program\"]\n".to_owned(),
            ["no-such-program", "not a program"],
        ),
    ] {
        let said = reload(&server, &work, &text);
        assert!(words.iter().all(|word| said.contains(word)) && said.contains("go on as before"), "{text}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    std::fs::remove_file(server.dir().join("workers.toml")).unwrap();
    let said = hang_up(&server, &work);
    assert!(said.contains("cannot be read") && said.contains("go on as before"), "{said}");
    go(&server, "m");
    push(&server, "q", &["m"]);
    eventually("the old worker works", || acked(&server, "q") == 1);
    let said = reload(&server, &work, &good);
    assert!(said.contains("0 workers started, 0 changed, 0 stopped"), "{said}");
    stop(work);
}
