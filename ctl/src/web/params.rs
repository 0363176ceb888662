//! The parameters of a view, from the query of its address. Names of queues and ids may be any bytes.

use crate::server::Failure;
use percent_encoding::percent_decode_str;

pub struct Params(Vec<(String, Vec<u8>)>);

impl Params {
    pub fn parse(query: &str) -> Params {
        let decoded = |text: &str| -> Vec<u8> { percent_decode_str(&text.replace('+', " ")).collect() };
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (String::from_utf8_lossy(&decoded(name)).into_owned(), decoded(value))
        };
        let pairs = query.split('&').map(pair);
        Params(pairs.filter(|(name, value)| !name.is_empty() && !value.is_empty()).collect())
    }

    pub fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_slice())
    }

    pub fn needed(&self, name: &str) -> Result<&[u8], Failure> {
        self.bytes(name).ok_or_else(|| Failure::usage(format!("{name} is missing")))
    }

    /// A text; empty if it is not there.
    pub fn text(&self, name: &str) -> String {
        self.bytes(name).map_or_else(String::new, |bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// The same parameters with some changed; those whose new value is empty are left out.
    pub fn with<'a>(&'a self, changes: &[(&'a str, &'a [u8])]) -> Vec<(&'a str, &'a [u8])> {
        let kept = self.0.iter().filter(|(name, _)| !changes.iter().any(|(changed, _)| changed == name));
        let kept = kept.map(|(name, value)| (name.as_str(), value.as_slice()));
        kept.chain(changes.iter().copied()).filter(|(_, value)| !value.is_empty()).collect()
    }
}
