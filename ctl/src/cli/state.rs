//! The states of messages as values of options: errors and completions list them.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command};
use dq_client::State;
use std::ffi::OsStr;

#[derive(Clone, Debug)]
pub struct StateParser;

impl TypedValueParser for StateParser {
    type Value = State;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<State, clap::Error> {
        let parser = PossibleValuesParser::new(State::ALL.map(State::as_str));
        let name = parser.parse_ref(command, arg, &value.to_ascii_lowercase())?;
        name.parse().map_err(|_| clap::Error::new(clap::error::ErrorKind::InvalidValue))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue>>> {
        Some(Box::new(State::ALL.into_iter().map(|state| PossibleValue::new(state.as_str()))))
    }
}
