//! Test support: starts servers, talks to them, and has short names for frequent steps.

mod aof;
mod client;
pub mod clients;
mod clock;
mod cluster;
mod commands;
pub mod history;
mod load;
mod page;
mod preload;
mod queue;
mod random;
mod reply;
mod roaming;
mod scenario;
mod sentinel;
mod server;
mod transcript;
mod wait;

pub use aof::{effects_of, effects_of_every_state};
pub use client::{encode, Client, Protocol};
pub use clock::Clock;
pub use cluster::Cluster;
pub use commands::{writes, Kind, SAMPLES};
pub use history::any_command;
pub use load::Load;
pub use page::{is_token, markdown_files, prose, root, setting_parameters, OptionRow, Page, Parameter, Range};
pub use queue::Message;
pub use random::Random;
pub use reply::{Fields, Reply};
pub use roaming::Roamer;
pub use scenario::{every_command, every_state, known_of_every_command, sequence};
pub use sentinel::Sentinels;
pub use server::{in_both_protocols, module, server_binary, Server};
pub use transcript::Transcript;
pub use wait::{eventually, late_ms};
