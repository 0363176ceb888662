//! The programs in the README and in `docs/`: they run, and a library behaves as its page says.

use crate::support::clients::{node, php, python, run};
use crate::support::{markdown_files, root, Server};
use std::path::Path;
use std::process::Command;

#[test]
fn ioredis_behaves_as_its_page_says() {
    let Some(folder) = node() else { return };
    let server = Server::start();
    let text = std::fs::read_to_string(root().join("tests/clients/test_ioredis.mjs")).expect("the script");
    let outcome = run_text(Path::new("node"), folder, "test_ioredis.mjs", &text, &[&server.port().to_string()]);
    outcome.unwrap_or_else(|problem| panic!("{problem}"));
}

/// The pages whose programs all do the same: push an order, deliver it, show it, and ack it.
const CLIENT_PAGES: [&str; 3] = ["README.md", "docs/clients.md", "docs/start.md"];

#[test]
fn the_programs_of_the_pages_of_clients_run() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let languages = [
        ("python", python().map(|python| (python, target)), "snippet.py", "6379"),
        ("js", node().map(|folder| (Path::new("node"), folder)), "snippet.mjs", "6379"),
        ("php", php().map(|php| (php, target)), "snippet.php", "6379"),
        ("sh", Some((Path::new("bash"), target)), "snippet.sh", "redis-cli"),
    ];
    for (language, found, name, server_word) in languages {
        let Some((program, folder)) = found else { continue };
        let snippets: Vec<String> = CLIENT_PAGES.iter().flat_map(|page| snippets(page, language)).collect();
        // Other lines for a shell install something, or start a server.
        let snippets: Vec<String> = snippets.into_iter().filter(|text| text.contains("DQ.POP")).collect();
        assert!(!snippets.is_empty(), "{language}");
        for (n, snippet) in snippets.iter().enumerate() {
            let server = Server::start();
            assert!(snippet.contains(server_word), "it names its server:\n{snippet}");
            let port = server.port().to_string();
            let text = snippet.replace("6379", &port).replace("redis-cli ", &format!("redis-cli -p {port} "));
            let text = if language == "php" { format!("<?php\n{text}") } else { text };
            let said = run_text(program, folder, &format!("{n}-{name}"), &text, &[]);
            let said = said.unwrap_or_else(|problem| panic!("{problem}\n{snippet}"));
            assert!(said.contains("order-1001"), "it shows its message:\n{snippet}\n{said}");
            let mut c = server.client();
            assert_eq!(c.ask("DQ.INFO orders:close").fields().int("acked"), 1, "it acks its message:\n{snippet}");
        }
    }
}

/// The pages whose programs are parts of an application of another library. `forwarding::workers` and the tests of the
/// Python client run such applications.
const WORKER_PAGES: [&str; 7] = [
    "docs/recipes/celery.md",
    "docs/recipes/django.md",
    "docs/recipes/dramatiq.md",
    "docs/recipes/rq.md",
    "docs/recipes/sidekiq.md",
    "docs/recipes/streams.md",
    "docs/recipes/taskiq.md",
];

#[test]
fn the_python_programs_of_the_guides_run() {
    let Some(python) = python() else { return };
    let folders = ["docs", "docs/recipes"].map(|folder| root().join(folder));
    let mut found = 0;
    for page in folders.iter().flat_map(|folder| markdown_files(folder)) {
        let page = page.strip_prefix(root()).expect("a page of ours").display().to_string();
        if CLIENT_PAGES.contains(&page.as_str()) || WORKER_PAGES.contains(&page.as_str()) {
            continue;
        }
        for snippet in snippets(&page, "python") {
            found += 1;
            let server = Server::start();
            let text = snippet.replace("6379", &server.port().to_string());
            assert_ne!(text, snippet, "{page}: it names its server");
            let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
            let outcome = run_text(python, folder, &format!("{found}-guide.py"), &text, &[]);
            outcome.unwrap_or_else(|problem| panic!("{page}: {problem}"));
        }
    }
    assert!(found > 0);
}

/// The blocks of a language on a page.
fn snippets(page: &str, language: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join(page)).expect("a page");
    let start = format!("```{language}\n");
    let blocks = text.split(&start).skip(1).filter_map(|rest| rest.split("```").next());
    blocks.map(str::to_owned).collect()
}

/// Runs a script that is written to a folder in which it finds its library.
fn run_text(program: &Path, folder: &Path, name: &str, text: &str, args: &[&str]) -> Result<String, String> {
    let script = folder.join(format!("{}-{name}", std::process::id()));
    std::fs::write(&script, text).expect("written");
    let outcome = run(Command::new(program).arg(&script).args(args));
    let _ = std::fs::remove_file(script);
    outcome
}
