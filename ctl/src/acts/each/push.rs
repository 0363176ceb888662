//! `push`: adds a message.

use crate::acts::change::{Change, ChangeQueue, Part, Scope, Words};
use crate::acts::command::command;
use crate::acts::report::Report;
use crate::acts::site::{Answer, Site};
use crate::cli::PushArgs;
use crate::server::{reply::text, reply::unexpected, Failure};
use crate::text::{millis, unix_ms, MessageId, QueueName};
use dq_client::{Cmd, Error, Raw, Resend, Value};
use serde_json::json;

impl Change for PushArgs {
    fn words(&self) -> Words {
        Words { verb: "Push", done: "pushed" }
    }

    fn queue(&self) -> &QueueName {
        &self.queue
    }

    fn scope(&self) -> Scope<'_> {
        Scope::Queue(self)
    }

    fn command(&self, queue: &[u8], _: Part) -> Cmd {
        command("DQ.PUSH", queue)
            .arg(payload(self))
            .option("ID", self.id.as_ref())
            .number("DELAY", self.delay.map(millis))
            .number("AT", self.at.map(unix_ms))
            .flag("REPLACE", self.replace)
            .number("MAXWAIT", self.max_wait.map(millis))
            .flag("LATER", self.later)
            .number("RETAIN", self.retain.map(millis))
            .option("BATCH", self.batch.as_ref())
            .message(&self.message)
            .build()
    }

    fn check(&self) -> Result<(), Failure> {
        self.payload.as_ref().map(|_| ()).ok_or_else(|| Failure::usage("the payload is missing"))
    }

    fn input(&mut self) -> Option<&mut Option<Raw>> {
        Some(&mut self.payload)
    }

    fn resend(&self) -> Resend {
        if self.id.is_some() && !self.replace {
            Resend::Harmless
        } else {
            Resend::Never
        }
    }

    fn object(&self, place: &str) -> String {
        format!("a message to {place}")
    }
}

impl ChangeQueue for PushArgs {
    fn change_queue(&self, site: &Site) -> Result<Option<Report>, Failure> {
        let answer = match (self.call(site, Part::Whole), &self.id) {
            (Answer { result: result @ (Ok(Value::Nil) | Err(Error::DeadId(_))), is_repeated: true }, Some(id)) => {
                pushed_before(self, site, id, result)?
            }
            (Answer { result, .. }, Some(id)) => result.map_err(|error| Failure::from(error).about_message(id))?,
            (Answer { result, .. }, None) => result?,
        };
        if answer == Value::Nil {
            let (queue, id) = (site.queue, self.id.as_ref().map(ToString::to_string).unwrap_or_default());
            let duplicate = format!("a duplicate: the queue {queue} has accepted {id} already");
            return Ok(Some(Report::default().note(format!("{duplicate}; --replace takes its place"))));
        }
        let generated = text(&answer).ok_or_else(|| unexpected(&answer))?;
        Ok(Some(match &self.id {
            Some(id) => Report::line(id.to_string(), json!({ "id": id })),
            None => Report::line(generated.clone(), json!({ "id": generated })),
        }))
    }
}

fn payload(args: &PushArgs) -> &[u8] {
    args.payload.as_ref().map_or(&[], |payload| &payload.0)
}

/// The answer to a push whose reply was lost, given the answer to its repetition, which found that the id is taken: by
/// the message of the first push, even if that was delivered and is dead by now, or by another one.
fn pushed_before(
    args: &PushArgs,
    site: &Site,
    id: &MessageId,
    repetition: Result<Value, Error>,
) -> Result<Value, Failure> {
    match site.message(id.as_bytes()) {
        Ok(Some(message)) if message.payload() == payload(args) => Ok(Value::BulkString(id.as_bytes().to_vec())),
        Ok(Some(_)) => Ok(repetition?),
        Ok(None) | Err(_) => Err(Failure::failed(format!(
            "the connection was lost, and it is unknown whether the message was pushed: the queue {} has accepted \
             {id}, but does not show its payload any more",
            site.queue
        ))),
    }
}
