//! The files in `contrib/` match `dqctl`.

use crate::dqctl::{ok, run, without_server};
use crate::export::Export;
use crate::http::get;
use crate::support::{eventually, free_port, Process, Server};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn contrib(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../contrib").join(path)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(contrib(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The metrics of a queue in which everything happens.
fn page(server: &Server) -> String {
    for id in ["acked", "dead"] {
        ok(server, &["push", "q", "x", "--id", id]);
    }
    ok(server, &["push", "q", "x", "--in", "1h"]);
    server.ask(&["DQ.POP", "q", "NOACK"]);
    server.ask(&["DQ.BURY", "q", "dead"]);
    Export::start(server, &[]).metrics()
}

/// The names of metrics in a text: `dq_` and what follows.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("dq_")).map(str::to_owned).collect()
}

/// The values that a text gives to a label: `state="ready"`, or `state=~"ready|delayed"`.
fn values(text: &str, label: &str) -> BTreeSet<String> {
    // A label of alerts, which Prometheus makes.
    let text = text.replace("alertstate", "");
    let after = |operator: &str| {
        let pattern = format!("{label}{operator}\"");
        let quoted = text.split(&pattern).skip(1).filter_map(|rest| rest.split('"').next()).collect::<Vec<_>>();
        quoted.into_iter().flat_map(|values| values.split('|')).map(str::to_owned).collect::<Vec<_>>()
    };
    after("=").into_iter().chain(after("=~")).filter(|value| !value.starts_with('$')).collect()
}

/// All texts of a JSON value that have one of these keys.
fn texts(json: &Json, keys: &[&str], found: &mut String) {
    match json {
        Json::Object(fields) => {
            for (key, value) in fields {
                if let (true, Some(text)) = (keys.contains(&key.as_str()), value.as_str()) {
                    found.push_str(text);
                    found.push('\n');
                }
                texts(value, keys, found);
            }
        }
        Json::Array(items) => items.iter().for_each(|item| texts(item, keys, found)),
        _ => {}
    }
}

fn dashboard() -> (Json, String) {
    let dashboard: Json = serde_json::from_str(&read("grafana/dq.json")).expect("JSON");
    let mut queries = String::new();
    texts(&dashboard, &["expr", "query", "definition"], &mut queries);
    (dashboard, queries)
}

#[test]
fn dashboard_and_alerts_name_only_what_export_serves() {
    let server = Server::start();
    let page = page(&server);
    let (_, queries) = dashboard();
    let served: BTreeSet<String> =
        page.lines().filter(|line| !line.starts_with('#')).flat_map(|line| names(line).into_iter().take(1)).collect();
    let samples: String = page.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    // An alert may speak of commands and parameters in its description.
    let rules: String = read("prometheus/dq.rules.yml")
        .lines()
        .filter(|line| !["summary:", "description:"].iter().any(|key| line.contains(key)))
        .map(|line| format!("{line}\n"))
        .collect();
    for (file, text) in [("dashboard", queries), ("alerts", rules), ("tests", read("prometheus/dq.rules.test.yml"))] {
        let named = names(&text);
        assert!(named.len() >= 8, "{file}: {named:?}");
        for name in named {
            assert!(served.contains(&name), "{file}: {name} is not in {served:?}");
        }
        for label in ["state", "event"] {
            for value in values(&text, label) {
                assert!(values(&samples, label).contains(&value), "{file}: {label}={value}");
            }
        }
    }
}

/// The words of a file that are options, and the command before them.
#[test]
fn units_and_containers_use_options_that_exist() {
    for (file, command) in [
        ("systemd/mail.env", "work"),
        ("systemd/dqctl-work@.service", "work"),
        ("systemd/dqctl-export.service", "export"),
        ("docker/compose.yml", ""),
        ("kubernetes/worker.yaml", ""),
        ("kubernetes/export.yaml", ""),
    ] {
        let lines = read(file);
        let lines = lines.lines().filter(|line| !line.starts_with('#'));
        for line in lines.filter(|line| {
            ["DQ_WORK=", "DQ_EXPORT=", "ExecStart=", "  command: [", "  args: ["].iter().any(|key| line.contains(key))
        }) {
            let command =
                if command.is_empty() { line.split(['[', ',']).nth(1).expect("a command").trim() } else { command };
            let help = run(without_server(&[command, "--help"]));
            assert_eq!(help.code, 0, "{file}: {line}");
            let own = line.split(" -- ").next().unwrap_or_default();
            let words = own.split([' ', '"', ',', '=', '[']).filter(|word| word.starts_with("--") && word.len() > 2);
            for option in words {
                assert!(help.out.contains(option), "{file}: {option}");
            }
        }
    }
}

#[test]
#[ignore = "needs promtool: make test-prometheus"]
fn promtool_accepts_the_alerts() {
    for args in [
        ["check", "rules", "dq.rules.yml"],
        ["test", "rules", "dq.rules.test.yml"],
        ["check", "config", "prometheus.yml"],
    ] {
        let ran = Command::new("promtool").args(args).current_dir(contrib("prometheus")).output().expect("promtool");
        assert!(ran.status.success(), "{args:?}: {ran:?}");
    }
}

#[test]
#[ignore = "needs prometheus: make test-prometheus"]
fn prometheus_scrapes_export_and_answers_the_dashboard() {
    let server = Server::start();
    ok(&server, &["push", "q\"1", "x", "--id", "m"]);
    server.ask(&["DQ.POP", "q\"1", "NOACK"]);
    let export = Export::start(&server, &[]);
    let dir = server.dir();
    let configuration = read("prometheus/prometheus.yml")
        .replace("15s", "200ms")
        .replace("export:9899", &export.address)
        .replace("dq.rules.yml", &contrib("prometheus/dq.rules.yml").to_string_lossy());
    std::fs::write(dir.join("prometheus.yml"), configuration).unwrap();
    let address = format!("127.0.0.1:{}", free_port());
    let child = Command::new("prometheus")
        .arg(format!("--config.file={}", dir.join("prometheus.yml").display()))
        .arg(format!("--storage.tsdb.path={}", dir.join("data").display()))
        .arg(format!("--web.listen-address={address}"))
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("prometheus");
    let _prometheus = Process(child);
    let query = |expression: &str| {
        let encoded: String = expression.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let (_, text) = get(&address, &format!("/api/v1/query?query={encoded}"))?;
        serde_json::from_str::<Json>(&text).ok()
    };
    let value = |expression: &str| Some(query(expression)?["data"]["result"][0]["value"][1].as_str()?.to_owned());
    eventually("it is scraped", || value("dq_up").as_deref() == Some("1"));
    eventually("rates are known", || value("rate(dq_events_total{event=\"pushed\"}[1m])").is_some());
    // Counted from the first reading on.
    ok(&server, &["push", "q\"1", "x"]);
    let pushed = || value("dq_events_total{queue=\"q\\\"1\",event=\"pushed\"}");
    eventually("the push is counted", || pushed().as_deref() == Some("1"));
    assert_eq!(value("up").as_deref(), Some("1"));
    // Every query of the dashboard is valid.
    let (_, queries) = dashboard();
    for expression in queries.lines().filter(|line| line.contains("dq_") && !line.starts_with("label_values")) {
        let expression = expression.replace("$queue", ".*").replace("$__rate_interval", "1m");
        let answer = query(&expression).expect("an answer");
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
    }
}
