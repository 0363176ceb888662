//! Notices to consumers from which a command takes a message in flight.

/// What took a message from its consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// It was cancelled.
    Cancelled,
    /// Another message has replaced it.
    Replaced,
    /// It was made dead.
    Buried,
    /// It was purged.
    Purged,
    /// Its consumer was taken for gone.
    Released,
}

impl Loss {
    /// The word that clients see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Loss::Cancelled => "cancelled",
            Loss::Replaced => "replaced",
            Loss::Buried => "buried",
            Loss::Purged => "purged",
            Loss::Released => "released",
        }
    }
}

/// A delivery that a consumer has lost, or many of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// What took it.
    pub how: Loss,
    /// The receipt as clients see it; `None` if there are too many to name each.
    pub receipt: Option<Box<[u8]>>,
}

/// The deliveries that consumers have lost by one command. It is boxed, since nearly all commands take nothing from
/// anybody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses(pub Vec<Lost>);
