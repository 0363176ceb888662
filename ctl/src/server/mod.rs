//! How the server is reached, what it replies, and the failures in which that ends.

pub mod advice;
pub mod connection;
pub mod failure;
pub mod reply;
pub mod transfer;
