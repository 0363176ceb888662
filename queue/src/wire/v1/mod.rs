//! Version 1 of the format.
//!
//! Numbers that are close to each other are written as differences, which MessagePack stores in one to five bytes
//! instead of nine: a due time as its distance from the push, a deadline as its distance from the delivery, and each
//! sequence of a list as its distance from the one before (the first from the instant of the decision). Differences of
//! sequences and receipts wrap, so every number can be written; times are checked when they are read.

mod done;
mod effect;
mod forward;
mod image;
mod numbers;
mod read;
mod recurring;
mod settings;
mod write;

pub use done::{done, live_done};
pub use effect::Stamped;
pub use image::Image;
pub use read::{live_images, live_known, live_leaving, live_turns};
pub use write::{image, images, known, leaving, turns};

use super::super::Totals;
use done::Done;
use recurring::Recurring;
use serde::{Deserialize, Serialize};
use serde_bytes::Bytes;
use settings::Settings;

/// The bits of a sequence or a receipt below its milliseconds.
const COUNT_BITS: u32 = 20;

/// The number that stands for a pause without an end.
const ENDLESS: u64 = u64::MAX;

/// A piece of a saved queue behind its header: messages, done messages, known ids, or messages that are delivered beside
/// kept ones.
#[derive(Debug, Serialize, Deserialize)]
pub enum Piece<'a> {
    #[serde(rename = "c")]
    Messages(#[serde(borrow)] Vec<Image<'a>>),
    #[serde(rename = "k")]
    Done(#[serde(borrow)] Vec<Done<'a>>),
    #[serde(rename = "i")]
    Known(#[serde(borrow)] Vec<KnownId<'a>>),
    #[serde(rename = "l")]
    Leaving(#[serde(borrow)] Vec<Leaving<'a>>),
    #[serde(rename = "v")]
    Turns(#[serde(borrow)] Turns<'a>),
}

/// A message that is delivered beside a kept one: the sequence of the kept one, and the message, whose sequence is a
/// distance from that.
#[derive(Debug, Serialize, Deserialize)]
pub struct Leaving<'a>(u64, #[serde(borrow)] Image<'a>);

/// Turns of groups: the last turn of all, the last of the messages without a group, and the last of each group, as a
/// distance from the last of all.
#[derive(Debug, Serialize, Deserialize)]
pub struct Turns<'a>(u64, u64, #[serde(borrow)] Vec<(&'a Bytes, i64)>);

/// A known id: when it was accepted, as a distance from the id before, and the name.
#[derive(Debug, Serialize, Deserialize)]
pub struct KnownId<'a>(i64, #[serde(borrow)] &'a Bytes);

/// The fate of a message: due again, at a distance from now; or dead, since a distance from now and for a reason.
#[derive(Debug, Serialize, Deserialize)]
enum Fate {
    #[serde(rename = "w")]
    Due(i64),
    #[serde(rename = "d")]
    Dead(i64, u8),
}

/// All messages in some spans. For each span two numbers: its first sequence, as a distance from the end of the span
/// before, and its last sequence, as a distance from the first.
#[derive(Debug, Serialize, Deserialize)]
struct Spans(Vec<i64>);

/// Messages, in the order of the command. The first sequence is two numbers, its distance from now in milliseconds and
/// the rest; each other one is its distance from the one before.
#[derive(Debug, Serialize, Deserialize)]
struct Sequences(Vec<i64>);

/// Deliveries. The first sequence is written as in [`Sequences`]; each other one as its distance from the one before.
/// Three numbers follow each: the deadline and the receipt, as distances from those of the delivery before (the first
/// from now), and the attempt.
#[derive(Debug, Serialize, Deserialize)]
struct Grants(Vec<i64>);

/// What few messages have: where the message comes from unless its sequence tells, its schedule, how long it is kept
/// after its completion, and its group.
#[derive(Debug, Serialize, Deserialize)]
struct Extras<'a>(
    Option<Origin>,
    Option<Box<Recurring>>,
    Option<u64>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")] Option<&'a Bytes>,
);

/// Where a message comes from: when its id was accepted, as a distance from the sequence's instant, and when its chain of
/// replacements began, as a distance from that.
#[derive(Debug, Serialize, Deserialize)]
struct Origin(i64, Option<i64>);

/// A TTL: its duration, and its end as a distance from the due time.
#[derive(Debug, Serialize, Deserialize)]
struct Ends(u64, i64);

/// A phase. Leased and kept: the receipt as a distance from the sequence, and the deadline as a distance from the receipt's
/// instant. Dead: the instant of death as a distance from the due time, and the reason.
#[derive(Debug, Serialize, Deserialize)]
enum Phase {
    #[serde(rename = "l")]
    Leased(i64, i64),
    #[serde(rename = "d")]
    Dead(i64, u8),
    #[serde(rename = "k")]
    Kept(i64, i64),
}

/// A queue without its messages: settings, the end of the pause (0 if there is none, [`ENDLESS`] if it has no end),
/// last sequence, last receipt, totals, the instant up to which the totals count what time did, and the deliveries that
/// the rate limit counts: for each millisecond its distance from the one before, and their number.
#[derive(Debug, Serialize, Deserialize)]
pub struct QueueHeader(Settings, u64, u64, u64, [u64; Totals::NAMES.len()], u64, Vec<u64>);
