//! What travels with a message besides its payload.

mod headers;
