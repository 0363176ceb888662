//! What travels with a message besides its payload.

mod errors;
mod headers;
