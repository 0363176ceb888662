//! The interface: what the server says about the commands, the errors that they return, and the documentation of both.

mod discovery;
mod docs;
mod documents;
mod errors;
mod loading;
mod workload;
