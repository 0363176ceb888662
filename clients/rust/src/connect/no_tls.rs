//! What stands for TLS in a build without it.

use super::options::Options;
use crate::error::Error;
use redis::{ConnectionAddr, RedisError};
use std::time::Duration;

pub(super) fn address(_: &str, _: u16, _: &Options) -> Result<ConnectionAddr, Error> {
    Err(Error::Config("rediss:// needs the feature tls of dq-client".to_owned()))
}

pub(super) async fn alert(_: redis::Client, _: Duration) -> Option<String> {
    None
}

pub(super) fn problem(_: &RedisError) -> Option<String> {
    None
}

pub(super) fn is_not_spoken(_: &RedisError) -> bool {
    false
}
