//! Payloads: any type of serde in JSON, MessagePack, or raw bytes.

use crate::error::Error;
use serde::de::DeserializeOwned;
use serde::Serialize;
use std::sync::Arc;

/// A type that can be pushed. Every type with `serde::Serialize` is encoded as JSON; `MsgPack` and [`Raw`] choose
/// something else.
pub trait Encode {
    /// The bytes that the queue holds.
    ///
    /// # Errors
    /// [`Error::Encode`] if the value has no encoding.
    fn encode(&self) -> Result<Vec<u8>, Error>;
}

/// A type that can be popped: the counterpart of [`Encode`], for every type with `serde::Deserialize` that borrows
/// nothing, `MsgPack` and [`Raw`].
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

impl<T: Serialize> Encode for T {
    fn encode(&self) -> Result<Vec<u8>, Error> {
        serde_json::to_vec(self).map_err(|error| Error::Encode(Arc::new(error)))
    }
}

impl<T: DeserializeOwned> Decode for T {
    fn decode(bytes: &[u8]) -> Result<T, Error> {
        serde_json::from_slice(bytes).map_err(|error| expected::<T>("JSON", &error))
    }

    fn absent() -> Result<T, Error> {
        T::decode(b"null")
    }
}

/// What was expected in place of bytes, and what is wrong with them.
fn expected<T>(format: &str, error: &dyn std::fmt::Display) -> Error {
    Error::decode(format!(
        "expected {format} of {}: {}",
        std::any::type_name::<T>(),
        without_values(&error.to_string())
    ))
}

/// What serde reports, without the values that it quotes: errors are logged, and payloads are not.
fn without_values(text: &str) -> String {
    let quoted = |quote| text.find(quote).zip(text.rfind(quote)).filter(|(begin, end)| begin < end);
    if let Some((begin, end)) = quoted('"') {
        return format!("{}…{}", text.get(..begin).unwrap_or_default(), text.get(end + 1..).unwrap_or_default());
    }
    // A number or a boolean. The backquotes after it, and those of other errors, enclose names of the program's type.
    let is_value = ["invalid type", "invalid value", "unknown variant"].iter().any(|kind| text.starts_with(kind));
    match text.split_once(", expected ") {
        Some((_, wanted)) if is_value => format!("a value of another type, expected {wanted}"),
        Some(_) | None => text.to_owned(),
    }
}

/// A payload of any bytes, as they are: `Queue<Raw>`. (`Vec<u8>` itself would be a list of numbers.)
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Raw(pub Vec<u8>);

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

/// A payload in MessagePack, with the names of fields: `Queue<MsgPack<Mail>>`.
#[cfg(feature = "msgpack")]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MsgPack<T>(pub T);

/// Null in MessagePack.
#[cfg(feature = "msgpack")]
const NIL: u8 = 0xc0;

#[cfg(feature = "msgpack")]
impl<T: Serialize> Encode for MsgPack<T> {
    fn encode(&self) -> Result<Vec<u8>, Error> {
        // With names, so that fields can be added later, and reordered.
        rmp_serde::to_vec_named(&self.0).map_err(|error| Error::Encode(Arc::new(error)))
    }
}

#[cfg(feature = "msgpack")]
impl<T: DeserializeOwned> Decode for MsgPack<T> {
    fn decode(bytes: &[u8]) -> Result<MsgPack<T>, Error> {
        rmp_serde::from_slice(bytes).map(MsgPack).map_err(|error| expected::<T>("MessagePack", &error))
    }

    fn absent() -> Result<MsgPack<T>, Error> {
        MsgPack::decode(&[NIL])
    }
}

#[cfg(all(test, feature = "msgpack"))]
mod tests {
    use super::{Decode, Encode, MsgPack, Raw};
    use crate::error::Error;

    #[test]
    fn an_error_shows_nothing_of_the_payload() {
        for payload in [r#"{"to": 4711}"#, r#"{"to": "a", "copies": "4711"}"#, r#"{"to": "a", "copies": -4711}"#] {
            let error = Mail::decode(payload.as_bytes()).unwrap_err().to_string();
            assert!(!error.contains("4711") && error.contains("expected"), "{error}");
        }
        assert!(Mail::decode(b"{}").unwrap_err().to_string().contains("missing field `to`"));
    }

    #[derive(serde::Serialize, serde::Deserialize, PartialEq, Debug)]
    struct Mail {
        to: String,
        #[serde(default)]
        copies: u32,
    }

    #[test]
    fn payloads_return_as_they_were() {
        let mail = Mail { to: "ann".to_owned(), copies: 2 };
        assert_eq!(mail.encode().unwrap(), br#"{"to":"ann","copies":2}"#);
        assert_eq!(Mail::decode(&mail.encode().unwrap()).unwrap(), mail);
        let packed = MsgPack(mail);
        assert_eq!(packed.encode().unwrap(), b"\x82\xa2to\xa3ann\xa6copies\x02");
        assert_eq!(MsgPack::<Mail>::decode(&packed.encode().unwrap()).unwrap(), packed);
        let raw = Raw(vec![0, 255, b'\n']);
        assert_eq!(raw.encode().unwrap(), raw.0);
        assert_eq!(Raw::decode(&raw.0).unwrap(), raw);
    }

    #[test]
    fn nothing_is_a_value_of_types_that_have_one() {
        <()>::absent().unwrap();
        assert_eq!(Option::<Mail>::absent().unwrap(), None);
        assert_eq!(MsgPack::<Option<Mail>>::absent().unwrap(), MsgPack(None));
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
        let old = MsgPack(Older { to: "ann" }).encode().unwrap();
        assert_eq!(MsgPack::<Mail>::decode(&old).unwrap().0, Mail { to: "ann".to_owned(), copies: 0 });
        let error = Mail::decode(b"\xc1").unwrap_err().to_string();
        assert!(error.contains("Mail") && error.contains("JSON"), "{error}");
    }
}
