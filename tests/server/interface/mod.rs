//! The interface: what the server says about the commands, the errors that they return, and the documentation of both.

mod discovery;
mod docs;
mod documents;
mod drawn;
mod errors;
mod frozen;
// The histories of the model.
#[path = "../../../queue/tests/model/history.rs"]
#[allow(dead_code, reason = "only what is drawn is of interest here")]
mod history;
mod loading;
mod workload;
