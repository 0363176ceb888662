//! Clusters: queues survive the failure of a node and move with their slot.

mod capabilities;
mod nodes;
mod ordering;
pub mod slots;
