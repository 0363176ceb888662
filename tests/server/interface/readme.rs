//! The README: every `console` block is replayed, and the replies are compared.

use crate::support::{Server, Transcript};

#[test]
fn what_the_readme_shows_is_what_one_gets() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let Ok(text) = std::fs::read_to_string(&path) else {
        return eprintln!("there is no README.md yet, and so no promise in it");
    };
    let server = Server::start();
    Transcript::of(&text).replay(&mut server.client(), "README.md");
}
