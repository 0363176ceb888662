//! redis-py works with the module in both protocols.

use crate::support::clients::{python, run};
use crate::support::{root, Server};
use std::process::Command;

#[test]
fn redis_py_gets_what_it_expects_in_both_protocols() {
    let Some(python) = python() else { return };
    for protocol in ["2", "3"] {
        let server = Server::start();
        let script = root().join("tests/clients/test_redis_py.py");
        let outcome = run(Command::new(python).arg(script).args([&server.port().to_string(), protocol]));
        outcome.unwrap_or_else(|problem| panic!("RESP{protocol}: {problem}"));
    }
}
