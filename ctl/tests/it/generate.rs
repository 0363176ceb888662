//! `dqctl completions` and `dqctl man`.

use crate::dqctl::{run, without_server};
use std::path::{Path, PathBuf};

/// A directory for a test, which ends with it.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Dir(dir)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The names of the commands, from the help of a bare `dqctl`.
fn commands() -> Vec<String> {
    let overview = run(without_server(&[])).err;
    let listed = overview.lines().filter(|line| line.starts_with("  "));
    let names = listed.filter_map(|line| line.split_whitespace().next().map(str::to_owned));
    let names: Vec<String> = names.filter(|name| name.starts_with(char::is_alphabetic)).collect();
    assert!(names.len() > 10 && names.contains(&"doctor".to_owned()), "{overview}");
    names
}

#[test]
fn completions_have_all_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let ran = run(without_server(&["completions", shell]));
        assert_eq!(ran.code, 0);
        for command in commands() {
            assert!(ran.out.contains(&command), "{shell}: {command}");
        }
    }
    let other = run(without_server(&["completions", "tcsh"]));
    assert_eq!((other.code, other.err.lines().count()), (2, 1), "{other:?}");
}

#[test]
fn each_command_has_a_manual_page() {
    let dir = Dir::new("man");
    let ran = run(without_server(&["man", dir.0.to_str().unwrap()]));
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
    let page = |name: &str| {
        let page = std::fs::read_to_string(dir.0.join(format!("{name}.1")));
        page.unwrap_or_else(|error| panic!("{name}: {error}")).replace('\\', "")
    };
    for command in commands().into_iter().filter(|command| command != "help") {
        assert!(page("dqctl").contains(&format!("dqctl-{command}(1)")), "{command}");
        assert!(page(&format!("dqctl-{command}")).contains(&format!("dqctl {command}")), "{command}");
    }
    assert!(page("dqctl-doctor").contains("max-dead"));
    assert!(run(without_server(&["man"])).out.contains(".TH"));
    // No server is needed, so a wrong URL does not matter.
    let mut wrong = without_server(&["completions", "bash"]);
    wrong.env("DQ_URL", "nonsense");
    assert_eq!(run(wrong).code, 0);
}
