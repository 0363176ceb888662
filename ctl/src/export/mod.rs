//! `dqctl export`: metrics of queues for Prometheus, read from the server when they are asked for.

mod metrics;

use crate::board::names;
use crate::cli::ExportArgs;
use crate::http;
use crate::server::{Failure, Outcome};
use dq_client::blocking::Client;
use metrics::Exporter;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Mutex;

/// Serves metrics until SIGTERM or SIGINT.
pub fn export(client: &Client, args: ExportArgs) -> Result<Outcome, Failure> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let listener = http::bind(&args.listen)?;
    let exporter = Exporter { client: client.clone(), args, found: Mutex::default() };
    let client = client.clone();
    http::serve(listener, move || exporter.metrics(), move || Ok(names::check(&client)?))?;
    signals.forever().next();
    Ok(Outcome::Done)
}
