//! Instants and durations in whole milliseconds, as two types that cannot be mixed up.
//!
//! Every instant of a queue fits in 44 bits: the largest `AT` plus the longest duration. Sequences and the headers of
//! the store rely on it.

use std::num::NonZeroU64;

/// An instant: Unix time in milliseconds, at most [`UnixMs::MAX`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixMs(
    /// The milliseconds plus one, so that zero is left for `None`: an optional instant takes 8 bytes, not 16.
    NonZeroU64,
);

const _: () = assert!(size_of::<Option<UnixMs>>() == 8);

impl UnixMs {
    /// [`UnixMs::MAX`] in milliseconds.
    const MAX_MS: u64 = (1 << 44) - 1;
    /// The last instant that a queue can represent, 2^44-1 ms (in the year 2527). Sums saturate here.
    pub const MAX: UnixMs = UnixMs::new(UnixMs::MAX_MS);
    /// The first instant, 1970-01-01 00:00 UTC.
    pub const EPOCH: UnixMs = UnixMs::new(0);
    /// The smallest instant that a client may pass with `AT`, in ms (March 1973): a smaller number looks like seconds.
    pub const MIN_AT: u64 = 100_000_000_000;
    /// The largest instant that a client may pass with `AT`, 2^43-1 ms.
    pub const MAX_AT: u64 = (1 << 43) - 1;

    /// The instant `ms` milliseconds after the Unix epoch. Saturates at [`UnixMs::MAX`].
    #[inline]
    pub const fn new(ms: u64) -> Self {
        let ms = if ms > Self::MAX_MS { Self::MAX_MS } else { ms };
        UnixMs(NonZeroU64::MIN.saturating_add(ms))
    }

    /// The instant `ms` milliseconds after the Unix epoch; `None` if it lies beyond [`UnixMs::MAX`].
    pub const fn checked(ms: u64) -> Option<Self> {
        if ms > Self::MAX_MS {
            None
        } else {
            Some(UnixMs::new(ms))
        }
    }

    /// The milliseconds since the Unix epoch.
    #[inline]
    pub const fn as_ms(self) -> u64 {
        self.0.get() - 1
    }

    /// This instant plus `duration`. Saturates at [`UnixMs::MAX`].
    pub const fn after(self, duration: DurationMs) -> Self {
        Self::new(self.as_ms().saturating_add(duration.0))
    }

    /// The instant a millisecond earlier. Saturates at [`UnixMs::EPOCH`].
    pub const fn before(self) -> Self {
        Self::new(self.as_ms().saturating_sub(1))
    }

    /// The time from `earlier` to this instant; zero if `earlier` is the later of the two.
    pub const fn since(self, earlier: UnixMs) -> DurationMs {
        DurationMs(self.as_ms().saturating_sub(earlier.as_ms()))
    }
}

impl std::fmt::Debug for UnixMs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("UnixMs").field(&self.as_ms()).finish()
    }
}

impl Default for UnixMs {
    fn default() -> Self {
        UnixMs::EPOCH
    }
}

/// A length of time in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DurationMs(u64);

impl DurationMs {
    /// The longest duration, 2^42-1 ms (139 years).
    pub const MAX: DurationMs = DurationMs((1 << 42) - 1);
    /// Zero.
    pub const ZERO: DurationMs = DurationMs(0);

    /// A duration of `ms` milliseconds. Saturates at [`DurationMs::MAX`].
    pub const fn new(ms: u64) -> Self {
        if ms > Self::MAX.0 {
            Self::MAX
        } else {
            DurationMs(ms)
        }
    }

    /// A duration of `ms` milliseconds; `None` if it is longer than [`DurationMs::MAX`].
    pub const fn checked(ms: u64) -> Option<Self> {
        if ms > Self::MAX.0 {
            None
        } else {
            Some(DurationMs(ms))
        }
    }

    /// The number of milliseconds.
    pub const fn as_ms(self) -> u64 {
        self.0
    }

    /// Whether the duration is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}
