//! `dqctl export`: metrics of queues for Prometheus, read from the server when they are asked for.

mod counters;
mod metrics;
mod queue;

use crate::board::names;
use crate::cli::ExportArgs;
use crate::http;
use crate::server::{Failure, Outcome};
use dq_client::blocking::Client;
use metrics::Exporter;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Serves metrics until SIGTERM or SIGINT.
pub fn export(client: &Client, args: ExportArgs) -> Result<Outcome, Failure> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let listener = http::bind(&args.listen)?;
    let exporter = Exporter::new(client.clone(), args);
    let client = client.clone();
    // While one server of a cluster answers, there are metrics to be scraped.
    http::serve(listener, move || exporter.metrics(), move || names::check_any(&client))?;
    signals.forever().next();
    Ok(Outcome::Done)
}
