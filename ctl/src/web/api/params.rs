//! The parameters of a request: a query, or a body of JSON.

use super::Problem;
use crate::web::encoding;
use serde_json::{Map, Value as Json};

/// The parameters by their names.
pub enum Params {
    Query(Vec<(String, Vec<u8>)>),
    Body(Map<String, Json>),
}

impl Params {
    pub fn of_query(query: &str) -> Params {
        Params::Query(encoding::query(query))
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

fn decoded(name: &str, text: &[u8]) -> Result<Vec<u8>, Problem> {
    encoding::base64(text).ok_or_else(|| Problem::wrong(format!("{name}-base64 is not base64")))
}
