//! Python: redis-py, the client that most people will use, gets what it expects.
//!
//! The test needs redis-py: of the machine's own Python, else installed into an environment of its own. Where neither
//! can be had, `DQ_WITHOUT_PYTHON=1` leaves the test out.

use crate::support::Server;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn redis_py_gets_what_it_expects_in_both_protocols() {
    if std::env::var_os("DQ_WITHOUT_PYTHON").is_some() {
        return eprintln!("left out: DQ_WITHOUT_PYTHON is set");
    }
    let python = python_with_redis();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/test_redis_py.py");
    for protocol in ["2", "3"] {
        let server = Server::start();
        let output = Command::new(&python)
            .arg(&script)
            .args([&server.port().to_string(), protocol])
            .output()
            .expect("python runs");
        assert!(
            output.status.success(),
            "RESP{protocol}:\n{}\n{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

fn has_redis(python: &Path) -> bool {
    let output = Command::new(python).args(["-c", "import redis; assert redis.VERSION >= (5, 0)"]).output();
    output.is_ok_and(|output| output.status.success())
}

fn python_with_redis() -> PathBuf {
    let own = PathBuf::from("python3");
    if has_redis(&own) {
        return own;
    }
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    let python = venv.join("bin/python");
    if !has_redis(&python) {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv));
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "redis>=5"]));
    }
    python
}

fn run(command: &mut Command) {
    let output = command.output();
    let problem = match &output {
        Ok(output) if output.status.success() => return,
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    panic!("redis-py cannot be had ({command:?}): {problem}\nDQ_WITHOUT_PYTHON=1 leaves this test out");
}
