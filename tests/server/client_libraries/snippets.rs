//! `docs/clients.md` and the README: the snippets run, and a library behaves as the page says.

use crate::support::clients::{node, python, run};
use crate::support::{root, Server};
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

#[test]
fn the_python_and_node_snippets_of_the_pages_run() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let languages = [
        ("python", python().map(|python| (python, target)), "snippet.py"),
        ("js", node().map(|folder| (Path::new("node"), folder)), "snippet.mjs"),
    ];
    for (language, found, name) in languages {
        let Some((program, folder)) = found else { continue };
        for (n, snippet) in snippets(language).iter().enumerate() {
            let server = Server::start();
            assert!(snippet.contains("6379"), "it names its server:\n{snippet}");
            let text = snippet.replace("6379", &server.port().to_string());
            let said = run_text(program, folder, &format!("{n}-{name}"), &text, &[]);
            let said = said.unwrap_or_else(|problem| panic!("{problem}\n{snippet}"));
            assert!(said.contains("order-1001"), "it shows its message:\n{snippet}\n{said}");
            let mut c = server.client();
            assert_eq!(c.ask("DQ.INFO orders:close").fields().int("acked"), 1, "it acks its message:\n{snippet}");
        }
    }
}

/// The blocks of a language on both pages.
fn snippets(language: &str) -> Vec<String> {
    let pages =
        ["README.md", "docs/clients.md"].map(|page| std::fs::read_to_string(root().join(page)).expect("a page"));
    let start = format!("```{language}\n");
    let blocks = pages.iter().flat_map(|page| page.split(&start).skip(1)).filter_map(|rest| rest.split("```").next());
    let found: Vec<String> = blocks.map(str::to_owned).collect();
    assert!(found.len() >= 2, "{language}: {found:?}");
    found
}

/// Runs a script that is written to a folder in which it finds its library.
fn run_text(program: &Path, folder: &Path, name: &str, text: &str, args: &[&str]) -> Result<String, String> {
    let script = folder.join(format!("{}-{name}", std::process::id()));
    std::fs::write(&script, text).expect("written");
    let outcome = run(Command::new(program).arg(&script).args(args));
    let _ = std::fs::remove_file(script);
    outcome
}
