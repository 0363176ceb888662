//! Clusters: queues survive the failure of a node and move with their slot.

mod nodes;
mod slots;
