//! `dqctl web`: the queues in a browser.
//!
//! The server renders the views; one small script of the page asks for them, puts them in place, and opens the dialog
//! in which acts are asked about. `guard` decides who is answered, `page` has the files of the page, `paths` what
//! answers each request, `app` what is shared. `overview`, `queue`, `messages`, `message` and `holders` are the views,
//! `html`, `button` and `chart` pieces of them, and `act` asks about acts and carries them out. What is known of the
//! queues is on the board of [`crate::board`].

mod act;
mod app;
mod button;
mod chart;
mod guard;
mod holders;
mod html;
mod message;
mod messages;
mod overview;
mod page;
mod params;
mod paths;
mod queue;

use crate::cli::WebArgs;
use crate::http;
use crate::server::{Failure, Outcome};
use app::{App, View};
use dq_client::blocking::Client;
use guard::Guard;
use params::Params;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Serves the page until SIGTERM or SIGINT.
pub fn web(client: &Client, args: WebArgs) -> Result<Outcome, Failure> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let guard = Guard::new(&args)?;
    let listener = http::bind(&args.listen)?;
    let base_path = args.base_path;
    let app = App::start(client, args.allow_writes)?;
    http::run(listener, move |request| {
        if let Err(refusal) = guard.host(request) {
            return page::secured(refusal);
        }
        if let Err(redirection) = paths::below_base(request, &base_path) {
            return page::secured(redirection);
        }
        let response = if request.path.starts_with("/api/") {
            guard.api(request).map_or_else(|refusal| refusal, |()| paths::answer(&app, request))
        } else {
            page::file(request)
        };
        page::secured(response)
    })?;
    signals.forever().next();
    Ok(Outcome::Done)
}
