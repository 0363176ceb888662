//! The paths of the API: `GET /api/…` reads, `POST /api/ACTION` changes something.
//!
//! Requests and answers have the names of `DQ.GET` and `DQ.INFO`. Bytes that are not UTF-8 are in `NAME-base64` instead of
//! `NAME`, in answers, queries and bodies alike.

mod alter;
mod dead;
mod log;
mod messages;
mod params;
mod queues;
mod search;
mod servers;
mod writes;

use super::holders::Holders;
use super::presence::Presence;
use super::refreshed::Refreshed;
use crate::advice;
use crate::board::history::APART;
use crate::board::{Board, Memory};
use crate::failure::Failure;
use crate::http::{Request, Response};
use base64::prelude::{Engine, BASE64_STANDARD};
use dq_client::{Client, Error};
use params::Params;
use serde_json::{json, Map, Value as Json};
use std::sync::Arc;

/// The longest body of a request.
const BODY: usize = 4 * 1024 * 1024;

/// Answers requests to the API.
pub struct Api {
    client: Client,
    allow_writes: bool,
    board: Arc<Board>,
    doctor: Refreshed<servers::Examined>,
    holders: Refreshed<Holders>,
    clients: Refreshed<Presence>,
}

type Answer = Result<Json, Problem>;
type Read = fn(&Api, &Params) -> Answer;

const READS: [(&str, Read); 13] = [
    ("server", servers::server),
    ("last", servers::last),
    ("doctor", servers::doctor),
    ("queues", queues::queues),
    ("queue", queues::queue),
    ("groups", queues::groups),
    ("consumers", queues::consumers),
    ("batches", queues::batches),
    ("messages", messages::messages),
    ("message", messages::message),
    ("schedules", messages::schedules),
    ("dead", dead::dead),
    ("search", search::search),
];

const WRITES: [(&str, Read); 16] = [
    ("pause", writes::pause),
    ("resume", writes::resume),
    ("redrive", writes::redrive),
    ("cancel", writes::cancel),
    ("promote", writes::promote),
    ("purge", writes::purge),
    ("delete", writes::delete),
    ("reschedule", writes::reschedule),
    ("push", writes::push),
    ("release", writes::release),
    ("nack", writes::nack),
    ("bury", writes::bury),
    ("cancel-batch", writes::cancel_batch),
    ("schedule", writes::schedule),
    ("alter", alter::alter),
    ("dead", dead::change_dead),
];

impl Api {
    pub fn start(client: &Client, allow_writes: bool) -> Result<Api, Failure> {
        let board = Arc::new(Board::new(client.clone(), None, Memory::Hour));
        board.start(|client| servers::sample(&servers::servers(client)))?;
        let (examined, kept) = (client.clone(), Arc::clone(&board));
        let doctor = Refreshed::new(move |_| servers::Examined::new(&examined, &kept));
        let (holding, known) = (client.clone(), Arc::clone(&board));
        let holders = Refreshed::new(move |_| Holders::read(&holding, &known));
        let listing = client.clone();
        let clients = Refreshed::new(move |last| Presence::read(&listing, last));
        Ok(Api { client: client.clone(), allow_writes, board, doctor, holders, clients })
    }

    /// Answers a request that is allowed.
    pub fn answer(&self, request: &mut Request) -> Response {
        let name = request.path.strip_prefix("/api/").unwrap_or_default().to_owned();
        let named = |paths: &[(&str, Read)]| paths.iter().find(|(path, _)| *path == name).map(|(_, answer)| *answer);
        let is_post = request.method == "POST";
        if name == "payload" && !is_post {
            let params = Params::of_query(&request.query);
            return messages::payload(self, &params).unwrap_or_else(|problem| problem.about(&params).response());
        }
        let (answer, params) = match (named(&READS), named(&WRITES)) {
            (Some(read), _) if !is_post => (read, Params::of_query(&request.query)),
            (_, Some(write)) if is_post => {
                let params = match request.body(BODY) {
                    Ok(body) => Params::of_body(&body),
                    Err(refused) => return refused,
                };
                match params {
                    Ok(params) => (write, params),
                    Err(problem) => return problem.response(),
                }
            }
            (Some(_), _) => return refusal(405, "this path only reads: use GET").with("Allow", "GET, HEAD"),
            (_, Some(_)) => return refusal(405, "this path changes something: use POST").with("Allow", "POST"),
            (None, None) => return refusal(404, "there is no such path: docs/dqctl/web.md lists them"),
        };
        let answered = answer(self, &params).map_err(|problem| problem.about(&params));
        if is_post {
            // Also if it failed: a part of it may have been done.
            self.doctor.outdate();
            log::log(request, &name, &params, &answered);
        }
        answered.map_or_else(|problem| problem.response(), |answer| response(200, &answer))
    }

    /// The history of a queue, or of all together, for charts; null if there is none.
    fn samples(&self, queue: Option<&[u8]>) -> Json {
        // A queue that was read meanwhile is on another server of the cluster.
        let least = if queue.is_some() { 2 * APART } else { 0 };
        json!(self.board.history(queue, |history, interruptions| history.samples(interruptions, least)))
    }
}

/// Why a request failed: a status, and a text that says what to do.
#[derive(Debug)]
pub struct Problem {
    status: u16,
    text: String,
}

impl Problem {
    fn new(status: u16, text: impl Into<String>) -> Problem {
        Problem { status, text: text.into() }
    }

    /// The request is wrong.
    fn wrong(text: impl Into<String>) -> Problem {
        Problem::new(400, text)
    }

    /// The same problem, whose advice names the queue of the request.
    fn about(mut self, params: &Params) -> Problem {
        if let Ok(Some(queue)) = params.text("queue") {
            self.text = advice::for_queue(&self.text, &queue);
        }
        self
    }

    fn response(&self) -> Response {
        refusal(self.status, &self.text)
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        let status = match &error {
            Error::Connect(_)
            | Error::Lost(_)
            | Error::Unavailable(_)
            | Error::Authentication(_)
            | Error::Certificate(_) => 503,
            Error::NoPermission(_) => 403,
            Error::NoQueue(_) => 404,
            Error::NoModule(_) => 501,
            Error::Server(_) => 400,
            Error::QueueFull(_)
            | Error::QueueClosed(_)
            | Error::DeadId(_)
            | Error::TooLarge(_)
            | Error::OutOfMemory(_)
            | Error::WrongType(_) => 409,
            _ => 502,
        };
        Problem::new(status, here(&error).unwrap_or_else(|| Failure::from(error).to_string()))
    }
}

/// What to do about an error of a push. The advice of the command line names options that neither the page nor the API has.
fn here(error: &Error) -> Option<String> {
    let advice = match error {
        Error::DeadId(_) => {
            let text = "the queue holds a dead message of this id: redrive or delete it, or let the new one replace it";
            return Some(text.to_owned());
        }
        Error::QueueFull(_) => {
            "push again when messages have been completed, or raise maxlen in the settings of the queue"
        }
        Error::QueueClosed(_) => "push again later, or open the queue",
        Error::TooLarge(_) => "push less, or raise maxpayload in the settings of the queue",
        _ => return None,
    };
    Some(format!("{error}; {advice}"))
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Problem {
        let status = match (failure.is_denied(), failure.is_refused()) {
            (true, _) => 403,
            (_, true) => 409,
            (false, false) => 503,
        };
        Problem::new(status, failure.to_string())
    }
}

/// An answer that refuses a request: `{"error": "…"}`.
pub fn refusal(status: u16, text: &str) -> Response {
    response(status, &json!({ "error": text }))
}

fn response(status: u16, answer: &Json) -> Response {
    Response::new(status, "application/json", format!("{answer}\n"))
}

/// Adds bytes to an object: `NAME`, or `NAME-base64` if they are not UTF-8.
pub fn put(object: &mut Map<String, Json>, name: &str, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => object.insert(name.to_owned(), Json::from(text)),
        Err(_) => object.insert(format!("{name}-base64"), Json::from(BASE64_STANDARD.encode(bytes))),
    };
}

#[cfg(test)]
mod tests {
    use super::Problem;
    use dq_client::Error;

    #[test]
    fn a_server_that_cannot_be_used_now_is_503() {
        let status = |error: Error| Problem::from(error).status;
        assert_eq!(status(Error::Certificate("expired".to_owned())), 503);
        assert_eq!(status(Error::Authentication("WRONGPASS".to_owned())), 503);
        assert_eq!(status(Error::QueueClosed("QUEUECLOSED".to_owned())), 409);
    }
}
