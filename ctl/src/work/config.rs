//! `workers.toml`: the workers of many queues in one file. The keys of a worker are the options of `dqctl work`.

use super::job::Job;
use crate::cli::WorkArgs;
use crate::server::Failure;
use clap::{Args, Command, FromArgMatches};
use serde::Deserialize;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use toml::{Spanned, Value};

/// The contents of the file.
#[derive(PartialEq, Eq, Debug)]
pub struct Config {
    /// The server.
    pub url: Option<String>,
    /// Where metrics are served.
    pub listen: Option<String>,
    pub jobs: Vec<Job>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    url: Option<String>,
    listen: Option<String>,
    #[serde(default)]
    worker: Vec<Spanned<BTreeMap<String, Value>>>,
}

/// Reads a file. The error is one line, which names the file and the line.
pub fn read(path: &Path) -> Result<Config, String> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{name} cannot be read: {error}"))?;
    parse(&text).map_err(|(line, problem)| match line {
        Some(line) => format!("{name} line {line}: {problem}"),
        None => format!("{name}: {problem}"),
    })
}

/// What is wrong, and in which line, or in the worker that begins there.
type Problem = (Option<usize>, String);

fn parse(text: &str) -> Result<Config, Problem> {
    let line_at = |offset: usize| text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1;
    let file: File = toml::from_str(text).map_err(|error| {
        (error.span().map(|span| line_at(span.start)), error.message().replace("unknown field", "unknown key"))
    })?;
    if file.worker.is_empty() {
        return Err((None, "there is no worker; each begins with [[worker]]".to_owned()));
    }
    let (mut jobs, mut names) = (Vec::new(), HashSet::new());
    for worker in file.worker {
        let line = Some(line_at(worker.span().start));
        for job in jobs_of(worker.into_inner()).map_err(|problem| (line, problem))? {
            if !names.insert(job.queue.clone()) {
                let queue = job.queue;
                return Err((
                    line,
                    format!("the queue {queue} has a worker already: give that one all of the concurrency"),
                ));
            }
            jobs.push(job);
        }
    }
    Ok(Config { url: file.url, listen: file.listen, jobs })
}

/// The job of a worker, by way of the options that its keys stand for; `_` may stand for `-`.
fn jobs_of(keys: BTreeMap<String, Value>) -> Result<Vec<Job>, String> {
    const ONLY_OPTIONS: [&str; 5] = ["config", "listen", "verbose", "log-format", "post"];
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        _ => None,
    };
    let texts = |list: &[Value]| list.iter().map(text).collect::<Option<Vec<String>>>();
    let queue = keys.get("queue").and_then(text).filter(|queue| !queue.is_empty()).ok_or("missing key `queue`")?;
    let concurrency = keys.get("concurrency").map_or(Some("1".to_owned()), text);
    let concurrency = concurrency.ok_or("concurrency is a number")?;
    let mut words = vec!["work".to_owned(), format!("--queue={queue}={concurrency}")];
    let mut command = Vec::new();
    for (key, value) in &keys {
        let option = key.replace('_', "-");
        let wrong = || format!("{key} has a value of the wrong type");
        match (option.as_str(), value) {
            ("queue" | "concurrency", _) => {}
            (name, _) if ONLY_OPTIONS.contains(&name) => return Err(format!("unknown key `{key}`")),
            ("command", Value::Array(list)) => command = texts(list).ok_or_else(wrong)?,
            ("url", value) => words.push(format!("--post={}", text(value).ok_or_else(wrong)?)),
            ("headers", Value::Table(table)) => {
                for (name, value) in table {
                    words.push(format!("--header={name}: {}", text(value).ok_or_else(wrong)?));
                }
            }
            (name, Value::Array(list)) => words.push(format!("--{name}={}", texts(list).ok_or_else(wrong)?.join(","))),
            (_, Value::Boolean(false)) => {}
            (name, Value::Boolean(true)) => words.push(format!("--{name}")),
            (name, value) => words.push(format!("--{name}={}", text(value).ok_or_else(wrong)?)),
        }
    }
    if !command.is_empty() {
        words.push("--".to_owned());
        words.extend(command);
    }
    let options = WorkArgs::augment_args(Command::new("work").disable_help_flag(true));
    let args = options.try_get_matches_from(words).and_then(|matches| WorkArgs::from_arg_matches(&matches));
    let args = args.map_err(|error| Failure::clap(&error, "").to_string())?;
    Job::from_args(&args).map_err(|failure| failure.to_string())
}

#[cfg(test)]
mod tests {
    use super::parse;
    use std::time::Duration;

    #[test]
    fn the_example_has_every_key() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../contrib/workers.toml");
        let text = std::fs::read_to_string(path).unwrap();
        let config = parse(&text).unwrap();
        assert!(config.url.is_some() && config.listen.is_some() && config.jobs.len() >= 2, "{config:?}");
        for key in [
            "queue",
            "concurrency",
            "command",
            "url",
            "time-limit",
            "grace",
            "lease",
            "headers",
            "retry-on",
            "pause-on-429",
        ] {
            assert!(text.lines().any(|line| line.starts_with(&format!("{key} = "))), "{key}");
        }
    }

    #[test]
    fn a_worker_has_the_defaults_of_the_options() {
        let config = parse("[[worker]]\nqueue = \"a=b\"\ncommand = [\"true\", \"--help\"]\n").unwrap();
        let job = &config.jobs[0];
        assert_eq!((job.queue.as_str(), job.concurrency, job.how.time_limit), ("a=b", 1, None));
        assert_eq!((job.how.grace, job.how.lease), (Duration::from_secs(30), None));
        assert_eq!(job.how.command, ["true", "--help"]);
    }

    #[test]
    fn keys_may_be_written_with_hyphens_or_underscores() {
        let of = |key: &str, value: &str| {
            parse(&format!("[[worker]]\nqueue = \"q\"\nurl = \"http://a\"\n{key} = {value}\n")).unwrap().jobs
        };
        for (one, other, value) in [
            ("time-limit", "time_limit", "\"5s\""),
            ("retry-on", "retry_on", "[404, 409]"),
            ("pause-on-429", "pause_on_429", "true"),
        ] {
            assert_eq!(of(one, value), of(other, value));
        }
    }

    #[test]
    fn an_error_names_the_line_and_what_is_wrong() {
        for (text, line, word) in [
            ("lissen = \"a\"\n[[worker]]\nqueue = \"q\"\ncommand = [\"true\"]", 1, "lissen"),
            ("\n[[worker]]\ncommand = [\"true\"]", 2, "queue"),
            ("[[worker]]\nqueue = \"q\"\nconcurency = 3\ncommand = [\"true\"]", 1, "concurency"),
            ("[[worker]]\nqueue = \"q\"\nlisten = \"a:1\"\ncommand = [\"true\"]", 1, "listen"),
            ("[[worker]]\nqueue = \"q\"\n", 1, "--post"),
            ("[[worker]]\nqueue = \"q\"\ncommand = [\"true\"]\nurl = \"http://a\"", 1, "--post"),
            ("[[worker]]\nqueue = \"q\"\ncommand = []", 1, "COMMAND"),
            ("[[worker]]\nqueue = \"q\"\ncommand = \"true\"", 1, "command"),
            ("[[worker]]\nqueue = \"q\"\nconcurrency = 0\ncommand = [\"true\"]", 1, "concurrency"),
            ("[[worker]]\nqueue = \"q\"\ncommand = [\"true\"]\ngrace = 30", 1, "unit"),
            ("[[worker]]\nqueue = \"q\"\ncommand = [\"true\"]\nretry-on = [404]", 1, "--retry-on"),
            ("[[worker]]\nqueue = \"q\"\nurl = \"http://a\"\nheaders = { \"a b\" = \"c\" }", 1, "header"),
            (
                "[[worker]]\nqueue = \"q\"\ncommand = [\"a\"]\n[[worker]]\nqueue = \"q\"\ncommand = [\"a\"]",
                4,
                "q has a",
            ),
            ("[[worker]\nqueue = \"q\"", 1, ""),
        ] {
            let (found, problem) = parse(text).unwrap_err();
            assert!(found == Some(line) && problem.contains(word), "{text}: {found:?} {problem}");
        }
        assert_eq!(parse("").unwrap_err().0, None);
    }
}
