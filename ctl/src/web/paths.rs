//! What the page asks for: `GET /api/view/…` renders a view, `POST /api/ask` and `POST /api/do` are about acts.

use super::{act, holders, message, messages, overview, queue, App, Params, View};
use crate::http::{Request, Response};
use crate::server::Failure;
use crate::text::now_ms;
use maud::{html, DOCTYPE};

/// The longest body of a request.
const BODY: usize = 4 * 1024 * 1024;
/// How soon the page asks for a view again, in ms, and the share of the time that reading it may take.
const EVERY: u128 = 2_500;
const SHARE: u128 = 20;

type Render = fn(&App, &Params) -> Result<View, Failure>;

const VIEWS: [(&str, Render); 5] = [
    ("", overview::overview),
    ("queue", queue::queue),
    ("message", message::message),
    ("consumers", holders::everywhere),
    ("find", messages::find),
];

/// Answers a request that is allowed.
pub fn answer(app: &App, request: &mut Request) -> Response {
    let path = request.path.strip_prefix("/api/").unwrap_or_default().to_owned();
    let is_post = request.method == "POST";
    match path.as_str() {
        "ask" | "do" if !is_post => Response::refusal(405, "use POST").with("Allow", "POST"),
        "ask" | "do" => {
            let body = match request.body(BODY) {
                Ok(body) => body,
                Err(refused) => return refused,
            };
            let answer = match path.as_str() {
                "ask" => act::ask(app, &body),
                _ => act::carry_out(app, request, &body),
            };
            answer.map_or_else(|failure| Response::of(&failure), |answer| Response::json(200, &answer))
        }
        _ if is_post => Response::refusal(405, "this path only reads: use GET").with("Allow", "GET, HEAD"),
        "payload" => {
            let params = Params::of(&request.query);
            message::payload(app, &params).unwrap_or_else(|failure| Response::of(&failure))
        }
        path => {
            let render = VIEWS.iter().find(|(name, _)| path.strip_prefix("view/") == Some(name));
            match render {
                Some((_, render)) => view(app, *render, &Params::of(&request.query)),
                None => Response::refusal(404, "there is no such path: docs/dqctl/web.md lists them"),
            }
        }
    }
}

fn view(app: &App, render: Render, params: &Params) -> Response {
    let began = now_ms();
    match render(app, params) {
        Ok(View { title, body }) => {
            let took = u128::try_from(now_ms() - began).unwrap_or(0);
            let mode = if app.allow_writes { "" } else { "read-only" };
            let page = html! {
                (DOCTYPE) title { (title) }
                body data-every=((took * SHARE).max(EVERY)) data-servers=(app.servers()) data-mode=(mode) { (body) }
            };
            Response::new(200, "text/html; charset=utf-8", page.into_string())
        }
        Err(failure) => Response::of(&failure),
    }
}
