//! Reads the fields of a line of a dump. An error says what is wrong with the line.

use base64::prelude::{Engine, BASE64_STANDARD};
use serde_json::{Map, Value as Json};

/// The value of `name` as text, or of `name-base64` decoded.
pub fn bytes(object: &Map<String, Json>, name: &str) -> Result<Option<Vec<u8>>, String> {
    let encoded = format!("{name}-base64");
    match (object.get(name), object.get(&encoded)) {
        (Some(Json::String(text)), _) => Ok(Some(text.as_bytes().to_vec())),
        (Some(Json::Number(number)), _) => Ok(Some(number.to_string().into_bytes())),
        (None, Some(Json::String(text))) => {
            BASE64_STANDARD.decode(text).map(Some).map_err(|_| format!("its {encoded} is not base64"))
        }
        (None | Some(Json::Null), None) => Ok(None),
        _ => Err(format!("its {name} is neither text nor a number")),
    }
}

pub fn number(object: &Map<String, Json>, name: &str) -> Result<Option<i64>, String> {
    match object.get(name) {
        None | Some(Json::Null) => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or_else(|| format!("its {name} is not a whole number")),
    }
}
