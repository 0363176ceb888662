//! Payloads: any type of serde in MessagePack, JSON, or raw bytes.

use crate::Error;
use serde::de::DeserializeOwned;
use serde::Serialize;

/// A type that can be pushed. Every type with `serde::Serialize` is encoded as MessagePack, with the names of fields;
/// [`Json`] and [`Raw`] choose something else.
pub trait Encode {
    /// The bytes that the queue holds.
    ///
    /// # Errors
    /// [`Error::Encode`] if the value has no encoding.
    fn encode(&self) -> Result<Vec<u8>, Error>;
}

/// A type that can be popped: the counterpart of [`Encode`], for every type with `serde::Deserialize` that borrows
/// nothing, [`Json`] and [`Raw`].
pub trait Decode: Sized {
    /// Reads the bytes that the queue held.
    ///
    /// # Errors
    /// [`Error::Decode`] if they are not an encoding of this type.
    fn decode(bytes: &[u8]) -> Result<Self, Error>;

    /// The value that represents a missing result, such as null in JSON. `()` and `Option` have one.
    ///
    /// # Errors
    /// [`Error::Decode`] if this type has no such value.
    fn absent() -> Result<Self, Error> {
        Self::decode(&[])
    }
}

/// A payload in JSON, for queues that other languages or people read: `Queue<Json<Mail>>`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Json<T>(pub T);

/// A payload of any bytes, as they are: `Queue<Raw>`. (`Vec<u8>` itself would be MessagePack's list of numbers.)
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Raw(pub Vec<u8>);

/// Null in MessagePack.
const NIL: u8 = 0xc0;

impl<T: Serialize> Encode for T {
    fn encode(&self) -> Result<Vec<u8>, Error> {
        // With names, so that fields can be added later, and reordered.
        rmp_serde::to_vec_named(self).map_err(|error| Error::Encode(Box::new(error)))
    }
}

impl<T: DeserializeOwned> Decode for T {
    fn decode(bytes: &[u8]) -> Result<T, Error> {
        rmp_serde::from_slice(bytes).map_err(|error| Error::Decode(Box::new(error)))
    }

    fn absent() -> Result<T, Error> {
        T::decode(&[NIL])
    }
}

impl<T: Serialize> Encode for Json<T> {
    fn encode(&self) -> Result<Vec<u8>, Error> {
        serde_json::to_vec(&self.0).map_err(|error| Error::Encode(Box::new(error)))
    }
}

impl<T: DeserializeOwned> Decode for Json<T> {
    fn decode(bytes: &[u8]) -> Result<Json<T>, Error> {
        serde_json::from_slice(bytes).map(Json).map_err(|error| Error::Decode(Box::new(error)))
    }

    fn absent() -> Result<Json<T>, Error> {
        Json::decode(b"null")
    }
}

impl Encode for Raw {
    fn encode(&self) -> Result<Vec<u8>, Error> {
        Ok(self.0.clone())
    }
}

impl Decode for Raw {
    fn decode(bytes: &[u8]) -> Result<Raw, Error> {
        Ok(Raw(bytes.to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::{Decode, Encode, Json, Raw};
    use crate::Error;

    #[derive(serde::Serialize, serde::Deserialize, PartialEq, Debug)]
    struct Mail {
        to: String,
        #[serde(default)]
        copies: u32,
    }

    #[test]
    fn payloads_return_as_they_were() {
        let mail = Mail { to: "ann".to_owned(), copies: 2 };
        assert_eq!(Mail::decode(&mail.encode().unwrap()).unwrap(), mail);
        let json = Json(mail);
        assert_eq!(json.encode().unwrap(), br#"{"to":"ann","copies":2}"#);
        assert_eq!(Json::<Mail>::decode(&json.encode().unwrap()).unwrap(), json);
        let raw = Raw(vec![0, 255, b'\n']);
        assert_eq!(raw.encode().unwrap(), raw.0);
        assert_eq!(Raw::decode(&raw.0).unwrap(), raw);
    }

    #[test]
    fn nothing_is_a_value_of_types_that_have_one() {
        <()>::absent().unwrap();
        assert_eq!(Option::<Mail>::absent().unwrap(), None);
        assert_eq!(Json::<Option<Mail>>::absent().unwrap(), Json(None));
        assert_eq!(Raw::absent().unwrap(), Raw::default());
        assert!(matches!(Mail::absent(), Err(Error::Decode(_))));
    }

    #[test]
    fn a_payload_without_a_new_field_is_still_read() {
        #[derive(serde::Serialize)]
        struct Older {
            to: &'static str,
        }
        let old = Older { to: "ann" }.encode().unwrap();
        assert_eq!(Mail::decode(&old).unwrap(), Mail { to: "ann".to_owned(), copies: 0 });
        assert!(matches!(Mail::decode(b"\xc1"), Err(Error::Decode(_))));
    }
}
