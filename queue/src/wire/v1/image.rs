//! Messages as a whole.

use super::{Ends, Extras, Phase};
use serde::ser::SerializeTupleStruct;
use serde::{Deserialize, Serialize, Serializer};
use serde_bytes::Bytes;

/// The fields that every message has.
const ALWAYS: usize = 4;

/// A message. Of the fields from the name on, those behind the last one that is not its default are left out, so a
/// message without options is four fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Image<'a> {
    /// The distance from the sequence of the message before.
    pub(super) sequence: i64,
    /// The due time, as a distance from the sequence's instant.
    pub(super) due: i64,
    #[serde(borrow)]
    pub(super) payload: &'a Bytes,
    pub(super) retries: i32,
    #[serde(borrow)]
    pub(super) name: Option<&'a Bytes>,
    pub(super) priority: i8,
    pub(super) lease: Option<u64>,
    pub(super) ttl: Option<Ends>,
    pub(super) attempts: u32,
    /// The phase, unless the message is waiting.
    pub(super) phase: Option<Phase>,
    #[serde(borrow)]
    pub(super) error: Option<&'a Bytes>,
    /// What few messages have.
    #[serde(borrow)]
    pub(super) extras: Option<Extras<'a>>,
}

impl Serialize for Image<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let used = [
            self.name.is_some(),
            self.priority != 0,
            self.lease.is_some(),
            self.ttl.is_some(),
            self.attempts != 0,
            self.phase.is_some(),
            self.error.is_some(),
            self.extras.is_some(),
        ];
        let optional = used.iter().rposition(|is_used| *is_used).map_or(0, |last| last + 1);
        let mut fields = serializer.serialize_tuple_struct("Image", ALWAYS + optional)?;
        fields.serialize_field(&self.sequence)?;
        fields.serialize_field(&self.due)?;
        fields.serialize_field(self.payload)?;
        fields.serialize_field(&self.retries)?;
        for field in 0..optional {
            match field {
                0 => fields.serialize_field(&self.name)?,
                1 => fields.serialize_field(&self.priority)?,
                2 => fields.serialize_field(&self.lease)?,
                3 => fields.serialize_field(&self.ttl)?,
                4 => fields.serialize_field(&self.attempts)?,
                5 => fields.serialize_field(&self.phase)?,
                6 => fields.serialize_field(&self.error)?,
                _ => fields.serialize_field(&self.extras)?,
            }
        }
        fields.end()
    }
}
