//! `dqctl web`: what it reads, what it changes, and whom it refuses.

mod acts;
mod browser;
mod chrome;
mod cluster;
mod pictures;
mod refusals;
mod views;

use crate::dqctl::command;
use crate::support::{eventually, free_port, Process, Server};
use serde_json::Value as Json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

/// A running `dqctl web`.
struct Web {
    /// It ends with this value.
    _child: Process,
    port: u16,
}

/// An answer: its status, its head in lower case, and its body.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    #[track_caller]
    fn json(&self) -> Json {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    #[track_caller]
    fn error(&self) -> String {
        self.json()["error"].as_str().unwrap_or_else(|| panic!("no error: {self:?}")).to_owned()
    }
}

impl Web {
    /// Starts it with these options, and waits until it answers.
    fn start(server: &Server, options: &[&str]) -> Web {
        Web::at("127.0.0.1", server, options)
    }

    fn writing(server: &Server) -> Web {
        Web::start(server, &["--allow-writes"])
    }

    fn at(host: &str, server: &Server, options: &[&str]) -> Web {
        Web::logging(host, server, options, Stdio::null())
    }

    fn logging(host: &str, server: &Server, options: &[&str], log: Stdio) -> Web {
        let port = free_port();
        let address = format!("{host}:{port}");
        let args = [&["web", "--listen", &address], options].concat();
        let child = command(server, &args).stderr(log).spawn().unwrap();
        let web = Web { _child: Process(child), port };
        eventually("it answers", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        web
    }

    /// The address of a view of the page.
    fn page(&self, view: &str) -> String {
        format!("http://127.0.0.1:{}/#/{view}", self.port)
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).unwrap()
    }

    /// Sends a request as it is, and reads the answer.
    fn send(&self, request: &[u8]) -> Answer {
        let mut stream = self.connect();
        stream.write_all(request).unwrap();
        answer(&mut stream)
    }

    fn request(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
        let mut head = format!("{method} {path} HTTP/1.1\r\nContent-Length: {}\r\n", body.len());
        if !headers.iter().any(|header| header.starts_with("Host:")) {
            head.push_str(&format!("Host: 127.0.0.1:{}\r\n", self.port));
        }
        headers.iter().for_each(|header| head.push_str(&format!("{header}\r\n")));
        self.send(format!("{head}\r\n{body}").as_bytes())
    }

    fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[], "")
    }

    /// A rendered view, with 200.
    #[track_caller]
    fn view(&self, view: &str) -> String {
        let answer = self.get(&format!("/api/view/{view}"));
        assert_eq!(answer.status, 200, "{view}: {answer:?}");
        answer.body
    }

    fn post(&self, path: &str, body: &Json) -> Answer {
        self.request("POST", &format!("/api/{path}"), &["X-DQ: 1"], &body.to_string())
    }

    /// What is asked about an act, with 200.
    #[track_caller]
    fn ask(&self, act: Json) -> Json {
        let answer = self.post("ask", &act);
        assert_eq!(answer.status, 200, "{act}: {answer:?}");
        answer.json()
    }

    /// What an act has done, with 200.
    #[track_caller]
    fn act(&self, act: Json) -> Json {
        let answer = self.post("do", &act);
        assert_eq!(answer.status, 200, "{act}: {answer:?}");
        answer.json()
    }
}

fn answer(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
}
