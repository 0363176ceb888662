//! A server that speaks TLS, with an authority of its own.

use super::{free_port, Server};
use std::process::Command;

/// It asks its clients for a certificate, as servers do by default.
pub struct Tls {
    server: Server,
    port: u16,
}

impl Tls {
    pub fn start() -> Tls {
        let files = Server::start();
        let tls = Tls { port: free_port(), server: files };
        tls.openssl("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ca -keyout DIR/ca.key -out DIR/ca.pem");
        tls.openssl("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=o -keyout DIR/other.key -out DIR/other.pem");
        tls.openssl("req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout DIR/server.key -out DIR/server.csr");
        std::fs::write(tls.file("names"), "subjectAltName=DNS:localhost\n").expect("a file");
        let sign = "x509 -req -days 2 -in DIR/server.csr -CA DIR/ca.pem -CAkey DIR/ca.key -CAcreateserial";
        tls.openssl(&format!("{sign} -extfile DIR/names -out DIR/server.pem"));
        for (name, file) in
            [("tls-cert-file", "server.pem"), ("tls-key-file", "server.key"), ("tls-ca-cert-file", "ca.pem")]
        {
            tls.server.ask(&["CONFIG", "SET", name, &tls.file(file)]);
        }
        tls.server.ask(&["CONFIG", "SET", "tls-port", &tls.port.to_string()]);
        tls
    }

    /// `rediss://localhost:PORT`.
    pub fn url(&self) -> String {
        format!("rediss://localhost:{}", self.port)
    }

    /// The path of `ca.pem`, `server.pem`, `server.key`, or of `other.pem` and `other.key`, which nobody knows.
    pub fn file(&self, name: &str) -> String {
        self.server.dir().join(name).to_string_lossy().into_owned()
    }

    fn openssl(&self, line: &str) {
        let words = line.replace("DIR", &self.server.dir().to_string_lossy());
        let output = Command::new("openssl").args(words.split(' ')).output().expect("the program openssl");
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
