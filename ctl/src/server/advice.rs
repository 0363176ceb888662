//! Advice in which the commands name the queue, and those of redis-cli the server, so that they can be pasted into a
//! shell.

use std::fmt::Display;

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

/// Writes a line to standard error.
pub fn tell(text: impl Display) {
    say!("dqctl: {text}");
}

/// A name as a word of a shell.
pub fn quoted(name: &str) -> String {
    if !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || PLAIN.contains(c)) {
        return name.to_owned();
    }
    format!("'{}'", name.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::{for_queue, for_server};

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
}
