//! Checks that ids and receipts rise and never repeat.

use super::history::{Act, History, Span};
use super::report::{Fault, Report};
use crate::support::sequence;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;

/// Checks all ids and receipts of a history.
pub fn check(history: &History, report: &mut Report) {
    let mut ids = Vec::new();
    let mut receipts = Vec::new();
    let mut carried: HashMap<(u64, u64), &str> = HashMap::new();
    for op in &history.ops {
        match &op.act {
            Act::Push { name: None, given: Some(id), payload, .. } => {
                let number = sequence(id).unwrap_or_else(|| panic!("a generated id is ms-count, not {id}"));
                ids.push((op.span, number));
                same_message(&mut carried, number, payload, report);
            }
            Act::Pop { deliveries } => {
                for delivery in deliveries {
                    receipts.push((op.span, delivery.number()));
                    if let Some(number) = sequence(&delivery.id) {
                        same_message(&mut carried, number, &delivery.payload, report);
                    }
                    if !delivery.receipt.starts_with(&format!("{}#", delivery.id)) {
                        report.note(Fault::Receipt, format!("{delivery:?}: a receipt of another message"));
                    }
                }
            }
            _ => {}
        }
    }
    // A server whose clock is behind does not know the numbers that were lost with the old master.
    let apart = !history.rewinds.is_empty() && !history.losses.is_empty();
    rise(Fault::Id, ids, apart, report);
    rise(Fault::Receipt, receipts, apart, report);
}

/// Notes a generated id that two messages have. The names that pushes choose never look like generated ids.
fn same_message<'a>(carried: &mut HashMap<(u64, u64), &'a str>, id: (u64, u64), payload: &'a str, report: &mut Report) {
    let known = *carried.entry(id).or_insert(payload);
    if known != payload {
        report.note(Fault::Id, format!("{}-{} is the id of {known} and of {payload}", id.0, id.1));
    }
}

/// Notes numbers that were issued twice, and numbers that are lower than one of a call that had ended before: of any
/// call, or `apart`, of one to the same server.
fn rise<T: Ord + Copy + Debug>(fault: Fault, mut given: Vec<(Span, T)>, apart: bool, report: &mut Report) {
    given.sort_by_key(|(_, number)| *number);
    for pair in given.windows(2).filter(|pair| pair[0].1 == pair[1].1) {
        report.note(fault, format!("{:?} was given twice: {:?} and {:?}", pair[0].1, pair[0].0, pair[1].0));
    }
    if !apart {
        return rise_in_time(fault, given, report);
    }
    let servers: BTreeSet<u32> = given.iter().map(|(span, _)| span.server).collect();
    for server in servers {
        rise_in_time(fault, given.iter().filter(|(span, _)| span.server == server).copied().collect(), report);
    }
}

fn rise_in_time<T: Ord + Copy + Debug>(fault: Fault, mut given: Vec<(Span, T)>, report: &mut Report) {
    // The highest number among the calls that had ended by an instant.
    given.sort_by_key(|(span, _)| span.answered);
    let mut highest: Vec<(u64, T)> = Vec::with_capacity(given.len());
    for (span, number) in &given {
        let so_far = highest.last().map_or(*number, |(_, last)| (*last).max(*number));
        highest.push((span.answered, so_far));
    }
    for (span, number) in &given {
        let over = highest.partition_point(|(answered, _)| *answered < span.called);
        if let Some((_, before)) = over.checked_sub(1).map(|last| highest[last]).filter(|(_, before)| before > number) {
            report.note(fault, format!("{number:?} was given at {span:?}, after {before:?}"));
        }
    }
}
