//! The life of a message after its delivery: leases, receipts, retries, backoff and time to live, and what each command
//! does in each state.

mod extending;
mod giving_back;
mod jitter;
mod leases;
mod retries;
mod time_to_live;
mod what_happens_when;
