//! `redrive`: makes dead messages live again, or sends dead letters back to the queues in which they died.

use crate::acts::change::{Change, Part, Scope, Words};
use crate::acts::command::{command, script};
use crate::board::is_letter;
use crate::cli::{among, ManyArgs, RedriveArgs};
use crate::server::Message;
use crate::text::{millis, QueueName};
use dq_client::{Cmd, State};

/// Sends a letter back to the queue in which it died, so that it is in exactly one of the two, whatever fails.
const SEND_BACK: &str = include_str!("../send_back.lua");

impl Change for RedriveArgs {
    fn words(&self) -> Words {
        Words { verb: "Redrive", done: "redriven" }
    }

    fn queue(&self) -> &QueueName {
        &self.target.queue
    }

    fn scope(&self) -> Scope<'_> {
        if !self.target.ids.is_empty() {
            return Scope::Ids(&self.target.ids);
        }
        let filter = self.target.filter(among(self.letters, None));
        if filter.has_conditions() {
            Scope::Selected(filter)
        } else {
            Scope::States(vec![State::Dead])
        }
    }

    fn command(&self, queue: &[u8], part: Part) -> Cmd {
        if self.letters {
            return script(SEND_BACK, queue).ids(part).arg(self.delay.map_or(0, millis).to_string()).build();
        }
        let command = command("DQ.REDRIVE", queue).count(part);
        let command = match part {
            Part::Ids(ids) => command.number("IDS", Some(ids.len())).ids(part),
            Part::Whole | Part::Count(_) => command,
        };
        command.number("DELAY", self.delay.map(millis)).build()
    }

    fn many(&self) -> Option<&ManyArgs> {
        Some(&self.target.many)
    }

    fn limit(&self) -> Option<u32> {
        self.target.count
    }

    fn fits(&self, message: &Message) -> bool {
        if self.letters {
            is_letter(message)
        } else {
            message.state() == Some(State::Dead)
        }
    }

    fn needed(&self) -> &'static str {
        if self.letters {
            "a letter from another queue"
        } else {
            "dead"
        }
    }

    /// The server redrives only what is dead, and the script sends back only letters.
    fn checks_selection_again(&self) -> bool {
        false
    }

    fn is_one_by_one(&self) -> bool {
        self.letters
    }

    fn sends_letters(&self) -> bool {
        self.letters
    }

    fn reports_number(&self) -> bool {
        true
    }

    fn consequence(&self, _: Option<u64>, copy: &str) -> String {
        if self.letters {
            ", which sends them back to the queues in which they died".to_owned()
        } else {
            format!(", which clears their errors and attempts{copy}")
        }
    }
}
