//! Advice in which the commands name the queue and the server, so that they can be pasted into a shell.

use std::fmt::Display;
use std::sync::OnceLock;

/// The options of the connection that were given to this command, and the names of the commands that take them.
static CONNECTION: OnceLock<(String, Vec<String>)> = OnceLock::new();

/// Characters of a word that a shell takes as they are.
const PLAIN: &str = "_-.:/@%+=,{}";

/// Writes the name of the queue into the commands of a text: `dqctl alter QUEUE` becomes `dqctl alter mail`.
pub fn for_queue(text: &str, queue: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let is_command = |at: usize| {
        let word = |back: usize| at.checked_sub(back).and_then(|place| words.get(place));
        word(2) == Some(&"dqctl") || word(1) == Some(&"PERSIST")
    };
    let named = |(at, word): (usize, &&str)| match word.strip_prefix("QUEUE") {
        Some(end @ ("" | ";" | "," | ":" | ".")) if is_command(at) => format!("{}{end}", quoted(queue)),
        _ => (*word).to_owned(),
    };
    words.iter().enumerate().map(named).collect::<Vec<_>>().join(" ")
}

/// Names the server in the commands of a text: `redis-cli INFO` becomes `redis-cli -h 127.0.0.1 -p 6379 INFO`.
pub fn for_server(text: &str, server: &str) -> String {
    let place = match server.rsplit_once(':') {
        Some((host, port)) => format!("-h {} -p {port}", host.trim_matches(['[', ']'])),
        None => format!("-s {}", quoted(server)),
    };
    text.replace("redis-cli ", &format!("redis-cli {place} "))
}

/// Notes with which options of the command line this command has found its server.
pub fn connected_with(options: String, commands: Vec<String>) {
    let _ = CONNECTION.set((options, commands));
}

/// A text whose commands reach the same server: `dqctl ls` becomes `dqctl -u redis://host ls` if that was given to this command.
pub fn reaching(text: &str) -> String {
    CONNECTION.get().map_or_else(|| text.to_owned(), |(options, commands)| with_options(text, options, commands))
}

fn with_options(text: &str, options: &str, commands: &[String]) -> String {
    if options.is_empty() || !text.contains("dqctl ") {
        return text.to_owned();
    }
    let mut parts = text.split("dqctl ");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let word = part.split(|c: char| !c.is_ascii_lowercase()).next().unwrap_or_default();
        let is_command = commands.iter().any(|command| command == word);
        whole.extend(["dqctl ", if is_command { options } else { "" }, if is_command { " " } else { "" }, part]);
    }
    whole
}

/// Writes a line to standard error.
pub fn tell(text: impl Display) {
    say!("dqctl: {}", reaching(&text.to_string()));
}

/// A name as a word of a shell.
pub fn quoted(name: &str) -> String {
    if !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || PLAIN.contains(c)) {
        return name.to_owned();
    }
    format!("'{}'", name.replace('\'', r"'\''"))
}

/// The command that saves the dead messages of a queue.
pub fn dump_of_dead(queue: &str) -> String {
    format!("dqctl dump {} --state dead > dead.jsonl", quoted(queue))
}

#[cfg(test)]
mod tests {
    use super::{for_queue, for_server, with_options};

    #[test]
    fn commands_name_the_queue_and_nothing_else_does() {
        let text = "QUEUE is full; dqctl alter QUEUE --maxlen N, or redis-cli PERSIST QUEUE; see QUEUE";
        let expected = "QUEUE is full; dqctl alter mail --maxlen N, or redis-cli PERSIST mail; see QUEUE";
        assert_eq!(for_queue(text, "mail"), expected);
        assert_eq!(for_queue("dqctl info QUEUE", "it's $HOME"), r"dqctl info 'it'\''s $HOME'");
    }

    #[test]
    fn commands_name_the_server() {
        for (server, options) in [("host:63", "-h host -p 63"), ("[::1]:63", "-h ::1 -p 63"), ("/a b", "-s '/a b'")] {
            assert_eq!(for_server("see redis-cli INFO", server), format!("see redis-cli {options} INFO"));
        }
    }

    #[test]
    fn commands_of_dqctl_have_the_options_of_the_connection_and_other_words_do_not() {
        let text = "dqctl ls lists them (dqctl dead 'a b' --letters); this dqctl does not";
        let expected =
            "dqctl -u unix:///s ls lists them (dqctl -u unix:///s dead 'a b' --letters); this dqctl does not";
        let commands = ["ls", "dead"].map(str::to_owned);
        assert_eq!(with_options(text, "-u unix:///s", &commands), expected);
        assert_eq!(with_options(text, "", &commands), text);
    }
}
