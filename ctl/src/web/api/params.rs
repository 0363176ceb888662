//! The parameters of a request: a query, or a body of JSON.

use super::Problem;
use base64::engine::general_purpose::{STANDARD_PAD_INDIFFERENT, URL_SAFE_PAD_INDIFFERENT};
use base64::Engine;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value as Json};

/// The parameters by their names.
pub enum Params {
    Query(Vec<(String, Vec<u8>)>),
    Body(Map<String, Json>),
}

impl Params {
    /// Not by a parser of forms, because names of queues and ids may be any bytes, not only UTF-8.
    pub fn of_query(query: &str) -> Params {
        let decoded = |text: &str| -> Vec<u8> { percent_decode_str(&text.replace('+', " ")).collect() };
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (String::from_utf8_lossy(&decoded(name)).into_owned(), decoded(value))
        };
        Params::Query(query.split('&').filter(|part| !part.is_empty()).map(pair).collect())
    }

    pub fn of_body(body: &[u8]) -> Result<Params, Problem> {
        match serde_json::from_slice(body) {
            Ok(Json::Object(fields)) => Ok(Params::Body(fields)),
            Ok(_) => Err(Problem::wrong("the body is not an object: {\"queue\": \"mail\"}")),
            Err(error) => Err(Problem::wrong(format!("the body is not JSON: {error}"))),
        }
    }

    /// Refuses parameters with other names, so that a misspelt one is not ignored.
    pub fn only(&self, names: &[&str]) -> Result<(), Problem> {
        let is_known = |name: &str| names.contains(&name.strip_suffix("-base64").unwrap_or(name));
        let unknown = match self {
            Params::Query(pairs) => pairs.iter().map(|(name, _)| name).find(|name| !is_known(name)),
            Params::Body(fields) => fields.keys().find(|name| !is_known(name)),
        };
        match unknown {
            Some(name) => Err(Problem::wrong(format!("unknown parameter {name}; known are: {}", names.join(", ")))),
            None => Ok(()),
        }
    }

    /// The bytes of `NAME`, or those of `NAME-base64`.
    pub fn bytes(&self, name: &str) -> Result<Option<Vec<u8>>, Problem> {
        let encoded = format!("{name}-base64");
        let (plain, encoded) = match self {
            Params::Query(pairs) => {
                let value = |name: &str| pairs.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone());
                (value(name), value(&encoded))
            }
            Params::Body(fields) => {
                let value = |name: &str| match fields.get(name) {
                    None | Some(Json::Null) => Ok(None),
                    Some(Json::String(text)) => Ok(Some(text.clone().into_bytes())),
                    Some(_) => Err(Problem::wrong(format!("{name} must be a text"))),
                };
                (value(name)?, value(&encoded)?)
            }
        };
        match (plain, encoded) {
            (Some(_), Some(_)) => Err(Problem::wrong(format!("give {name} or {name}-base64, not both"))),
            (plain, None) => Ok(plain),
            (None, Some(encoded)) => decoded(name, &encoded).map(Some),
        }
    }

    pub fn needed(&self, name: &str) -> Result<Vec<u8>, Problem> {
        self.bytes(name)?.ok_or_else(|| Problem::wrong(format!("{name} is missing")))
    }

    pub fn text(&self, name: &str) -> Result<Option<String>, Problem> {
        Ok(self.bytes(name)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// A whole number in a range.
    pub fn int(&self, name: &str, least: i64, most: i64) -> Result<Option<i64>, Problem> {
        let number = match self {
            Params::Query(_) => self.text(name)?.map(|text| text.parse().ok()),
            Params::Body(fields) => fields.get(name).filter(|value| !value.is_null()).map(Json::as_i64),
        };
        match number {
            None => Ok(None),
            Some(Some(number)) if (least..=most).contains(&number) => Ok(Some(number)),
            Some(_) => Err(Problem::wrong(format!("{name} must be a whole number from {least} to {most}"))),
        }
    }

    /// A flag of a body.
    pub fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self {
            Params::Body(fields) => match fields.get(name) {
                None | Some(Json::Null) => Ok(false),
                Some(Json::Bool(flag)) => Ok(*flag),
                Some(_) => Err(Problem::wrong(format!("{name} must be true or false"))),
            },
            Params::Query(_) => Ok(false),
        }
    }

    /// The names and values of an object of texts.
    pub fn texts(&self, name: &str) -> Result<Vec<[Vec<u8>; 2]>, Problem> {
        let wrong = || Problem::wrong(format!("{name} must be an object of texts"));
        let Params::Body(fields) = self else { return Ok(Vec::new()) };
        match fields.get(name) {
            None | Some(Json::Null) => Ok(Vec::new()),
            Some(Json::Object(texts)) => texts
                .iter()
                .map(|(key, value)| Ok([key.clone().into_bytes(), value.as_str().ok_or_else(wrong)?.into()]))
                .collect(),
            Some(_) => Err(wrong()),
        }
    }

    /// The fields of an object.
    pub fn object(&self, name: &str) -> Result<Map<String, Json>, Problem> {
        let Params::Body(fields) = self else { return Ok(Map::new()) };
        match fields.get(name) {
            None | Some(Json::Null) => Ok(Map::new()),
            Some(Json::Object(object)) => Ok(object.clone()),
            Some(_) => Err(Problem::wrong(format!("{name} must be an object"))),
        }
    }

    /// `id` and the ids of the arrays `ids` and `ids-base64`.
    pub fn ids(&self) -> Result<Vec<Vec<u8>>, Problem> {
        let mut ids: Vec<Vec<u8>> = self.bytes("id")?.into_iter().collect();
        let Params::Body(fields) = self else { return Ok(ids) };
        for name in ["ids", "ids-base64"] {
            let list = match fields.get(name) {
                None | Some(Json::Null) => continue,
                Some(Json::Array(list)) => list,
                Some(_) => return Err(Problem::wrong(format!("{name} must be an array of texts"))),
            };
            for id in list {
                let text = id.as_str().ok_or_else(|| Problem::wrong(format!("{name} must be an array of texts")))?;
                ids.push(if name == "ids" { text.as_bytes().to_vec() } else { decoded("ids", text.as_bytes())? });
            }
        }
        Ok(ids)
    }
}

/// Reads base64 in either alphabet of RFC 4648, with or without padding.
fn decoded(name: &str, text: &[u8]) -> Result<Vec<u8>, Problem> {
    let decoded = STANDARD_PAD_INDIFFERENT.decode(text).or_else(|_| URL_SAFE_PAD_INDIFFERENT.decode(text));
    decoded.map_err(|_| Problem::wrong(format!("{name}-base64 is not base64")))
}

#[cfg(test)]
mod tests {
    use super::Params;

    #[test]
    fn queries_carry_any_bytes() {
        let params = Params::of_query("queue=a%20b+c&id=%ff%00&x&&y=%zz%4&z-base64=__79&w-base64=_w%3D%3D");
        for (name, value) in [
            ("queue", &b"a b c"[..]),
            ("id", &[255, 0]),
            ("x", b""),
            ("y", b"%zz%4"),
            ("z", &[255, 254, 253]),
            ("w", &[255]),
        ] {
            assert_eq!(params.bytes(name).ok().flatten().as_deref(), Some(value), "{name}");
        }
    }
}
