//! What the page reads of a queue on request.

use crate::server::reply::Fields;
use dq_client::blocking::Client;
use dq_client::{cmd, Error, Resend};

/// Whether a name has this part, in upper or lower case.
pub fn contains(name: &[u8], part: &[u8]) -> bool {
    part.is_empty() || name.windows(part.len()).any(|at| at.eq_ignore_ascii_case(part))
}

/// The fields of `DQ.STATS`; `None` if there is no such queue.
pub fn read_stats(client: &Client, name: &[u8]) -> Result<Option<Fields>, Error> {
    let reply = client.call(cmd("DQ.STATS").arg(name), Resend::Harmless)?;
    Ok(Fields::read(reply).ok().flatten())
}
