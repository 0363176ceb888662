//! Acts as the page asks for them: an object with the name of a command and its options, as the command line has them.
//!
//! `ask` answers with the question and the options that can be added, and `do` carries the act out, on no more messages
//! than the question named.

use super::app::App;
use crate::board::setting;
use crate::cli::Act;
use crate::http::Request;
use crate::output::Progress;
use crate::server::{info, quoted, Failure};
use crate::text::{instant, now_ms, visible, QueueName};
use clap::{Arg, ArgAction, Command, FromArgMatches, Subcommand};
use serde_json::{json, Map, Value as Json};
use std::collections::BTreeMap;

/// Options that a dialog does not offer.
const HIDDEN: [&str; 3] = ["help", "yes", "dry-run"];
/// Options whose values are not logged, because they are contents of messages.
const SECRET: [&str; 4] = ["payload", "header", "then", "result"];

/// The help of options that a terminal may also read from standard input.
const HELP: [(&str, &str); 3] = [
    ("payload", "The payload"),
    ("result", "The result, which is kept with the message"),
    ("then", "Close the batch: push this payload as soon as all its messages have ended"),
];

/// A request for an act.
struct Asked {
    name: String,
    definition: Command,
    values: Map<String, Json>,
    /// The most messages to change in each queue, as confirmed by the question.
    most: Option<BTreeMap<String, Option<u64>>>,
}

impl Asked {
    fn read(body: &[u8]) -> Result<Asked, Failure> {
        let mut values: Map<String, Json> = serde_json::from_slice(body)
            .map_err(|error| Failure::usage(format!("the body is no JSON object: {error}")))?;
        let most = values.remove("most").map(serde_json::from_value).transpose();
        let most = most.map_err(|error| Failure::usage(format!("most: {error}")))?;
        let name = values.remove("act").and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default();
        let definitions = Act::augment_subcommands(Command::new("dqctl"));
        let definition = definitions.find_subcommand(&name).cloned();
        let definition =
            definition.ok_or_else(|| Failure::usage(format!("there is no act {name}: give the name of a command")))?;
        values.retain(|_, value| !value.is_null() && *value != json!([]));
        Ok(Asked { name, definition, values, most })
    }

    /// The options and then the other words of the command line. What is neither is an error, so that a misspelt option
    /// is not ignored.
    fn words(&self, hides: bool) -> Result<[Vec<String>; 2], Failure> {
        let (mut options, mut positional, mut known) = (Vec::new(), Vec::new(), 0);
        for arg in self.definition.get_arguments() {
            let Some(value) = self.values.get(name_of(arg)) else { continue };
            known += 1;
            let name = name_of(arg);
            let values: Vec<String> = match value {
                Json::Array(values) => values.iter().map(text).collect(),
                value => vec![text(value)],
            };
            for value in values {
                let value = if hides && SECRET.contains(&name) { "…".to_owned() } else { value };
                match arg.get_action() {
                    _ if arg.is_positional() => positional.push(value),
                    ArgAction::SetTrue if value == "true" => options.push(format!("--{name}")),
                    ArgAction::SetTrue => {}
                    _ => options.push(format!("--{name}={value}")),
                }
            }
        }
        if known < self.values.len() {
            let names: Vec<&str> = self.definition.get_arguments().map(name_of).collect();
            let unknown = self.values.keys().find(|name| !names.contains(&name.as_str())).cloned().unwrap_or_default();
            return Err(Failure::usage(format!("{} has no option {unknown}", self.name)));
        }
        Ok([options, positional])
    }

    fn act(&self) -> Result<Act, Failure> {
        let definitions = Act::augment_subcommands(Command::new("dqctl").no_binary_name(true));
        let [options, positional] = self.words(false)?;
        let words = [vec![self.name.clone()], options, vec!["--".to_owned()], positional].concat();
        let matches = definitions.try_get_matches_from(words);
        let act = matches.and_then(|matches| Act::from_arg_matches(&matches));
        let act = act.map_err(|error| Failure::clap(&error, ""))?;
        if !act.is_change() {
            return Err(Failure::usage(format!("{} changes nothing without more options", self.name)));
        }
        act.check()?;
        Ok(act)
    }

    /// The command that does the same in a terminal.
    fn command(&self) -> Result<String, Failure> {
        let [options, positional] = self.words(true)?;
        let word = |word: &String| match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => format!("{name} {}", quoted(value)),
            _ => quoted(word),
        };
        let words: Vec<String> = positional.iter().chain(&options).map(word).collect();
        Ok(format!("dqctl {} {}", self.name, words.join(" ")))
    }

    /// The options that the dialog can offer.
    fn options(&self, app: &App) -> Vec<Json> {
        let queue = self.values.get("queue").map(text).unwrap_or_default();
        let info = match self.name.as_str() {
            "alter" => info::read(&app.client, QueueName::read(queue.as_bytes()).as_bytes()).ok().flatten(),
            _ => None,
        };
        let offered = self
            .definition
            .get_arguments()
            .filter(|arg| !HIDDEN.contains(&name_of(arg)) && !self.values.contains_key(name_of(arg)));
        let option = |arg: &Arg| {
            let name = name_of(arg);
            let choices: Vec<String> = arg.get_possible_values().iter().map(|one| one.get_name().to_owned()).collect();
            let placeholder = arg.get_value_names().and_then(<[_]>::first).map(ToString::to_string).unwrap_or_default();
            let now = info
                .as_ref()
                .filter(|info| info.fields.get(name).is_some())
                .map(|info| format!("now {}", setting(&info.fields, name)));
            let is_flag = matches!(arg.get_action(), ArgAction::SetTrue);
            json!({
                "name": name,
                "help": help(name, arg),
                "placeholder": now.unwrap_or(placeholder),
                "choices": if is_flag { vec!["true".to_owned()] } else { choices },
                "required": arg.is_required_set(),
                "lines": matches!(arg.get_action(), ArgAction::Append),
            })
        };
        offered.map(option).collect()
    }
}

/// The name of an option on the command line, or of a positional argument.
fn name_of(arg: &Arg) -> &str {
    arg.get_long().unwrap_or(arg.get_id().as_str())
}

fn help(name: &str, arg: &Arg) -> Option<String> {
    let of_page = HELP.iter().find(|(option, _)| *option == name).map(|(_, help)| (*help).to_owned());
    of_page.or_else(|| arg.get_help().map(ToString::to_string))
}

fn text(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The question with its numbers, or what is still missing.
pub fn ask(app: &App, body: &[u8]) -> Result<Json, Failure> {
    let asked = Asked::read(body)?;
    let mut answer = json!({ "options": asked.options(app), "command": asked.command()? });
    let planned = asked.act().and_then(|act| {
        let plan = act.plan(&app.client, true)?;
        // Those that nobody may count are all meant.
        let most = |(name, most): &(QueueName, u64)| (name.to_string(), json!(plan.number.map(|_| most)));
        let refused: Vec<String> = plan.refused.iter().chain(&plan.missing).map(ToString::to_string).collect();
        Ok(json!({
            "question": act.question(&plan), "verb": act.verb(), "number": plan.number.filter(|_| act.is_of_many()),
            "most": plan.queues.iter().map(most).collect::<Map<_, _>>(), "refused": refused,
        }))
    });
    let more = match planned {
        Ok(planned) => planned,
        Err(failure) if failure.status() == 400 => json!({ "missing": failure.to_string() }),
        Err(failure) => return Err(failure),
    };
    if let (Some(answer), Json::Object(more)) = (answer.as_object_mut(), more) {
        answer.extend(more);
    }
    Ok(answer)
}

/// Carries an act out, and logs it.
pub fn carry_out(app: &App, request: &Request, body: &[u8]) -> Result<Json, Failure> {
    let asked = Asked::read(body)?;
    let done = run(app, &asked);
    log(request, &asked.command()?, &done);
    done
}

fn run(app: &App, asked: &Asked) -> Result<Json, Failure> {
    let act = asked.act()?;
    let plan = act.plan(&app.client, false)?;
    let (mut lines, mut notes, mut number) = (Vec::new(), Vec::new(), None);
    notes.extend(plan.refused.iter().chain(&plan.missing).map(ToString::to_string));
    for (queue, _) in &plan.queues {
        let most = match &asked.most {
            // One that came later was not asked about.
            Some(most) if !most.contains_key(&queue.to_string()) => continue,
            Some(most) => most.get(&queue.to_string()).copied().flatten().unwrap_or(u64::MAX),
            None => u64::MAX,
        };
        let report = match act.run(&app.client, queue, most, &Progress::none()) {
            Ok(report) => report,
            Err(failure) if plan.is_of_several && !failure.is_of_any_queue() => {
                notes.push(failure.in_context(queue).to_string());
                continue;
            }
            Err(failure) => return Err(failure.about(Some(&queue.to_string())).after_write()),
        };
        number = report.number.map(|changed| changed + number.unwrap_or(0)).or(number);
        let about = |text: String| if plan.is_of_several { format!("{queue}: {text}") } else { text };
        lines.extend(report.lines.into_iter().map(|(text, _)| about(text)));
        notes.extend(report.notes);
        // So that it is listed, or no longer.
        _ = app.board.look(queue.as_bytes());
    }
    if lines.is_empty() && (number.is_none() || number == Some(0) && !act.is_of_many()) {
        return Err(Failure::nothing(if notes.is_empty() { act.none() } else { notes.join("; ") }));
    }
    Ok(json!({ "done": act.done(), "number": number, "lines": lines, "notes": notes }))
}

/// Logs a request that changes something: the time, the address, the command and the outcome. A proxy names its client
/// in `X-Forwarded-For`.
fn log(request: &Request, command: &str, done: &Result<Json, Failure>) {
    let client = request.header("x-forwarded-for").map_or_else(String::new, |client| format!(" for {client}"));
    let outcome = match done {
        Ok(done) => match done.get("number").and_then(Json::as_u64) {
            Some(number) => format!("{number} {}", done.get("done").map(text).unwrap_or_default()),
            None => done.get("lines").map(ToString::to_string).unwrap_or_default(),
        },
        Err(failure) => format!("failed: {failure}"),
    };
    let line = format!("{} {}{client}: {command}: {outcome}", instant(now_ms()), request.peer.ip());
    print_error!("dqctl: {}", visible(&line));
}
