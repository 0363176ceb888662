//! Client libraries: the example consumers and the snippets of the documentation work with the clients that people use.

mod examples;
mod python;
mod snippets;
