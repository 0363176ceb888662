//! The guides: each `console` block of the README, `docs/` and `docs/recipes/` is replayed, and the replies compared.
//!
//! The pages of the commands in `docs/commands/` have tests of their own in `docs.rs`.

use crate::support::{markdown_files, root, Client, Server, Transcript};
use std::path::PathBuf;

/// The pages whose sessions are replayed, each on an empty server.
fn guides() -> Vec<PathBuf> {
    let folders = ["docs", "docs/recipes"].map(|folder| root().join(folder));
    let pages = folders.iter().flat_map(|folder| markdown_files(folder));
    let mut pages: Vec<PathBuf> = pages.chain([root().join("README.md")]).collect();
    pages.sort();
    pages
}

fn read(page: &PathBuf) -> String {
    std::fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()))
}

#[test]
fn the_sessions_of_the_guides_happen_as_shown() {
    let server = Server::start();
    let mut replayed = 0;
    for page in guides() {
        let text = read(&page);
        if text.contains("```console") {
            server.client().ask("FLUSHALL").ok();
            Transcript::of(&text).replay(&mut server.client(), &page.display().to_string());
            replayed += 1;
        }
    }
    assert!(replayed >= 10, "{replayed} pages with sessions");
}

#[test]
fn the_readme_and_every_recipe_show_a_session() {
    let recipes = markdown_files(&root().join("docs/recipes"));
    let recipes = recipes.into_iter().filter(|page| page.file_stem().is_some_and(|name| name != "README"));
    for page in recipes.chain(["README.md", "docs/start.md"].map(|page| root().join(page))) {
        assert!(Transcript::of(&read(&page)).lines().next().is_some(), "{} shows no session", page.display());
    }
}

#[test]
fn a_session_shows_its_commands_behind_the_prompt() {
    for page in guides() {
        let text = read(&page);
        for block in text.split("```console\n").skip(1) {
            assert!(block.starts_with("127.0.0.1:6379> "), "{}: a line that is not sent:\n{block}", page.display());
        }
    }
}

/// Whether a session is refused because a reply differs.
fn is_refused(c: &mut Client, session: &str) -> bool {
    let transcript = Transcript::of(&format!("```console\n{session}```\n"));
    let replay = || transcript.replay(c, "a page with a wrong reply");
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(replay)).is_err()
}

#[test]
fn a_wrong_reply_in_a_session_is_found() {
    let server = Server::start();
    let mut c = server.client();
    let push = "127.0.0.1:6379> DQ.PUSH q \"x\" ID a REPLACE\n";
    assert!(!is_refused(&mut c, &format!("{push}\"a\"\n")));
    let wrong =
        ["\"b\"\n", "", "(nil)\n", "(error) ERR x\n", "\"a\"\n\"a\"\n", "\"1795272127596-0\"\n", "\"b\"\n...\n"];
    for reply in wrong {
        assert!(is_refused(&mut c, &format!("{push}{reply}")), "{reply:?}");
    }
    // Values that vary from run to run must still have the right form.
    let get = "127.0.0.1:6379> DQ.INFO q\n1) \"delayed\"\n2) (integer) 0\n...\n";
    assert!(is_refused(&mut c, get), "redis-cli aligns the numbers");
}
