//! Whole messages.

use super::codec::{coded, Decode, Encode, Reader, Writer};
use super::numbers::{at_distance, distance, reason, reason_code, time_at, time_distance};
use super::Refused;
use crate::effect::Image;
use crate::errors::Errors;
use crate::headers::{HeaderBlock, Headers};
use crate::id::{first_tick, instant_of, Receipt, Sequence};
use crate::origin::Origin;
use crate::record::{Phase, Record, Ttl};
use crate::time::{DurationMs, UnixMs};

/// The numbers of the phases. A waiting message has none.
const LEASED: i64 = 1;
const DEAD: i64 = 2;
const SUCCESSOR: i64 = 3;

/// Writes a message, with its sequence as a distance from `base`. Its due time is a distance from the instant of the
/// sequence, and the times that relate to the due time or to the receipt are distances from those.
pub(super) fn put_image(to: &mut Writer<'_>, image: &Image<'_>, base: u64) -> Result<(), Refused> {
    let record = &image.record;
    let sequence = record.sequence.0;
    let created = instant_of(sequence);
    let held = |number, receipt: Receipt, deadline| {
        [number, distance(receipt.0, sequence), time_distance(deadline, instant_of(receipt.0))]
    };
    let phase = match record.phase {
        Phase::Waiting => None,
        Phase::Leased { deadline, receipt } => Some(held(LEASED, receipt, deadline)),
        Phase::Successor { deadline, receipt } => Some(held(SUCCESSOR, receipt, deadline)),
        Phase::Dead { died, reason } => Some([DEAD, time_distance(died, record.due), reason_code(reason).into()]),
    };
    let ttl = record.ttl.map(|ttl| [distance(ttl.duration.as_ms(), 0), time_distance(ttl.end, record.due)]);
    let accepted = image.origin.map(|origin| time_distance(origin.accepted, created));
    let chain = image.origin.and_then(|origin| Some(time_distance(origin.chain?, origin.accepted)));

    to.record(|fields| {
        fields.require(&distance(sequence, base))?;
        fields.require(&time_distance(record.due, created))?;
        fields.require(&Content { payload: image.payload, headers: image.headers })?;
        fields.require(&record.retries)?;
        fields.put(&image.name)?;
        fields.put(&record.priority)?;
        fields.put(&record.attempts)?;
        fields.put(&phase)?;
        fields.put(&image.group)?;
        fields.put(&record.lease)?;
        fields.put(&ttl)?;
        fields.put(&image.errors)?;
        fields.put(&image.retain)?;
        fields.put(&accepted)?;
        fields.put(&chain)?;
        fields.put(&image.recurring)?;
        fields.put(&image.checkpoint)?;
        fields.put(&image.consumer)?;
        fields.put(&image.batch)?;
        Ok(())
    })
}

/// Reads what [`put_image`] wrote. Returns an error if a value is out of its range.
pub(super) fn get_image<'a>(from: &mut Reader<'a>, base: u64) -> Result<Image<'a>, Refused> {
    from.record(|fields| {
        let sequence = at_distance(fields.required()?, base);
        let created = instant_of(sequence);
        let due = time_at(fields.required()?, created)?;
        let Content { payload, headers } = fields.required()?;
        let retries = fields.required()?;
        let name = fields.get()?;
        let priority = fields.get()?;
        let attempts = fields.get()?;
        let phase = get_phase(fields.get()?, sequence, due)?;
        let group = fields.get()?;
        let lease = fields.get()?;
        let ttl = fields.get::<Option<[i64; 2]>>()?.map(|ttl| get_ttl(ttl, due)).transpose()?;
        let errors = fields.get()?;
        let retain = fields.get()?;
        let origin = get_origin(fields.get()?, fields.get()?, created)?;
        let recurring: Option<Box<_>> = fields.get()?;
        let checkpoint = fields.get()?;
        let consumer = fields.get()?;
        let batch = fields.get()?;
        let sequence = Sequence(sequence);
        let is_recurring = recurring.is_some();
        let record = Record { sequence, due, priority, retries, lease, ttl, attempts, phase, recurring: is_recurring };
        Ok(Image {
            record,
            name,
            payload,
            errors,
            group,
            origin,
            retain,
            recurring,
            headers,
            checkpoint,
            consumer,
            batch,
        })
    })
}

/// The payload, or an array of the headers and the payload. A field at the end would need a byte for each optional
/// field before it.
struct Content<'a> {
    payload: &'a [u8],
    headers: Option<Headers<'a>>,
}

impl Encode for Content<'_> {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        if let Some(headers) = &self.headers {
            to.array(2)?;
            to.put(headers)?;
        }
        to.put(self.payload)
    }
}

impl<'a> Decode<'a> for Content<'a> {
    fn decode(from: &mut Reader<'a>) -> Result<Self, Refused> {
        let headers = match from.begins_array() {
            true if from.array()? == 2 => Some(from.get()?),
            true => return Err(Refused::Malformed),
            false => None,
        };
        Ok(Content { payload: from.get()?, headers })
    }
}

coded! {'a;
    Headers<'a> as &'a [u8]: |headers, _| headers.block(), |block, _| Headers::parse(block);
    Errors<'a> as &'a [u8]: |errors, _| errors.block(), |block, _| Errors::parse(block);
}

impl Encode for HeaderBlock {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        to.put(&self.headers())
    }
}

impl Decode<'_> for HeaderBlock {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Refused> {
        from.get().map(|headers: Headers<'_>| HeaderBlock::from(headers))
    }
}

fn get_phase(phase: Option<[i64; 3]>, sequence: u64, due: UnixMs) -> Result<Phase, Refused> {
    let held = |receipt, deadline| {
        let receipt = at_distance(receipt, sequence);
        Ok((time_at(deadline, instant_of(receipt))?, Receipt(receipt)))
    };
    match phase {
        None => Ok(Phase::Waiting),
        Some([LEASED, receipt, deadline]) => {
            held(receipt, deadline).map(|(deadline, receipt)| Phase::Leased { deadline, receipt })
        }
        Some([SUCCESSOR, receipt, deadline]) => {
            held(receipt, deadline).map(|(deadline, receipt)| Phase::Successor { deadline, receipt })
        }
        Some([DEAD, died, code]) => {
            let reason = u8::try_from(code).ok().and_then(reason).ok_or(Refused::Malformed)?;
            Ok(Phase::Dead { died: time_at(died, due)?, reason })
        }
        Some(_) => Err(Refused::Malformed),
    }
}

fn get_ttl([duration, end]: [i64; 2], due: UnixMs) -> Result<Ttl, Refused> {
    let duration = DurationMs::checked(at_distance(duration, 0)).ok_or(Refused::Malformed)?;
    Ok(Ttl { duration, end: time_at(end, due)? })
}

fn get_origin(accepted: Option<i64>, chain: Option<i64>, created: UnixMs) -> Result<Option<Origin>, Refused> {
    match accepted {
        None if chain.is_some() => Err(Refused::Malformed),
        None => Ok(None),
        Some(accepted) => {
            let accepted = time_at(accepted, created)?;
            Ok(Some(Origin { accepted, chain: chain.map(|chain| time_at(chain, accepted)).transpose()? }))
        }
    }
}

/// One message, with its sequence as a distance from the instant of the decision.
impl Encode for Image<'_> {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        put_image(to, self, first_tick(to.now))
    }
}

impl<'a> Decode<'a> for Image<'a> {
    fn decode(from: &mut Reader<'a>) -> Result<Self, Refused> {
        get_image(from, first_tick(from.now))
    }
}

/// The sequence of each is a distance from the one before.
impl Encode for Vec<Image<'_>> {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        let mut last = first_tick(to.now);
        to.list(self, |to, image| put_image(to, image, std::mem::replace(&mut last, image.record.sequence.0)))
    }
}

impl<'a> Decode<'a> for Vec<Image<'a>> {
    fn decode(from: &mut Reader<'a>) -> Result<Self, Refused> {
        let mut last = first_tick(from.now);
        from.list(|from| {
            let image = get_image(from, last)?;
            last = image.record.sequence.0;
            Ok(image)
        })
    }
}

/// Messages in flight that have a successor: the sequence of the successor, and the message, whose sequence is a
/// distance from that of the successor.
impl Encode for Vec<(Sequence, Image<'_>)> {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        to.list(self, |to, (successor, image)| {
            to.array(2)?;
            to.put(successor)?;
            put_image(to, image, successor.0)
        })
    }
}

impl<'a> Decode<'a> for Vec<(Sequence, Image<'a>)> {
    fn decode(from: &mut Reader<'a>) -> Result<Self, Refused> {
        from.list(|from| {
            if from.array()? != 2 {
                return Err(Refused::Malformed);
            }
            let successor: Sequence = from.get()?;
            Ok((successor, get_image(from, successor.0)?))
        })
    }
}
