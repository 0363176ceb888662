//! What the reference model measures: every value, in the order in which they were measured.

/// A delivery with attempt 1.
#[derive(Clone, Debug)]
pub struct First {
    /// How long after its due time it was.
    pub ms: u64,
    /// The number of the delivery before it, if that was given back uncounted, among all that were.
    pub given_back: Option<usize>,
}

#[derive(Clone, Debug, Default)]
pub struct Measured {
    pub lateness: Vec<First>,
    pub runtimes: Vec<u64>,
    /// How many only deliveries were given back uncounted.
    pub given_back: usize,
}
