//! The options of `dqctl top`.

use crate::text::parse_span;
use clap::Args;
use std::time::Duration;

#[derive(Args, Debug)]
pub struct TopArgs {
    /// Only queues whose name matches this glob
    #[arg(long = "match", value_name = "PATTERN")]
    pub pattern: Option<String>,
    /// How often what is shown is read, from 100ms to 1h
    #[arg(long, value_name = "TIME", value_parser = parse_every, default_value = "1s")]
    pub every: Duration,
}

fn parse_every(text: &str) -> Result<Duration, String> {
    let (least, most) = (Duration::from_millis(100), Duration::from_secs(3600));
    let every = Some(parse_span(text)?).filter(|every| (least..=most).contains(every));
    every.ok_or_else(|| "it takes from 100ms to 1h".to_owned())
}
