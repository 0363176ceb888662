//! How many of the messages that a question is about are schedules: a purge leaves them, and a promotion makes their next run.

use super::action::{Action, Kind};
use super::app::App;
use super::prompt::Prompt;
use crate::failure::Failure;
use crate::output::text::grouped;
use crate::reply::Fields;
use crate::scan;
use dq_client::Client;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// How long it is counted at most: who has asked wants to answer.
const LIMIT: Duration = Duration::from_secs(1);

/// A queue, and the state of its messages that a question is about.
pub type About = (Vec<u8>, &'static str);

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Recurring {
    count: u64,
    /// Whether all messages of the queue were looked at.
    is_all: bool,
}

impl Recurring {
    /// Counts those in a state.
    pub fn count(client: &Client, (queue, state): &About, answered: impl Fn()) -> Result<Recurring, Failure> {
        let (mut recurring, end) = (Recurring { count: 0, is_all: true }, Instant::now() + LIMIT);
        scan::pages(client, queue, &Fields::default(), &["RECURRING"], |page| {
            recurring.count += page.iter().filter(|message| message.text("state") == *state).count() as u64;
            answered();
            recurring.is_all = Instant::now() < end;
            Ok(if recurring.is_all { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(recurring)
    }

    /// `3 of them are schedules, which stay.`; nothing if none of them is one.
    /// `one` and `what` say what happens to one of them and to several.
    fn words(counted: Option<Recurring>, all: u64, (one, what): (&str, &str)) -> String {
        match counted {
            None => format!(" Schedules among them {what}; they are being counted."),
            Some(Recurring { count: 0, is_all: true }) => String::new(),
            Some(Recurring { count: 0, is_all: false }) => format!(" Schedules among them {what}."),
            Some(Recurring { count, .. }) if count >= all => format!(" All of them are schedules, which {what}."),
            Some(Recurring { count, is_all }) => {
                let least = if is_all { "" } else { "At least " };
                let are = match count {
                    1 => format!("is a schedule, which {one}"),
                    _ => format!("are schedules, which {what}"),
                };
                format!(" {least}{} of them {are}.", grouped(count))
            }
        }
    }
}

impl Action {
    /// The messages among which schedules are counted, how many these are, and what happens to schedules.
    fn recurring(&self) -> Option<(About, u64, (&'static str, &'static str))> {
        match &self.kind {
            Kind::Purge(state @ ("delayed" | "ready" | "inflight"), count) => {
                Some(((self.queue.clone(), state), *count, ("stays", "stay")))
            }
            Kind::PromoteAll(count) => {
                Some(((self.queue.clone(), "delayed"), *count, ("makes its next run now", "make their next run now")))
            }
            _ => None,
        }
    }
}

impl App {
    /// What the question on the screen has to count.
    pub fn asked_about(&self) -> Option<About> {
        let Prompt::Question(action) = &self.prompt else { return None };
        action.recurring().map(|(about, ..)| about)
    }

    /// What follows a question: what happens to the schedules among the messages.
    pub fn of_schedules(&self, action: &Action) -> String {
        let Some((about, all, what)) = action.recurring() else { return String::new() };
        let counted = self.recurring.as_ref().filter(|(counted, _)| *counted == about);
        Recurring::words(counted.map(|(_, counted)| *counted), all, what)
    }
}

#[cfg(test)]
mod tests {
    use super::Recurring;

    #[test]
    fn it_is_said_how_many_schedules_are_among_the_messages() {
        let words = |count, is_all| Recurring::words(Some(Recurring { count, is_all }), 3, ("stays", "stay"));
        assert_eq!(words(0, true), "");
        assert_eq!(words(0, false), " Schedules among them stay.");
        assert_eq!(words(1, true), " 1 of them is a schedule, which stays.");
        assert_eq!(words(2, false), " At least 2 of them are schedules, which stay.");
        assert_eq!(words(3, true), " All of them are schedules, which stay.");
        assert_eq!(Recurring::words(None, 3, ("stays", "stay")), " Schedules among them stay; they are being counted.");
    }
}
