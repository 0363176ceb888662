//! The question before an action.

use super::action::{many, Action, End, Kind, Removal};
use crate::advice::dump_of_dead;
use crate::dead::Among;
use crate::output::text::{cut, named, named_in, shown};
use crate::time::{exact, millis};
use unicode_width::UnicodeWidthStr;

/// How many lines of a question a cause takes at most, so that the question is on the screen.
const CAUSE: usize = 4;

impl Action {
    /// The question, to be answered with `y`. Each name takes at most `width` columns, and a cause [`CAUSE`] times as many.
    pub fn question(&self, width: usize) -> String {
        let queue = named_in(width, &self.queue);
        let id = |id: &[u8]| named_in(width, id);
        match &self.kind {
            Kind::Pause => format!("Pause {queue}? Nothing is delivered until it is resumed."),
            Kind::PauseFor(time) => {
                format!("Pause {queue} for {}? Nothing is delivered meanwhile.", exact(millis(*time)))
            }
            Kind::Resume => format!("Resume {queue}? It delivers messages again."),
            Kind::Marked(change, queues) => change.question(queues),
            Kind::Close => format!("Close {queue}? Pushes are refused until it is opened."),
            Kind::Open => format!("Open {queue}? It accepts messages again."),
            Kind::Delete(0) => format!("Delete the queue {queue} for good, with its settings? It has no message."),
            Kind::Delete(count) => {
                format!("Delete the queue {queue} for good, with its settings and {}?", many(*count, ""))
            }
            Kind::Alter(text) => format!("Alter {queue}: {}?", cut(&shown(text), width * CAUSE)),
            Kind::RedriveAll(count) => {
                format!("Redrive {} of {queue}? They are due now. {}", many(*count, "dead"), lost(&self.queue, width))
            }
            Kind::PromoteAll(count) => format!("Run {} of {queue} now? They are due at once.", many(*count, "delayed")),
            Kind::Purge(state, count) => format!("Purge {} of {queue} for good?", many(*count, state)),
            Kind::Remove(Removal::CancelSchedule, name) => {
                format!("Cancel the schedule {} of {queue} for good? It makes no more runs.", id(name))
            }
            Kind::Remove(removal, name) => format!("{} {} of {queue} for good?", capital(removal.verb()), id(name)),
            Kind::End(end, name, consumer) => {
                let consumer = if consumer.is_empty() { "a consumer".to_owned() } else { id(consumer) };
                let (verb, kind, follows) = match end {
                    End::Cancel => ("Cancel", " for good", "Its ack will find no message."),
                    End::Nack => ("Nack", "", "It is retried after its backoff, or is dead if no retry is left."),
                    End::Bury => ("Bury", "", "It is dead and not retried."),
                };
                format!("{verb} {} of {queue}{kind}, although {consumer} works on it? {follows}", id(name))
            }
            Kind::RemoveMarked(removal, ids) => {
                let held = if *removal == Removal::CancelHeld { ", although consumers work on them" } else { "" };
                let marked = many(ids.len() as u64, "marked");
                format!("{} {marked} of {queue} for good{held}?", capital(removal.verb()))
            }
            Kind::RedriveMarked(ids) => {
                let marked = many(ids.len() as u64, "marked");
                format!("Redrive {marked} of {queue}? They are due now. {}", lost(&self.queue, width))
            }
            Kind::Bury(state, ids) => {
                let (which, are) = match ids.as_slice() {
                    [one] => (id(one), "It is"),
                    all => (many(all.len() as u64, "marked"), "They are"),
                };
                let held = if *state == "inflight" { ", although consumers work on them" } else { "" };
                format!("Bury {which} of {queue}{held}? {are} dead until redriven.")
            }
            Kind::Redrive(name) => {
                format!("Redrive {} of {queue}? It is due now. This clears its errors and attempts for good.", id(name))
            }
            Kind::RunNow(name) => format!("Run {} of {queue} now? It is due at once.", id(name)),
            Kind::Release(name, held) => {
                let messages = many(*held, "");
                format!(
                    "Release {messages} of {queue} from {}? They are retried as if their leases had ended.",
                    id(name)
                )
            }
            Kind::ReleaseUncounted(name, held) => {
                let (messages, name) = (many(*held, ""), id(name));
                format!(
                    "Release {messages} of {queue} from {name} without counting the attempts? They are due again now."
                )
            }
            Kind::PauseGroup(group) => {
                format!("Pause group {} of {queue}? Its messages wait meanwhile.", id(group))
            }
            Kind::ResumeGroup(group) => {
                format!("Resume group {} of {queue}? Its messages are delivered again.", id(group))
            }
            Kind::RedriveCause(text, dead) => {
                let cause = cut(&shown(text), width * CAUSE);
                let (dead, lost) = (many(*dead, "dead"), lost(&self.queue, width));
                format!("Redrive {dead} of {queue} with {cause}? They are due now. {lost}")
            }
            Kind::DeleteCause(text, count, among) => {
                let (state, held) = match among {
                    Among::Letters => ("", ", also those that consumers work on"),
                    Among::State(state) => (state.as_str(), ""),
                };
                let (cause, count) = (cut(&shown(text), width * CAUSE), many(*count, state));
                format!("Delete {count} of {queue} with {cause} for good{held}?")
            }
            Kind::SendBack(ids, sources) => match ids.as_slice() {
                [one] => {
                    let from = sources.words(width);
                    format!("Send {} of {queue} back to where it died ({from})? It is due there now.", id(one))
                }
                all => {
                    let (marked, from) = (many(all.len() as u64, "marked"), sources.words(width / 2));
                    format!("Send {marked} of {queue} back to where they died ({from})? They are due there now.")
                }
            },
            Kind::SendCauseBack(text, letters, sources) => {
                let (cause, letters) = (cut(&shown(text), width * CAUSE), many(*letters, ""));
                let back = format!("back to where they died ({})", sources.words(width / 2));
                format!("Send {letters} of {queue} with {cause} {back}? They are due there now.")
            }
        }
    }

    /// The question without its mark and what follows it.
    pub fn stem(&self) -> String {
        let question = self.question(usize::from(u8::MAX));
        question.rsplit_once('?').map_or(question.clone(), |(stem, _)| stem.to_owned())
    }
}

/// What a redrive of dead messages loses, and what keeps that. A name that has no room is not cut: the command is for a shell.
fn lost(queue: &[u8], width: usize) -> String {
    let queue = Some(named(queue)).filter(|name| name.width() <= width);
    lost_unless(&dump_of_dead(queue.as_deref().unwrap_or("QUEUE")))
}

/// The same with the command that keeps it.
pub fn lost_unless(dump: &str) -> String {
    format!("This clears their errors and attempts for good: {dump} keeps them.")
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
