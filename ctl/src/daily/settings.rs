//! `dqctl create` and `dqctl alter`.

use super::queues;
use super::several::each;
use crate::cli::{AlterArgs, CreateArgs};
use crate::failure::{Failure, Outcome};
use crate::name::QueueName;
use crate::output::Output;
use dq_client::{cmd, Client, Resend};
use serde_json::json;

pub fn create(client: &Client, args: &CreateArgs, output: &Output) -> Result<Outcome, Failure> {
    let mut command = cmd("DQ.CREATE");
    args.settings.write(command.arg(args.queue.as_bytes()));
    // A user who may only create queues is told that it was created.
    let exists = queues::read(client, args.queue.as_bytes()).is_ok_and(|info| info.is_some());
    client.call(&command, Resend::Harmless)?;
    let text = if exists { "exists already, with these settings" } else { "created" };
    output.result(text, json!({ "queue": args.queue, "created": !exists }))?;
    Ok(Outcome::Done)
}

pub fn alter(client: &Client, args: &AlterArgs, output: &Output) -> Result<Outcome, Failure> {
    let alter = |name: &QueueName, output: &Output| alter_one(client, name, args, output);
    if args.create {
        return alter(&args.queue, output);
    }
    each(client, &args.queue, ("Alter", &args.confirm), output, alter)
}

fn alter_one(client: &Client, name: &QueueName, args: &AlterArgs, output: &Output) -> Result<Outcome, Failure> {
    let mut command = cmd("DQ.ALTER");
    command.arg(name.as_bytes());
    if args.create {
        command.arg("MKQUEUE");
    }
    let words = command.args_iter().count();
    args.settings.write(&mut command);
    if command.args_iter().count() == words && !args.create {
        return Err(Failure::usage("nothing to change: give a setting, such as --lease 1m; see dqctl alter --help"));
    }
    // A user who may only alter queues is told that it was altered.
    let settings = || queues::read(client, name.as_bytes()).ok().flatten().map(queues::settings);
    let before = settings();
    client.call(&command, Resend::Harmless)?;
    let after = settings();
    let is_same = before.is_some() && before == after;
    let text = if is_same { "has these settings already" } else { "altered" };
    output.result(text, json!({ "queue": name, "altered": !is_same }))?;
    if let (Some(before), Some(after), false) = (before, after, output.json) {
        let differ = after.0.iter().filter(|(name, value)| before.get(name).is_some_and(|old| old != value));
        for (name, _) in differ {
            let [old, new] = [&before, &after].map(|settings| queues::value(settings, name, output));
            output.remark(&format!("{name}: {old} -> {new}"))?;
        }
    }
    Ok(Outcome::Done)
}
