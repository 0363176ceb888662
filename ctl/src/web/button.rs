//! Buttons that open the dialog of an act. Acts and options have the names of the commands and options of the command
//! line.

use clap::ValueEnum;
use maud::{html, Markup};
use serde_json::Value as Json;

/// The acts that the page offers.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    Alter,
    Bury,
    Cancel,
    Delete,
    Nack,
    Pause,
    Promote,
    Purge,
    Push,
    Redrive,
    Release,
    Reschedule,
    Resume,
    Schedule,
}

/// The options of acts that the page names; the dialog offers all others as well.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opt {
    At,
    Consumer,
    Count,
    Cron,
    Error,
    Every,
    Flow,
    For,
    Group,
    Header,
    Id,
    Ids,
    In,
    Lease,
    Letters,
    Maxlen,
    Older,
    Payload,
    Priority,
    Queue,
    Rate,
    Replace,
    Retries,
    State,
    States,
    Tz,
    Where,
}

/// An option with its value.
pub type Field = (Opt, Json);

impl Opt {
    /// The option with a value. Without a value it is left out.
    pub fn is(self, value: impl Into<Json>) -> Field {
        (self, value.into())
    }

    /// The option without a value, to be filled in.
    pub fn empty(self) -> Field {
        self.is("")
    }
}

/// A button for an act: the options that stay as they are, and those that the dialog shows as fields.
pub fn button(words: &str, act: Act, given: &[Field], fields: &[Field]) -> Markup {
    let is_danger = matches!(act, Act::Cancel | Act::Purge | Act::Delete);
    html! {
        button type="button" class=[is_danger.then_some("danger")] data-act=(object(Some(act), given))
            data-edit=(object(None, fields)) { (words) "…" }
    }
}

/// A button for an act on the messages whose boxes are checked.
pub fn button_of_selected(words: &str, act: Act, given: &[Field], fields: &[Field]) -> Markup {
    html! {
        button type="button" data-act=(object(Some(act), given)) data-edit=(object(None, fields))
            data-selected=(name(Opt::Ids)) disabled { (words) " selected…" }
    }
}

fn object(act: Option<Act>, fields: &[Field]) -> Json {
    let act = act.map(|act| ("act".to_owned(), Json::from(name(act))));
    act.into_iter().chain(fields.iter().map(|(option, value)| (name(*option), value.clone()))).collect()
}

fn name(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::{name, object, Act, Opt};
    use clap::{Command, Subcommand, ValueEnum};
    use serde_json::json;

    #[test]
    fn acts_and_options_are_those_of_the_command_line() {
        let commands = crate::cli::Act::augment_subcommands(Command::new("dqctl"));
        for act in Act::value_variants() {
            assert!(commands.find_subcommand(name(*act)).is_some(), "{act:?}");
        }
        for option in Opt::value_variants() {
            let mut all = commands.get_subcommands().flat_map(Command::get_arguments);
            let name = name(*option);
            assert!(all.any(|arg| arg.get_long().unwrap_or(arg.get_id().as_str()) == name), "{option:?}");
        }
    }

    #[test]
    fn an_act_is_an_object_of_its_options() {
        let given = object(Some(Act::Push), &[Opt::Queue.is("mail"), Opt::Group.is(None::<&str>)]);
        assert_eq!(given, json!({ "act": "push", "queue": "mail", "group": null }));
        assert_eq!(object(None, &[Opt::Payload.empty()]), json!({ "payload": "" }));
    }
}
