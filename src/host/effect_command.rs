//! The command that carries an effect to the replicas and the AOF.

use std::ffi::CStr;

/// The name of the command. It is short because it is written with each effect.
pub const EFFECT_COMMAND: &CStr = c"DQ.E";
