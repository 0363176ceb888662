//! What the page asks for: `GET /api/view/…` renders a view, `POST /api/ask` and `POST /api/do` are about acts.

use super::params::Params;
use super::refreshed::Refreshed;
use super::{act, holders, message, messages, overview, queue, servers};
use crate::board::history::APART;
use crate::board::{Board, Memory};
use crate::findings::{self, Finding};
use crate::http::{Request, Response};
use crate::server::failure::Failure;
use crate::text::time::now_ms;
use dq_client::{Client, Error};
use maud::{html, Markup, DOCTYPE};
use serde_json::{json, Value as Json};
use std::sync::Arc;

/// The longest body of a request.
const BODY: usize = 4 * 1024 * 1024;
/// How soon the page asks for a view again, in ms, and the share of the time that reading it may take.
const EVERY: u128 = 2_500;
const SHARE: u128 = 20;

/// What all requests share.
pub struct App {
    pub client: Client,
    pub allow_writes: bool,
    pub board: Arc<Board>,
    pub doctor: Refreshed<Examined>,
}

/// What `dqctl doctor` finds, and when it looked, in Unix ms.
pub struct Examined {
    pub looked: i64,
    pub findings: Vec<Finding>,
}

/// What the page shows below its head.
pub struct View {
    pub title: String,
    pub body: Markup,
}

type Render = fn(&App, &Params) -> Result<View, Problem>;

const VIEWS: [(&str, Render); 5] = [
    ("", overview::overview),
    ("queue", queue::queue),
    ("message", message::message),
    ("consumers", holders::everywhere),
    ("find", messages::find),
];

impl App {
    pub fn start(client: &Client, allow_writes: bool) -> Result<App, Failure> {
        let board = Arc::new(Board::new(client.clone(), None, Memory::Hour));
        board.start(|client| servers::sample(&servers::read(client)))?;
        let examined = client.clone();
        let doctor = Refreshed::new(move || Ok(Examined { looked: now_ms(), findings: findings::examine(&examined)? }));
        Ok(App { client: client.clone(), allow_writes, board, doctor })
    }

    /// Answers a request that is allowed.
    pub fn answer(&self, request: &mut Request) -> Response {
        let path = request.path.strip_prefix("/api/").unwrap_or_default().to_owned();
        let is_post = request.method == "POST";
        match path.as_str() {
            "ask" | "do" if !is_post => refusal(405, "use POST").with("Allow", "POST"),
            "ask" | "do" => {
                let body = match request.body(BODY) {
                    Ok(body) => body,
                    Err(refused) => return refused,
                };
                let answer = match path.as_str() {
                    "ask" => act::ask(self, &body),
                    _ => act::carry_out(self, request, &body),
                };
                answer.map_or_else(|problem| problem.response(), |answer| response(200, &answer))
            }
            _ if is_post => refusal(405, "this path only reads: use GET").with("Allow", "GET, HEAD"),
            "payload" => {
                let params = Params::of(&request.query);
                message::payload(self, &params).unwrap_or_else(|problem| problem.response())
            }
            path => {
                let render = VIEWS.iter().find(|(name, _)| path.strip_prefix("view/") == Some(name));
                match render {
                    Some((_, render)) => self.view(*render, &Params::of(&request.query)),
                    None => refusal(404, "there is no such path: docs/dqctl/web.md lists them"),
                }
            }
        }
    }

    fn view(&self, render: Render, params: &Params) -> Response {
        let began = now_ms();
        match render(self, params) {
            Ok(View { title, body }) => {
                let took = u128::try_from(now_ms() - began).unwrap_or(0);
                let mode = if self.allow_writes { "" } else { "read-only" };
                let page = html! {
                    (DOCTYPE) title { (title) }
                    body data-every=((took * SHARE).max(EVERY)) data-servers=(servers::names(&self.client)) data-mode=(mode) { (body) }
                };
                Response::new(200, "text/html; charset=utf-8", page.into_string())
            }
            Err(problem) => problem.response(),
        }
    }

    /// The history of a queue, or of all together, for charts; null if there is none.
    pub fn samples(&self, queue: Option<&[u8]>) -> Json {
        // A queue that was read meanwhile is on another server of the cluster.
        let least = if queue.is_some() { 2 * APART } else { 0 };
        json!(self.board.history(queue, |history, interruptions| history.samples(interruptions, least)))
    }
}

/// Why a request failed: a status, and a text that says what to do.
#[derive(Debug)]
pub struct Problem {
    pub status: u16,
    pub text: String,
}

impl Problem {
    pub fn new(status: u16, text: impl Into<String>) -> Problem {
        Problem { status, text: text.into() }
    }

    pub fn no_queue() -> Problem {
        Problem::new(404, "there is no queue of this name")
    }

    fn response(&self) -> Response {
        refusal(self.status, &self.text)
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        match &error {
            Error::NoModule(_) => Problem::new(501, Failure::from(error).to_string()),
            _ => Failure::from(error).into(),
        }
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Problem {
        Problem::new(failure.status(), failure.to_string())
    }
}

/// An answer that refuses a request: `{"error": "…"}`.
pub fn refusal(status: u16, text: &str) -> Response {
    response(status, &json!({ "error": text }))
}

fn response(status: u16, answer: &Json) -> Response {
    Response::new(status, "application/json", format!("{answer}\n"))
}
