//! `dqctl web`: the queues in a browser.
//!
//! One page, which is part of the program, reads and changes queues by an API of JSON. `guard` decides who is answered,
//! `page` has the files of the page, `api` the paths of the API, `holders` who holds the messages of all queues, and `presence`
//! whether they have a connection. What is known of the queues is on the board.

mod api;
mod args;
mod deaths;
mod find;
mod guard;
mod holders;
mod page;
mod presence;
mod refreshed;

pub use args::WebArgs;

use crate::failure::{Failure, Outcome};
use crate::http;
use api::Api;
use dq_client::Client;
use guard::Guard;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Serves the page until SIGTERM or SIGINT.
pub fn web(client: &Client, args: WebArgs) -> Result<Outcome, Failure> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let guard = Guard::new(&args)?;
    let listener = http::bind(&args.listen)?;
    let api = Api::start(client, args.allow_writes)?;
    http::run(listener, move |request| {
        if let Err(refusal) = guard.host(request) {
            return page::secured(refusal);
        }
        let response = if request.path.starts_with("/api/") {
            guard.api(request).map_or_else(|refusal| refusal, |()| api.answer(request))
        } else {
            page::file(request)
        };
        page::secured(response)
    })?;
    signals.forever().next();
    Ok(Outcome::Done)
}
