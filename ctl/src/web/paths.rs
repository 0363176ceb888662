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

/// Removes the base path from the path of a request, if a proxy has left it there. The error leads a browser from the
/// base path to the page, whose files are found beside it only if its address ends with a slash.
pub fn below_base(request: &mut Request, base_path: &str) -> Result<(), Response> {
    let Some(rest) = request.path.strip_prefix(base_path) else { return Ok(()) };
    if rest.is_empty() {
        return Err(Response::refusal(308, "the page is below this path").with("Location", format!("{base_path}/")));
    }
    if rest.starts_with('/') {
        request.path = rest.to_owned();
    }
    Ok(())
}

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
            answer.map_or_else(|failure| Response::failure(&failure), |answer| Response::json(200, &answer))
        }
        _ if is_post => Response::refusal(405, "this path only reads: use GET").with("Allow", "GET, HEAD"),
        "payload" => {
            let params = Params::parse(&request.query);
            message::payload(app, &params).unwrap_or_else(|failure| Response::failure(&failure))
        }
        path => {
            let render = VIEWS.iter().find(|(name, _)| path.strip_prefix("view/") == Some(name));
            match render {
                Some((_, render)) => view(app, *render, &Params::parse(&request.query)),
                None if path.starts_with("view/") => refused_view(404, "There is no such page."),
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
        Err(failure) => refused_view(failure.status(), &failure.to_string()),
    }
}

/// Why a view cannot be shown, as a document, which is what the page asks for.
fn refused_view(status: u16, why: &str) -> Response {
    let page = html! { (DOCTYPE) title { "dq" } body { p { (why) } } };
    Response::new(status, "text/html; charset=utf-8", page.into_string())
}
