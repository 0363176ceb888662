//! Checkpoints: what a consumer wants to know of its work if the message is delivered again.

/// The longest checkpoint that is stored, in bytes.
pub const CHECKPOINT_MAX: usize = 64 * 1024;

/// Whether a message can have this checkpoint. An empty one stands for none.
pub(super) fn is_checkpoint(checkpoint: &[u8]) -> bool {
    (1..=CHECKPOINT_MAX).contains(&checkpoint.len())
}

/// The part of a checkpoint that is stored.
pub(super) fn stored(checkpoint: &[u8]) -> &[u8] {
    checkpoint.get(..CHECKPOINT_MAX).unwrap_or(checkpoint)
}
