//! `workers.toml`: the workers of many queues in one file.

use super::job::{Action, Job, GRACE};
use super::post::Target;
use crate::cli::{header_of, MOST_CONCURRENCY};
use crate::time::parse_span;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::Deserialize;
use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::time::Duration;
use toml::Spanned;

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
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct File {
    url: Option<String>,
    listen: Option<String>,
    #[serde(default)]
    worker: Vec<Entry>,
}

/// A `[[worker]]`. The keys are the names of the options; `_` may stand for `-`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Entry {
    queue: Spanned<String>,
    concurrency: Option<Spanned<usize>>,
    command: Option<Spanned<Vec<String>>>,
    url: Option<Spanned<String>>,
    #[serde(alias = "time_limit")]
    time_limit: Option<Span>,
    grace: Option<Span>,
    lease: Option<Span>,
    headers: Option<Spanned<Headers>>,
    #[serde(alias = "retry_on")]
    retry_on: Option<Spanned<Vec<u16>>>,
    #[serde(rename = "pause-on-429", alias = "pause_on_429")]
    pause_on_429: Option<Spanned<bool>>,
}

/// A length of time such as `30s`.
struct Span(Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Span;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time with its unit, such as \"30s\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Span, E> {
                parse_span(text).map(Span).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// A table of names and values, or a list of `NAME: VALUE`, as `--header` takes it.
struct Headers(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Headers, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Headers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table such as { Authorization = \"Bearer …\" }")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Headers, A::Error> {
                let mut headers = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, String>()? {
                    headers.push(header_of(&format!("{name}: {value}")).map_err(de::Error::custom)?);
                }
                Ok(Headers(headers))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Headers, A::Error> {
                let mut headers = Vec::new();
                while let Some(header) = list.next_element::<String>()? {
                    headers.push(header_of(&header).map_err(de::Error::custom)?);
                }
                Ok(Headers(headers))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// Reads a file. The error is one line, which names the file, the line and the key.
pub fn read(path: &Path) -> Result<Config, String> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{name} cannot be read: {error}"))?;
    parse(&text).map_err(|(line, problem)| match line {
        Some(line) => format!("{name} line {line}: {problem}"),
        None => format!("{name}: {problem}"),
    })
}

/// What is wrong, and in which line.
type Problem = (Option<usize>, String);

/// Reads the text of a file.
fn parse(text: &str) -> Result<Config, Problem> {
    let line_at = |offset: usize| text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1;
    let file: File = toml::from_str(text).map_err(|error| {
        let mut problem =
            error.message().replace("unknown field", "unknown key").replace("missing field", "missing key");
        // Each key is listed once, under its own name.
        for alias in ["time_limit", "retry_on", "pause_on_429"] {
            problem = problem.replace(&format!(", `{alias}`"), "");
        }
        (error.span().map(|span| line_at(span.start)), problem)
    })?;
    if file.worker.is_empty() {
        return Err((None, "there is no worker; each begins with [[worker]]".to_owned()));
    }
    let mut jobs: Vec<Job> = Vec::new();
    let mut names = HashSet::new();
    for entry in file.worker {
        let line = line_at(entry.queue.span().start);
        let job = entry.job(line_at)?;
        if !names.insert(job.queue.clone()) {
            let problem = format!("the queue {} has a worker already: give that one all of the concurrency", job.queue);
            return Err((Some(line), problem));
        }
        jobs.push(job);
    }
    Ok(Config { url: file.url, listen: file.listen, jobs })
}

impl Entry {
    fn job(self, line_at: impl Fn(usize) -> usize) -> Result<Job, Problem> {
        let line = line_at(self.queue.span().start);
        let wrong = |line: usize, problem: String| Err((Some(line), problem));
        let queue = self.queue.into_inner();
        if queue.is_empty() {
            return wrong(line, "queue is the name of a queue, and not empty".to_owned());
        }
        if queue.contains('\0') {
            return wrong(line, "queue has a zero byte, which no environment can hold".to_owned());
        }
        let concurrency = match self.concurrency {
            None => 1,
            Some(concurrency) if (1..=MOST_CONCURRENCY).contains(concurrency.get_ref()) => concurrency.into_inner(),
            Some(concurrency) => {
                return wrong(
                    line_at(concurrency.span().start),
                    format!("concurrency must be a number from 1 to {MOST_CONCURRENCY}"),
                );
            }
        };
        let action = match (self.command, self.url) {
            (Some(command), None) => {
                let options = [
                    ("headers", self.headers.as_ref().map(Spanned::span)),
                    ("retry-on", self.retry_on.as_ref().map(Spanned::span)),
                    ("pause-on-429", self.pause_on_429.as_ref().map(Spanned::span)),
                ];
                if let Some((name, span)) = options.into_iter().find_map(|(name, span)| Some((name, span?))) {
                    return wrong(line_at(span.start), format!("{name} goes with url, and not with command"));
                }
                let line = line_at(command.span().start);
                let command = command.into_inner();
                if command.first().is_none_or(String::is_empty) {
                    return wrong(
                        line,
                        "command is a program and its arguments: [\"./handler\", \"--verbose\"]".to_owned(),
                    );
                }
                if command.iter().any(|part| part.contains('\0')) {
                    return wrong(line, "command has a zero byte, which no argument can hold".to_owned());
                }
                Action::Command(command.into_iter().map(Into::into).collect())
            }
            (None, Some(url)) => {
                if let Some(codes) = self.retry_on.as_ref() {
                    if codes.get_ref().iter().any(|code| !(400..500).contains(code)) {
                        let problem = "retry-on is a list of answers from 400 to 499".to_owned();
                        return wrong(line_at(codes.span().start), problem);
                    }
                }
                Action::Post(Target {
                    url: url.into_inner(),
                    headers: self.headers.map(|headers| headers.into_inner().0).unwrap_or_default(),
                    retry_on: self.retry_on.map(Spanned::into_inner).unwrap_or_default(),
                    pause_on_429: self.pause_on_429.is_some_and(Spanned::into_inner),
                })
            }
            _ => return wrong(line, format!("the worker of {queue} needs either command or url")),
        };
        let time = |span: Option<Span>| span.map(|Span(time)| time);
        let (grace, lease) = (time(self.grace).unwrap_or(GRACE), time(self.lease));
        Ok(Job { queue, concurrency, action, time_limit: time(self.time_limit), grace, lease })
    }
}

#[cfg(test)]
mod tests {
    use super::{parse, Action};
    use std::time::Duration;

    #[test]
    fn the_example_has_every_key() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../contrib/workers.toml");
        let text = std::fs::read_to_string(path).unwrap();
        let config = parse(&text).unwrap();
        assert!(config.url.is_some() && config.listen.is_some() && config.jobs.len() >= 2, "{config:?}");
        let keys = [
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
        ];
        for key in keys {
            assert!(text.lines().any(|line| line.starts_with(&format!("{key} = "))), "{key}");
        }
    }

    #[test]
    fn a_worker_has_the_defaults_of_the_options() {
        let config = parse("[[worker]]\nqueue = \"mail\"\ncommand = [\"true\"]\n").unwrap();
        let job = &config.jobs[0];
        assert_eq!((job.queue.as_str(), job.concurrency, job.time_limit), ("mail", 1, None));
        assert_eq!((job.grace, job.lease), (Duration::from_secs(30), None));
        assert_eq!(job.action, Action::Command(vec!["true".into()]));
    }

    #[test]
    fn keys_may_be_written_with_hyphens_or_underscores() {
        let of = |key: &str, value: &str| {
            parse(&format!("[[worker]]\nqueue = \"q\"\nurl = \"http://a\"\n{key} = {value}\n")).unwrap().jobs
        };
        for (one, other, value) in [
            ("time-limit", "time_limit", "\"5s\""),
            ("retry-on", "retry_on", "[404]"),
            ("pause-on-429", "pause_on_429", "true"),
        ] {
            assert_eq!(of(one, value), of(other, value));
        }
        assert_eq!(of("headers", "{ A = \"b\" }"), of("headers", "[\"A: b\"]"));
    }

    #[test]
    fn an_error_names_the_line_and_the_key() {
        for (text, line, word) in [
            ("[[worker]]\nqueue = \"q\"\nconcurency = 3\ncommand = [\"true\"]", 3, "concurency"),
            ("lissen = \"a\"\n[[worker]]\nqueue = \"q\"\ncommand = [\"true\"]", 1, "lissen"),
            ("[[worker]]\ncommand = [\"true\"]", 1, "queue"),
            ("[[worker]]\nqueue = \"q\"\n", 2, "command or url"),
            ("[[worker]]\nqueue = \"q\"\ncommand = [\"true\"]\nurl = \"http://a\"", 2, "command or url"),
            ("[[worker]]\nqueue = \"q\"\ncommand = []", 3, "command"),
            ("[[worker]]\nqueue = \"q\"\ncommand = [\"true\", \"a\\u0000b\"]", 3, "zero byte"),
            ("[[worker]]\nqueue = \"a\\u0000b\"\ncommand = [\"true\"]", 2, "zero byte"),
            ("[[worker]]\nqueue = \"q\"\ncommand = \"true\"", 3, "sequence"),
            ("[[worker]]\nqueue = \"q\"\nconcurrency = 0\ncommand = [\"true\"]", 3, "concurrency"),
            ("[[worker]]\nqueue = \"q\"\ncommand = [\"true\"]\ngrace = 30", 4, "unit"),
            ("[[worker]]\nqueue = \"q\"\ncommand = [\"true\"]\ngrace = \"30\"", 4, "unit"),
            ("[[worker]]\nqueue = \"q\"\ncommand = [\"true\"]\nretry-on = [404]", 4, "retry-on"),
            ("[[worker]]\nqueue = \"q\"\nurl = \"http://a\"\nretry-on = [500]", 4, "retry-on"),
            ("[[worker]]\nqueue = \"q\"\nurl = \"http://a\"\nheaders = { \"a b\" = \"c\" }", 4, "header"),
            (
                "[[worker]]\nqueue = \"q\"\ncommand = [\"a\"]\n[[worker]]\nqueue = \"q\"\ncommand = [\"a\"]",
                5,
                "q has a",
            ),
            ("[[worker]\nqueue = \"q\"", 1, ""),
        ] {
            let (found, problem) = parse(text).unwrap_err();
            assert!(found == Some(line) && problem.contains(word), "{text}: {found:?} {problem}");
        }
        assert_eq!(parse("").unwrap_err().0, None);
        let (_, problem) = parse("[[worker]]\nqueue = \"q\"\nconcurency = 3").unwrap_err();
        assert!(
            problem.ends_with("`headers`, `retry-on`, `pause-on-429`") && !problem.contains("time_limit"),
            "{problem}"
        );
    }
}
