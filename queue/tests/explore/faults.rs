//! Faults that are planted into the steps between the nodes, to show that the exploration finds such.

/// A fault of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An effect is lost, but those after it arrive.
    EffectLost,
    /// An effect arrives twice.
    EffectTwice,
    /// A takeover takes no time, so the new master gives the receipts that the old one gave last.
    TakeoverInNoTime,
    /// The clock of the master is 5 ms ahead of the time that clients have measured.
    ClockAhead,
    /// The AOF forgets the last effect, although it was answered.
    AofForgets,
    /// A full synchronisation saves the queue and then sends what was on its way as well.
    SyncKeepsEffects,
    /// The effect of a delivery tells a later deadline than the client was told.
    DeadlineLater,
}

impl Fault {
    pub const ALL: [Fault; 7] = [
        Fault::EffectLost,
        Fault::EffectTwice,
        Fault::TakeoverInNoTime,
        Fault::ClockAhead,
        Fault::AofForgets,
        Fault::SyncKeepsEffects,
        Fault::DeadlineLater,
    ];
}
