//! Commands that other tools have, and what dqctl has instead. The most similar name would be another command than is meant.

const INSTEAD: [(&[&str], &str); 5] = [
    (
        &["rm", "del", "remove", "drop"],
        "dqctl cancel removes messages by their ids, dqctl purge those in a state, and dqctl delete a queue",
    ),
    (
        &["retry", "requeue", "replay"],
        "dqctl redrive makes dead messages live again, dqctl nack gives back one in flight, and dqctl promote makes \
         delayed ones due",
    ),
    (
        &["pop", "receive", "consume"],
        "dqctl work runs a command for each message, and dqctl peek shows messages without taking them",
    ),
    (&["watch", "monitor"], "dqctl ls --watch and dqctl top show queues live, and dqctl batch --watch a batch"),
    (&["queues", "status", "len", "count"], "dqctl ls lists the queues with their counts, and dqctl info shows one"),
];

/// What there is instead of a command that dqctl does not have.
pub fn instead_of(word: &str) -> Option<&'static str> {
    INSTEAD.iter().find(|(words, _)| words.contains(&word)).map(|(_, instead)| *instead)
}

#[cfg(test)]
mod tests {
    use super::INSTEAD;
    use crate::cli::Cli;
    use clap::CommandFactory;

    #[test]
    fn the_commands_of_other_tools_are_none_of_dqctl_and_the_advice_is() {
        let command = Cli::command();
        for (words, instead) in INSTEAD {
            assert!(words.iter().all(|word| command.find_subcommand(word).is_none()), "{words:?}");
            let named = instead.split("dqctl ").skip(1).map(|rest| rest.split(' ').next().unwrap_or_default());
            named.for_each(|name| assert!(command.find_subcommand(name).is_some(), "{name}"));
        }
    }
}
