//! Version 1 of the format.
//!
//! Numbers that are close to each other are written as differences, which MessagePack stores in one to five bytes
//! instead of nine: a due time as its distance from the push, a deadline as its distance from the delivery, and each
//! sequence of a list as its distance from the one before (the first from the instant of the decision). Differences of
//! sequences and receipts wrap, so every number can be written; times are checked when they are read.

mod numbers;
mod read;
mod recurring;
mod settings;
mod write;

pub use read::{live_images, live_known};
pub use write::{image, images, known};

use super::super::Totals;
use recurring::{Declaration, Ended, Recurring, RunEnd};
use serde::{Deserialize, Serialize};
use serde_bytes::Bytes;
use settings::Settings;

/// The bits of a sequence or a receipt below its milliseconds.
const COUNT_BITS: u32 = 20;

/// The number that stands for a pause without an end.
const ENDLESS: u64 = u64::MAX;

/// An effect: the instant of the decision, Unix ms, and what was decided.
#[derive(Debug, Serialize, Deserialize)]
pub struct Stamped<'a>(u64, #[serde(borrow)] Effect<'a>);

/// An effect. The letters are part of the format, and are listed in the reference of the commands.
#[derive(Debug, Serialize, Deserialize)]
enum Effect<'a> {
    #[serde(rename = "p")]
    Push(Option<Settings>, #[serde(borrow)] Vec<Image<'a>>),
    #[serde(rename = "d")]
    Deliver(Vec<Grant>),
    #[serde(rename = "t")]
    Take(Vec<i64>),
    #[serde(rename = "a")]
    Ack(Vec<i64>),
    #[serde(rename = "n")]
    Nack(i64, Fate, u32, #[serde(borrow)] Option<&'a Bytes>),
    #[serde(rename = "e")]
    Extend(i64, i64),
    #[serde(rename = "k")]
    Cancel(Vec<i64>, #[serde(borrow)] Vec<&'a Bytes>),
    #[serde(rename = "s")]
    Reschedule(i64, Option<i64>, Option<i8>),
    #[serde(rename = "f")]
    Promote(i64, Spans),
    #[serde(rename = "b")]
    Bury(i64, #[serde(borrow)] Option<&'a Bytes>),
    #[serde(rename = "r")]
    Redrive(Spans, i64),
    #[serde(rename = "u")]
    Purge(Spans),
    #[serde(rename = "m")]
    Create(Settings),
    #[serde(rename = "o")]
    Alter(Settings),
    #[serde(rename = "z")]
    Pause(u64),
    #[serde(rename = "g")]
    Schedule(Option<Settings>, #[serde(borrow)] Image<'a>),
    #[serde(rename = "j")]
    Declare(i64, Option<Box<Declaration>>),
    #[serde(rename = "q")]
    EndRuns(#[serde(borrow)] Ended<'a>, Vec<i64>, Vec<RunEnd>),
    #[serde(rename = "x")]
    Trim(Spans),
    #[serde(rename = "y")]
    PullBack,
    #[serde(rename = "h")]
    Begin(QueueHeader),
    #[serde(rename = "c")]
    Continue(#[serde(borrow)] Vec<Image<'a>>),
    #[serde(rename = "i")]
    Recall(#[serde(borrow)] Vec<KnownId<'a>>),
}

/// A piece of a saved queue behind its header: messages, or known ids.
#[derive(Debug, Serialize, Deserialize)]
pub enum Piece<'a> {
    #[serde(rename = "c")]
    Messages(#[serde(borrow)] Vec<Image<'a>>),
    #[serde(rename = "i")]
    Known(#[serde(borrow)] Vec<KnownId<'a>>),
}

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

/// A delivery: the sequence as a distance from that of the grant before, the attempt, the deadline as a distance from
/// now, and the receipt as a distance from that of the grant before.
#[derive(Debug, Serialize, Deserialize)]
struct Grant(i64, u32, i64, i64);

/// A message: the sequence as a distance from that of the message before, the due time as a distance from the
/// sequence's instant, priority, retries, lease, TTL, attempts, the phase unless it is waiting, name, payload, error,
/// and what few messages have.
#[derive(Debug, Serialize, Deserialize)]
pub struct Image<'a>(
    i64,
    i64,
    i8,
    i32,
    Option<u64>,
    Option<Ends>,
    u32,
    Option<Phase>,
    #[serde(borrow)] Option<&'a Bytes>,
    #[serde(borrow)] &'a Bytes,
    #[serde(borrow)] Option<&'a Bytes>,
    #[serde(default, skip_serializing_if = "Option::is_none")] Option<Extras>,
);

/// What few messages have: where the message comes from unless its sequence tells, and its schedule.
#[derive(Debug, Serialize, Deserialize)]
struct Extras(Option<Origin>, Option<Box<Recurring>>);

/// Where a message comes from: when its id was accepted, as a distance from the sequence's instant, and when its chain of
/// replacements began, as a distance from that.
#[derive(Debug, Serialize, Deserialize)]
struct Origin(i64, Option<i64>);

/// A TTL: its duration, and its end as a distance from the due time.
#[derive(Debug, Serialize, Deserialize)]
struct Ends(u64, i64);

/// A phase. Leased: the receipt as a distance from the sequence, and the deadline as a distance from the receipt's
/// instant. Dead: the instant of death as a distance from the due time, and the reason.
#[derive(Debug, Serialize, Deserialize)]
enum Phase {
    #[serde(rename = "l")]
    Leased(i64, i64),
    #[serde(rename = "d")]
    Dead(i64, u8),
}

/// A queue without its messages: settings, the end of the pause (0 if there is none, [`ENDLESS`] if it has no end),
/// last sequence, last receipt, totals, the instant up to which the totals count what time did, and the deliveries that
/// the rate limit counts: for each millisecond its distance from the one before, and their number.
#[derive(Debug, Serialize, Deserialize)]
pub struct QueueHeader(Settings, u64, u64, u64, [u64; Totals::NAMES.len()], u64, Vec<u64>);
